"""What a parked job waits for: an event, a person's decision, a time, its children.

Theory of operation. A wait is asked for by a handler, which then unwinds: its attempt ends *parked*, and the job
holds neither slot nor lease. A wait is known by its key within its run, so that the handler, run again from the top,
finds it answered. It is answered once, by the first of these: an event, a decision, the last of the children, or its
deadline; what the answer means for the job (go on, or fail) is decided here.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

from unstuck.model.policy import Policy
from unstuck.records import dataclass

#: Of one job, over all its runs.
MOST_STEPS: Final = 10_000
#: Of one run: each wake reads what the run has waited for before.
MOST_WAITS: Final = 10_000
TOO_MANY_WAITS: Final = (
    f"one wait too many: a run of a job waits {MOST_WAITS:,} times at most. For what never ends make each round a "
    "job of its own: a step at its end enqueues the next one, using(delay=…)"
)
#: Behind a name that nobody gave: whose shell a command was typed into.
BY_SHELL: Final = " (cli)"
#: What becomes of a wait whose time has passed: the job fails, or goes on with an answer that was agreed beforehand.
OnTimeout = Literal["fail", "reject", "approve", "default"]


class WaitKind(StrEnum):
    EVENT = "event"
    APPROVAL = "approval"
    TIME = "time"
    CHILDREN = "children"


class Answer(StrEnum):
    """How a wait ended."""

    EVENT = "event"
    APPROVED = "approved"
    REJECTED = "rejected"
    DUE = "due"
    ENDED = "ended"
    DEFAULT = "default"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Wait:
    """What a handler asks for. `name`: the event's name, or the question. `timeout` None: the policy's. `until`: an
    instant as microseconds since 1970, of kind TIME only. `topic`: where the event is sent to, None for the job
    itself. `children`: ids, of kind CHILDREN only. `default`: JSON text, of `on_timeout="default"` only."""

    kind: WaitKind
    key: str
    name: str = ""
    timeout: float | None = None
    until: int | None = None
    topic: str | None = None
    who: tuple[str, ...] = ()
    on_timeout: OnTimeout = "fail"
    default: str | None = None
    children: tuple[str, ...] = ()
    release_target: bool = False

    def limit(self, policy: Policy) -> float:
        """Seconds; every wait has an end."""
        if self.timeout is not None:
            return self.timeout
        match self.kind:
            case WaitKind.APPROVAL:
                return policy.approval_timeout
            case WaitKind.CHILDREN:
                return policy.gather_timeout
            case _:
                return policy.wait_timeout


@dataclass(frozen=True, slots=True)
class WaitRecord:
    """A wait as it stands. `answer` None: still open. `payload`: JSON text; of children a list, one entry each."""

    job: str
    run: int
    wait: Wait
    asked_at: datetime
    until_at: datetime
    answer: Answer | None = None
    payload: str | None = None
    answered_at: datetime | None = None
    by: str | None = None
    comment: str | None = None
    #: Of lists of approvals: whose it is.
    tenant: str = ""
    workflow: str = ""
    #: Of lists: where the next page begins, whatever becomes of this wait meanwhile.
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step that was finished: its result is JSON text."""

    name: str
    ordinal: int
    result: str
    run: int
    token: int
    at: datetime
    duration_ms: int


@dataclass(frozen=True, slots=True)
class Child:
    """A job that another one spawned, under this name and ordinal."""

    id: str
    name: str
    ordinal: int
    run: int
    state: str
    workflow: str = ""
    parent: str = ""
    #: Told where children are listed.
    queue: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """A yes to an approval: whose, with which words, and when. `by` is "timeout" where silence meant yes."""

    by: str | None
    comment: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class ChildRef:
    """A job that this one has spawned, to be gathered."""

    id: str


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended that did not complete."""

    id: str
    state: str
    error_type: str | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """What an attempt finds of the attempts before it: all finished steps, this run's answered waits, its children.
    `after`: where the next page begins; None when this was the last."""

    steps: tuple[StepRecord, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    children: tuple[Child, ...] = ()
    used: dict[str, float] = field(default_factory=dict)
    after: int | None = None


@dataclass(frozen=True, slots=True)
class TreeSpent:
    """What `job` and all jobs below it have used in its present run, and may use together."""

    job: str
    used: dict[str, float]
    budget: dict[str, float]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a job has used of each unit in this run, and may use; `exceeded`: the message once it is too much."""

    used: dict[str, float]
    budget: dict[str, float]
    exceeded: str | None = None
    #: Of the trees that it is charged to; its own first, if its budget is its tree's.
    trees: tuple[TreeSpent, ...] = ()


@dataclass(frozen=True, slots=True)
class Signalled:
    """What became of an event: `job` whose wait it answered, None while it is kept for a wait that may come.
    `is_repeat`: its id was known, and this is what became of it the first time."""

    job: str | None
    number: int
    is_repeat: bool = False


def timeout_message(record: WaitRecord, limit: float, missing: tuple[str, ...] = ()) -> str:
    """Names what was waited for, and for how long."""
    wait = record.wait
    match wait.kind:
        case WaitKind.APPROVAL:
            return f"nobody decided {wait.name!r} within {limit:g} seconds"
        case WaitKind.CHILDREN:
            shown = ", ".join(missing[:10]) + (", …" if len(missing) > 10 else "")
            return f"{len(missing)} of {len(wait.children)} children had not ended after {limit:g} seconds: {shown}"
        case _:
            where = f" on topic {wait.topic!r}" if wait.topic else ""
            return f"event {wait.name!r}{where} did not come within {limit:g} seconds"


def spec_of(wait: Wait) -> dict[str, Any]:
    """What is stored of it as JSON, beside the columns that are asked for."""
    spec: dict[str, Any] = {"timeout": wait.timeout, "who": list(wait.who), "on_timeout": wait.on_timeout}
    spec |= {"default": wait.default, "children": list(wait.children), "release_target": wait.release_target}
    return {name: value for name, value in spec.items() if value not in (None, [], False)}
