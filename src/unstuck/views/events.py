"""What the data of each kind of event holds: for whoever reads histories and the feed with a program.

A field that has nothing to say is left out. Additions may come, changes do not. The reference and
`docs/events.schema.json` are drawn from here; every journey of the tests is checked against it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from unstuck.model.alerts import Severity
from unstuck.model.lifecycle import EventKind, RequestKind
from unstuck.model.news import NewsKind
from unstuck.model.schedules import FiringKind, FiringOutcome
from unstuck.model.signing import SignatureProblem
from unstuck.model.waits import Answer, WaitKind

By = Annotated[str, Meta(description="who did it: a person, a worker, a duty of the janitor")]
Bulk = Annotated[int, Meta(description="the number of the bulk that it was part of")]
ErrorKind = Annotated[str, Meta(description="the type of the error")]
Message = Annotated[str, Meta(description="its message")]
Reason = Annotated[str, Meta(description="what the person who asked said")]
Request = Annotated[RequestKind, Meta(description="what it was asked for")]
Claim = Annotated[str, Meta(description="which claim took it, where its worker itself tells")]
Waited = Annotated[WaitKind, Meta(description="what it waits for, or waited")]
WaitName = Annotated[str, Meta(description="the name of the event, or the question")]
WaitKey = Annotated[str, Meta(description="which of its waits it is")]


class NoData(Struct, frozen=True, kw_only=True):
    """Nothing."""


class ByPerson(NoData, frozen=True, kw_only=True):
    by: By | UnsetType = UNSET
    bulk: Bulk | UnsetType = UNSET


class ClaimedData(NoData, frozen=True, kw_only=True):
    by: By
    claim: Claim
    code_version: Annotated[str | None, Meta(description="of the worker's code")]


class EndData(NoData, frozen=True, kw_only=True):
    """How an attempt ended, or a job that had none open."""

    by: By
    claim: Claim | UnsetType = UNSET
    worker: Annotated[str, Meta(description="the name of the attempt's worker")] | UnsetType = UNSET
    error_type: ErrorKind | UnsetType = UNSET
    error_message: Message | UnsetType = UNSET
    duration_ms: Annotated[int, Meta(description="how long the attempt ran")] | UnsetType = UNSET
    request: Request | UnsetType = UNSET
    delay: Annotated[float, Meta(description="seconds until the next try")] | UnsetType = UNSET
    failure: Annotated[int, Meta(description="1: it counts as a failure")] | UnsetType = UNSET
    loss: Annotated[int, Meta(description="1: it counts as a loss")] | UnsetType = UNSET
    suspect: Annotated[int, Meta(description="1: it counts as a run that may have frozen others")] | UnsetType = UNSET
    alone: Annotated[bool, Meta(description="its next attempt has a process of its own")] | UnsetType = UNSET
    late: Annotated[bool, Meta(description="the result came after the time limit")] | UnsetType = UNSET


class StoppedData(EndData, frozen=True, kw_only=True):
    bulk: Bulk | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


class WaitedFor(NoData, frozen=True, kw_only=True):
    wait: Waited
    name: WaitName | UnsetType = UNSET
    key: WaitKey


class FailedData(EndData, frozen=True, kw_only=True):
    wait: Waited | UnsetType = UNSET
    name: WaitName | UnsetType = UNSET
    key: WaitKey | UnsetType = UNSET


class ParkedData(EndData, frozen=True, kw_only=True):
    wait: Waited
    name: WaitName | UnsetType = UNSET
    key: WaitKey
    until: Annotated[datetime, Meta(description="when the wait ends by itself", tz=True)]


class WokenData(WaitedFor, frozen=True, kw_only=True):
    answer: Annotated[Answer, Meta(description="what ended the wait")]
    by: By
    comment: Annotated[str, Meta(description="what the person who decided said")] | UnsetType = UNSET
    answered_at: Annotated[datetime, Meta(description="when that was", tz=True)] | UnsetType = UNSET


class HeldData(NoData, frozen=True, kw_only=True):
    hold: Annotated[Literal[True], Meta(description="until a person releases it")] | UnsetType = UNSET
    after: Annotated[list[str], Meta(description="until these jobs have ended")] | UnsetType = UNSET
    by: By | UnsetType = UNSET
    error_type: ErrorKind | UnsetType = UNSET
    error_message: Message | UnsetType = UNSET


class ReleasedData(ByPerson, frozen=True, kw_only=True):
    force: Annotated[Literal[True], Meta(description="whether or not others have ended")] | UnsetType = UNSET


class ResumedData(ByPerson, frozen=True, kw_only=True):
    from_start: Annotated[Literal[True], Meta(description="its finished steps are forgotten")] | UnsetType = UNSET


class RedrivenData(ByPerson, frozen=True, kw_only=True):
    resigned: Annotated[Literal[True], Meta(description="it has another signature")] | UnsetType = UNSET


class RequestedData(ByPerson, frozen=True, kw_only=True):
    request: Request
    reason: Reason | UnsetType = UNSET


class ReprioritisedData(ByPerson, frozen=True, kw_only=True):
    priority: Annotated[int, Meta(description="its priority from now on")]
    was: Annotated[int, Meta(description="its priority before")]


class SkippedData(ByPerson, frozen=True, kw_only=True):
    target: Annotated[str, Meta(description="the target that moves on")]


class WorkerData(NoData, frozen=True, kw_only=True):
    """The worker's name is the event's `worker`."""

    number: Annotated[int, Meta(description="names it where two have the same name")]
    host: Annotated[str, Meta(description="where it runs")]
    pid: Annotated[int, Meta(description="its process there")]


class WorkerJoinedData(WorkerData, frozen=True, kw_only=True):
    queues: Annotated[list[str], Meta(description="what it serves; none: all of them")]
    code_version: Annotated[str, Meta(description="of its code")]


class WorkerLostData(WorkerData, frozen=True, kw_only=True):
    reason: Annotated[str, Meta(description="what its neighbours saw, or it said last")] | UnsetType = UNSET


class FreedData(NoData, frozen=True, kw_only=True):
    by: By | UnsetType = UNSET


class PauseEndedData(NoData, frozen=True, kw_only=True):
    pause: Annotated[Literal["queue", "workflow", "tenant", "target"], Meta(description="what is paused")]
    name: Annotated[str, Meta(description="its name")]
    by: By
    reason: Reason | UnsetType = UNSET


class PauseBegunData(PauseEndedData, frozen=True, kw_only=True):
    until: Annotated[datetime, Meta(description="when it ends by itself", tz=True)] | UnsetType = UNSET


class BlacklistAddedData(NoData, frozen=True, kw_only=True):
    number: Annotated[int, Meta(description="of the entry")]
    by: By
    reason: Annotated[str, Meta(description="why it is there")]
    stuck_count: Annotated[int, Meta(description="how many attempts had got stuck")] | UnsetType = UNSET


class BlacklistRemovedData(NoData, frozen=True, kw_only=True):
    number: Annotated[int, Meta(description="of the entry")]
    by: By
    why: Annotated[str, Meta(description="why it went")] | UnsetType = UNSET


class QuestionData(NoData, frozen=True, kw_only=True):
    key: WaitKey
    question: Annotated[str, Meta(description="what is to be decided")]


class ApprovalAskedData(QuestionData, frozen=True, kw_only=True):
    who: Annotated[list[str], Meta(description="who may decide; left out: anybody")] | UnsetType = UNSET
    until: Annotated[datetime, Meta(description="when the wait ends by itself", tz=True)]


class ApprovalDecidedData(QuestionData, frozen=True, kw_only=True):
    answer: Annotated[Answer, Meta(description="approved, rejected, or what the end of its time means")]
    by: By
    comment: Annotated[str, Meta(description="what the person who decided said")] | UnsetType = UNSET


class NotificationData(NoData, frozen=True, kw_only=True):
    number: Annotated[int, Meta(description="of the notification")]
    severity: Annotated[str, Meta(description="how bad it is")]
    title: Annotated[str, Meta(description="in a few words")]
    message: Annotated[str, Meta(description="what happened, and what to do")]
    link: Annotated[str, Meta(description="where to look")]


class SignatureRefusedData(NoData, frozen=True, kw_only=True):
    problem: Annotated[SignatureProblem, Meta(description="why its signature does not hold")]
    message: Message


class DeadLetterData(NoData, frozen=True, kw_only=True):
    reason: Annotated[str, Meta(description="a code: why it is one")]
    message: Annotated[str, Meta(description="what happened")]


class AlertData(NoData, frozen=True, kw_only=True):
    number: Annotated[int, Meta(description="of the alert")]
    rule: Annotated[str, Meta(description="by which it was found")]
    severity: Annotated[Severity, Meta(description="how bad it is")]
    subject: Annotated[str, Meta(description="what it is about")]
    title: Annotated[str, Meta(description="in a few words")]


class AlertOpenedData(AlertData, frozen=True, kw_only=True):
    message: Annotated[str, Meta(description="what is wrong, and what to do")]
    link: Annotated[str, Meta(description="where to look")]


class AlertClosedData(AlertData, frozen=True, kw_only=True):
    open_ms: Annotated[int, Meta(description="how long it was open")]


class ScheduleData(NoData, frozen=True, kw_only=True):
    schedule: Annotated[str, Meta(description="its name")]


class ScheduleTickData(ScheduleData, frozen=True, kw_only=True):
    tick: Annotated[datetime, Meta(description="the tick, or the last of those that were missed", tz=True)]
    firing: Annotated[FiringKind, Meta(description="what brought it about")]
    by: By | UnsetType = UNSET


class ScheduleNotFiredData(ScheduleTickData, frozen=True, kw_only=True):
    outcome: Annotated[FiringOutcome, Meta(description="what came of it instead of a job")]
    reason: Annotated[str, Meta(description="why")] | UnsetType = UNSET
    ticks: Annotated[int, Meta(description="for how many ticks it stands")] | UnsetType = UNSET


class ScheduleSilentData(ScheduleData, frozen=True, kw_only=True):
    ticks: Annotated[int, Meta(description="so many in a row made no job")]
    reason: Annotated[str, Meta(description="why the last one made none")] | UnsetType = UNSET


class ScheduleResumedData(ScheduleData, frozen=True, kw_only=True):
    by: By


class SchedulePausedData(ScheduleResumedData, frozen=True, kw_only=True):
    until: Annotated[datetime, Meta(description="when it ends by itself", tz=True)] | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


#: The struct of each kind's data. What is published has its publisher's.
DATA: dict[EventKind | NewsKind, type[NoData]] = {
    EventKind.SUBMITTED: NoData,
    EventKind.RELEASED: ReleasedData,
    EventKind.CLAIMED: ClaimedData,
    EventKind.GIVEN_BACK: EndData,
    EventKind.COMPLETED: EndData,
    EventKind.RETRIED: EndData,
    EventKind.LOST: EndData,
    EventKind.FAILED: FailedData,
    EventKind.STUCK: EndData,
    EventKind.TIMED_OUT: EndData,
    EventKind.CANCELLED: StoppedData,
    EventKind.INTERRUPTED: StoppedData,
    EventKind.PARKED: ParkedData,
    EventKind.WOKEN: WokenData,
    EventKind.HELD: HeldData,
    EventKind.BURIED: EndData,
    EventKind.RESUMED: ResumedData,
    EventKind.RESOLVED: ByPerson,
    EventKind.REDRIVEN: RedrivenData,
    EventKind.REQUESTED: RequestedData,
    EventKind.HURRIED: ByPerson,
    EventKind.REPRIORITISED: ReprioritisedData,
    EventKind.SKIPPED: SkippedData,
    EventKind.UNHELD: ReleasedData,
    NewsKind.WORKER_JOINED: WorkerJoinedData,
    NewsKind.WORKER_LEFT: WorkerData,
    NewsKind.WORKER_LOST: WorkerLostData,
    NewsKind.TARGET_BLOCKED: NoData,
    NewsKind.TARGET_FREED: FreedData,
    NewsKind.PAUSE_BEGUN: PauseBegunData,
    NewsKind.PAUSE_ENDED: PauseEndedData,
    NewsKind.BLACKLIST_ADDED: BlacklistAddedData,
    NewsKind.BLACKLIST_REMOVED: BlacklistRemovedData,
    NewsKind.APPROVAL_ASKED: ApprovalAskedData,
    NewsKind.APPROVAL_DECIDED: ApprovalDecidedData,
    NewsKind.NOTIFICATION: NotificationData,
    NewsKind.SIGNATURE_REFUSED: SignatureRefusedData,
    NewsKind.DEAD_LETTER: DeadLetterData,
    NewsKind.ALERT_OPENED: AlertOpenedData,
    NewsKind.ALERT_CLOSED: AlertClosedData,
    NewsKind.SCHEDULE_FIRED: ScheduleTickData,
    NewsKind.SCHEDULE_NOT_FIRED: ScheduleNotFiredData,
    NewsKind.SCHEDULE_SILENT: ScheduleSilentData,
    NewsKind.SCHEDULE_PAUSED: SchedulePausedData,
    NewsKind.SCHEDULE_RESUMED: ScheduleResumedData,
}


def kind_of(kind: str) -> EventKind | NewsKind:
    """ValueError for what is published."""
    return NewsKind(kind) if "." in kind else EventKind(kind)


def data_of(kind: str, data: dict[str, Any]) -> NoData:
    """The data of an event, typed; msgspec.ValidationError if it is not what its kind holds."""
    return msgspec.convert(data, DATA[kind_of(kind)], strict=True)


def schema() -> dict[str, Any]:
    """One JSON Schema for all kinds: an event's data by its kind, under `properties`."""
    found, components = msgspec.json.schema_components(DATA.values(), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The data of the feed's events, by their kind",
        "type": "object",
        "properties": {kind.value: ref for kind, ref in zip(DATA, found, strict=True)},
        "$defs": components,
    }
