"""What executors say, held to be hostile: bounded, storable and plausible, or BadFrame."""

from __future__ import annotations

import math

import msgspec

from unstuck.executor.messages import BadFrame, Raise, Return, Say, Stop
from unstuck.executor.messages import LeftBehind as Leaves
from unstuck.model.errors import NotStorable
from unstuck.model.lifecycle import RequestKind
from unstuck.model.payload import clean_text, decode
from unstuck.model.settlement import ErrorInfo, Outcome, Raised, Returned, Stopped
from unstuck.worker.processes import LeftBehind

MAX_TEXT = 64 << 10
MAX_NAME = 200
MAX_THREADS = 50
_json_syntax = msgspec.json.Decoder(msgspec.Raw)


def outcome_of(message: Return | Raise | Stop, max_result: int) -> Outcome:
    match message:
        case Return():
            _check_result(message.result, max_result)
            return Returned(message.result)
        case Stop():
            return Stopped(_kind(message.asked), _bounded(message.message))
        case Raise():
            error = ErrorInfo(
                clean_text(message.type, 200), clean_text(message.message, MAX_TEXT), _bounded(message.stack)
            )
            return Raised(error, message.retry, _delay(message.after))


def output_of(message: Return | Raise | Stop) -> str | None:
    return None if message.output is None else clean_text(message.output, 2 * MAX_TEXT)


def said(message: Say) -> str:
    if message.kind == "progress":
        try:
            decode(message.text, "progress")
        except NotStorable as error:
            raise BadFrame(str(error)) from None
    return clean_text(message.text, MAX_TEXT)


def left_behind(executor: int, message: Leaves) -> LeftBehind:
    names = tuple(clean_text(name, MAX_NAME) for name in message.threads[:MAX_THREADS])
    return LeftBehind(executor, clean_text(message.workflow, MAX_NAME), names)


def _bounded(text: str | None) -> str | None:
    return None if text is None else clean_text(text, MAX_TEXT)


def _kind(asked: str | None) -> RequestKind | None:
    try:
        return None if asked is None else RequestKind(asked)
    except ValueError:
        raise BadFrame(f"it was asked {asked!r}") from None


def _delay(after: float | None) -> float | None:
    if after is not None and not 0.0 <= after < math.inf:
        raise BadFrame(f"a retry after {after} seconds")
    return after


def _check_result(text: str, limit: int) -> None:
    """Executors check results by the full rules; here only what a broken one could put into the database."""
    if len(text) > limit:
        raise BadFrame(f"a result of {len(text):,} characters; the limit is {limit:,}")
    try:
        if "\\u" in text or "\x00" in text:
            decode(text, "the result")
        else:
            _json_syntax.decode(text)
    except (msgspec.DecodeError, NotStorable, RecursionError) as error:
        raise BadFrame(f"a result that is not JSON: {error}") from None
