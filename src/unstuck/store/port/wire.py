"""Wire: how the worker's port is written for HTTP, for both ends of it.

Most verbs are taken from the port itself: a body has a field for each of their parameters, an answer is what they
return. `worker` and `incarnation` say who asks. What JSON cannot tell apart (how an attempt ended) has a form of its
own here. Nothing in here trusts what it reads: types are checked, and what is not known is refused.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Final, get_type_hints

import msgspec

from unstuck.model.errors import InvalidInput
from unstuck.model.job import AttemptRef, ClaimedJob, WorkerRecord, WorkflowRecord
from unstuck.model.schedules import DeclaredSchedule
from unstuck.model.settlement import Lost, NotStarted, Outcome, Parked, Raised, Returned, Stopped, Stuck
from unstuck.records import dataclass
from unstuck.store.port.remote import ControlNews, Grant, Wanted
from unstuck.store.port.worker import NewWorker, Report, Settled, Verdict, WorkerPort

#: What both ends say of themselves. One apart is understood, more is refused. 2: a registration is answered with the
#: grant, workflows come with their app, schedules are declared. 3: large payloads come when they are asked for.
PROTOCOL: Final = 3
DECLARES: Final = 2
FETCHES: Final = 3
#: Under the API's own prefix.
PATH: Final = "/worker"
#: Behind it: whether a key may see what workers tell of themselves.
READER: Final = "reader"
#: Bytes of one body: the largest result, escaped, and what is said about it.
MOST_BYTES: Final = 24 << 20
#: Characters of payloads in one answer, or those of a single job: on a link with 200 kB/s it is there in time to be
#: acknowledged.
MOST_PAYLOADS: Final = 512 << 10
#: Reports, steps or outputs in one body.
MOST_AT_ONCE: Final = 1000
#: Seconds for which a poll may wait.
LONGEST_WAIT: Final = 30.0

#: Verbs of the port whose bodies and answers follow from it.
VERBS: Final = (
    "probe", "now", "renew", "reconcile", "ask", "keep_output", "journal", "record_steps", "spend", "keep_part",
    "publish_from", "spawn", "gather", "lift_body_mark", "answer_order", "unregister_worker", "fence_worker",
    "notify",
)  # fmt: skip


class RemoteBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who asks; every body says it."""

    worker: int
    incarnation: str


class RegisterBody(msgspec.Struct, forbid_unknown_fields=True):
    protocol: int
    worker: NewWorker


class RegisterAnswer(msgspec.Struct):
    protocol: int
    worker: WorkerRecord
    grant: Grant = Grant()


class WorkflowsBody(RemoteBody, omit_defaults=True):
    workflows: tuple[WorkflowRecord, ...]
    queues: tuple[str, ...]
    app: str | None = None


class WorkflowsAnswer(msgspec.Struct):
    """`held`: of which not all could be written now."""

    held: frozenset[str]


class DeclareBody(RemoteBody):
    app: str
    origin: str
    code_version: str
    declared: tuple[DeclaredSchedule, ...]


class DeclareAnswer(msgspec.Struct):
    """`refused`: in words."""

    refused: tuple[str, ...]


class TakeBody(RemoteBody, omit_defaults=True):
    """`fetches`: it asks for the payloads that its answer leaves out."""

    claim: str
    wanted: Wanted
    again: bool = False
    fetches: bool = False


class TakeAnswer(msgspec.Struct):
    jobs: tuple[ClaimedJob, ...]


class AcknowledgeBody(RemoteBody):
    claim: str
    offers: tuple[AttemptRef, ...]


class PayloadsBody(RemoteBody):
    refs: tuple[AttemptRef, ...]


class PayloadsAnswer(msgspec.Struct):
    """Of the first of those that were asked for; None: it is no longer held."""

    payloads: tuple[str | None, ...]


class AcknowledgeAnswer(msgspec.Struct):
    verdicts: tuple[Verdict, ...]


class ControlBody(RemoteBody):
    """`seen`: what the last answer was called; the next one comes when it differs."""

    seen: str = ""
    wait: float = 0.0


class ControlAnswer(msgspec.Struct):
    seen: str
    news: ControlNews


class HelloAnswer(msgspec.Struct):
    """`verifies`: it holds signing keys; a server that does not know the word has none."""

    protocol: int
    version: str
    verifies: bool = False


_OUTCOMES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Returned, Raised, Stopped, NotStarted, Lost, Stuck, Parked)
}


class ReportWire(msgspec.Struct, forbid_unknown_fields=True):
    """A Report; `kind` names how the attempt ended, `facts` are the fields of that."""

    ref: AttemptRef
    kind: str
    facts: dict[str, Any]
    duration_ms: int | None = None
    output: str | None = None
    has_target: bool = False
    span: str | None = None

    @classmethod
    def of(cls, report: Report) -> ReportWire:
        kind, facts = type(report.outcome).__name__, msgspec.to_builtins(report.outcome)
        return cls(report.ref, kind, facts, report.duration_ms, report.output, report.has_target, report.span)

    def report(self) -> Report:
        kind = _OUTCOMES.get(self.kind)
        if kind is None:
            raise InvalidInput(f"{self.kind[:50]!r} is no way in which an attempt ends")
        try:
            outcome: Outcome = msgspec.convert(self.facts, kind)
        except msgspec.ValidationError as problem:
            raise InvalidInput(f"how an attempt ended cannot be read: {problem}") from None
        return Report(self.ref, outcome, self.duration_ms, self.output, self.has_target, self.span)


class SettleBody(RemoteBody):
    reports: tuple[ReportWire, ...]


class SettleAnswer(msgspec.Struct):
    settled: tuple[Settled, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the port: the type of its body, and of its answer. `takes_worker`: the port's own has it too."""

    name: str
    body: type[Any]
    answer: Any
    takes_worker: bool


@functools.cache
def verbs() -> dict[str, Verb]:
    return {name: _verb(name) for name in VERBS}


def _verb(name: str) -> Verb:
    function = getattr(WorkerPort, name)
    hints = get_type_hints(function)
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    fields: list[Any] = []
    for each in parameters:
        if each.name != "worker":
            known = (each.name, hints[each.name])
            fields.append(known if each.default is inspect.Parameter.empty else (*known, each.default))
    fields.sort(key=len)
    body = msgspec.defstruct(f"{name.title().replace('_', '')}Body", fields, bases=(RemoteBody,), kw_only=True)
    takes_worker = any(each.name == "worker" for each in parameters)
    return Verb(name, body, hints["return"], takes_worker)


def encoded(value: Any) -> bytes:
    """What handlers print may be no text that UTF-8 can say; of such the rest is told."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_sayable(msgspec.to_builtins(value)))


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_sayable(key): _sayable(each) for key, each in value.items()}
    return [_sayable(each) for each in value] if isinstance(value, list | tuple) else value


def decoded(kind: Any, body: bytes, what: str) -> Any:
    """InvalidInput for what is not of this kind."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidInput(f"{what} cannot be read: {problem}") from None
