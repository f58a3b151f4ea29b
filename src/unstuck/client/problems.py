"""Problems: what a server refuses, as the exception that Python callers get of a database.

`code` in the problem is the name of our exception; `about` is what it carries besides its message. What HTTP itself
refuses has an exception of the same meaning: a server that has no time is a store that is busy. A code that this
version does not know is a plain UnstuckError.
"""

from __future__ import annotations

import inspect
import json
from typing import Any, NamedTuple

from unstuck.client.wire import ServerAnswer
from unstuck.model import errors
from unstuck.model.errors import NotPermitted, StoreBusy, UnstuckError, told

#: Codes of HTTP's own, and what they mean to a caller.
_OF_HTTP: dict[str, type[UnstuckError]] = {
    "Forbidden": NotPermitted,
    "CrossSite": NotPermitted,
    "NotSecure": NotPermitted,
    "TooManyRequests": StoreBusy,
    "Overloaded": StoreBusy,
    "NotReady": StoreBusy,
}
#: Nothing was done, and a later try may succeed.
LATER = frozenset({"TooManyRequests", "Overloaded", "NotReady", "StoreUnavailable", "StoreBusy", "StoreLocked"})
#: It may have been done.
UNKNOWN = frozenset({"OutcomeUnknown", "ServerError"})


class ToldProblem(NamedTuple):
    """`code` is empty if no server of ours wrote it: a proxy did, or something else is at the address."""

    status: int
    code: str
    error: UnstuckError
    #: Seconds until it is worth another try, if the server says so.
    retry_after: float | None

    @classmethod
    def of(cls, answer: ServerAnswer, address: str) -> ToldProblem:
        after = _seconds(answer.headers.get("retry-after"))
        said = _object(answer)
        if said is None:
            return cls(answer.status, "", _foreign(answer, address), after)
        return cls(answer.status, _text(said, "code"), error_of(said), after)


def error_of(said: dict[str, Any]) -> UnstuckError:
    """The exception that a problem tells. What the request was called, and what to do, stand in its attributes."""
    code, detail = _text(said, "code"), _text(said, "detail") or _text(said, "title")
    kind = _OF_HTTP.get(code) or getattr(errors, code, None)
    remedy, request_id = _text(said, "remedy"), _text(said, "request_id")
    made: UnstuckError
    if isinstance(kind, type) and issubclass(kind, UnstuckError):
        made = _made(kind, detail, said)
    else:
        made = UnstuckError("; ".join(text for text in (_text(said, "title"), detail, remedy) if text))
    made.__dict__.update(code=code, remedy=remedy, request_id=request_id)
    if request_id:
        made.add_note(f"request {request_id}")
    return made


def _made(kind: type[UnstuckError], detail: str, said: dict[str, Any]) -> UnstuckError:
    """Not by its constructor: that would write the message anew, from what is known here."""
    made = kind.__new__(kind)
    made.args = (detail,)  # said apart: those that are OSErrors too take none by `__new__`
    about = said.get("about")
    carried = dict.fromkeys([*inspect.signature(kind).parameters][1:]) if "__init__" in vars(kind) else {}
    for name, value in {**carried, **(about if isinstance(about, dict) else {})}.items():
        if name.isidentifier() and not name.startswith("_"):
            made.__dict__[name] = tuple(value) if isinstance(value, list) else value
    if kind is errors.WrongArguments:
        listed = said.get("errors")
        made.__dict__["problems"] = tuple(
            (_text(one, "in"), _text(one, "pointer"), _text(one, "detail"))
            for one in (listed if isinstance(listed, list) else ())
            if isinstance(one, dict)
        )
    return made


def _foreign(answer: ServerAnswer, address: str) -> UnstuckError:
    """What no server of ours answers."""
    if 300 <= answer.status < 400:
        place = answer.headers.get("location", "elsewhere")
        return UnstuckError(f"{address} sends its callers to {told(place)}; give that address, if you trust it")
    what = answer.headers.get("content-type", "nothing that names its type")
    kind = StoreBusy if answer.status in (429, 502, 503, 504) else UnstuckError
    return kind(f"{address} answered {answer.status} with {told(what)}: is this the address of an unstuck server?")


def _object(answer: ServerAnswer) -> dict[str, Any] | None:
    if answer.headers.get("content-type", "").partition(";")[0].strip() != "application/problem+json":
        return None
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and isinstance(said.get("code"), str) else None


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    return told(value, 4000) if isinstance(value, str) and value else ""


def _seconds(text: str | None) -> float | None:
    """A date in its place is as good as nothing: clocks differ."""
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 8 else None
