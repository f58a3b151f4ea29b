"""What states and events mean, in words for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from unstuck.cli.output import age, duration, rfc3339
from unstuck.model.errors import ErrorType
from unstuck.model.job import EventRecord, JobRecord
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.why import how_to_raise, how_to_try_again, of_tenant
from unstuck.views.flow import FeedEventView


def explain(record: JobRecord, now: datetime, *, is_skipped: bool = False) -> str:
    """One sentence: what this state means for this job, and what happens or can be done next."""
    match record.state:
        case JobState.FAILED | JobState.TIMEOUT | JobState.CANCELLED if is_skipped:
            return f"skipped: its target {record.target} went on without it; {_again(record)}"
        case JobState.PENDING if record.on_hold:
            return f"accepted, held back on purpose; let it go: {_command('jobs release', record)}"
        case JobState.PENDING:
            return "accepted, waits for other jobs to end"
        case JobState.QUEUED if record.held:
            return "waits until its last process is known to be gone"
        case JobState.QUEUED if record.available_at > now and record.failures:
            return f"failed {_times(record.failures)}, tried again {age(record.available_at, now)}"
        case JobState.QUEUED if record.available_at > now:
            return f"starts {age(record.available_at, now)}"
        case JobState.QUEUED if record.is_blocked:
            return f"a job that failed or paused blocks its target {record.target}: {_command('why', record)}"
        case JobState.QUEUED:
            return f"ready since {age(record.available_at, now)}; a worker that serves queue {record.queue} takes it"
        case JobState.RUNNING if record.request:
            asked = f"asked to stop ({record.request}) {age(record.requested_at, now)}"
            return f"{asked}; it has not ended yet: {_command('why', record)}"
        case JobState.RUNNING:
            return f"attempt #{record.token} on {record.worker or 'a worker'}"
        case JobState.WAITING:
            return f"parked: holds no slot; what it waits for: {_command('why', record)}"
        case JobState.PAUSED | JobState.FAILED | JobState.TIMEOUT if record.is_blocker:
            return f"and blocks target {record.target} until somebody resumes, resolves or skips it"
        case JobState.PAUSED:
            return f"interrupted; goes on with: {how_to_try_again(record)}"
        case JobState.COMPLETED:
            return "its result is stored" + (", after its time limit" if record.late else "")
        case JobState.FAILED if record.held:
            return (
                f"ignored its request to stop; its process is being ended. Where it was: {_command('stack', record)}"
            )
        case JobState.FAILED if record.error_type == ErrorType.EXECUTION_STUCK:
            return f"it got stuck. Where it was: {_command('stack', record)}; {_again(record)}"
        case JobState.FAILED if record.error_type == ErrorType.BUDGET_EXCEEDED:
            return (
                "it used more than it may\n"
                f"  with its whole budget anew, finished steps kept: {how_to_try_again(record)}\n"
                f"  all of it again, with a larger budget:           {how_to_raise(record)}"
            )
        case JobState.FAILED:
            return f"for good; {_again(record)}"
        case JobState.TIMEOUT:
            return f"stopped at its time limit; {_again(record)}"
        case JobState.CANCELLED:
            return _told(record.error_message or "by request").removeprefix("cancelled ")
        case JobState.DEAD:
            return "a dead letter: it was never run"


def _command(verb: str, record: JobRecord) -> str:
    """To paste as it stands."""
    return f"unstuck {verb} {record.id} {of_tenant(record.tenant)}".rstrip()


def _again(record: JobRecord) -> str:
    """As `why` says it: a retry would forget the finished steps."""
    return f"another try: {how_to_try_again(record)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_SENTENCES = {
    EventKind.SUBMITTED: "submitted",
    EventKind.RELEASED: "released",
    EventKind.CLAIMED: "claimed",
    EventKind.GIVEN_BACK: "given back, at no cost",
    EventKind.COMPLETED: "completed",
    EventKind.RETRIED: "failed, will be tried again",
    EventKind.LOST: "this attempt was lost, will run again",
    EventKind.FAILED: "failed for good",
    EventKind.STUCK: "stuck: did not answer its request for the whole grace",
    EventKind.TIMED_OUT: "stopped at its time limit",
    EventKind.CANCELLED: "cancelled",
    EventKind.INTERRUPTED: "interrupted",
    EventKind.PARKED: "parked",
    EventKind.WOKEN: "woken",
    EventKind.HELD: "held",
    EventKind.BURIED: "buried as a dead letter",
    EventKind.RESUMED: "resumed: a new run",
    EventKind.RESOLVED: "resolved by a person",
    EventKind.REDRIVEN: "redriven",
    EventKind.REQUESTED: "asked to stop",
    EventKind.HURRIED: "made due at once",
    EventKind.REPRIORITISED: "given another priority",
    EventKind.SKIPPED: "skipped: its target moves on without it",
    EventKind.UNHELD: "no longer held; still waits for other jobs",
}
#: Facts that every event of a kind carries or that `jobs show` prints elsewhere.
_UNTOLD = {"output", "stack", "result", "traceback", "duration_ms", "claim", "worker", "alone", "loss", "failure"}
#: So much of a fact is told; of an error more, for it may name the culprit at its end.
_MOST, _MOST_OF_AN_ERROR = 100, 400
_OF_AN_ERROR = {"error_type", "error_message"}
_OF_A_CANCEL = {"by", "reason", *_OF_AN_ERROR}


def narrate(event: EventRecord | FeedEventView) -> str:
    """An event as a sentence with its facts."""
    if event.kind == EventKind.PARKED and "wait" in event.data:
        return f"parked: {_asked(event.data)}, until {_instant(event.data.get('until'))}"
    if event.kind == EventKind.WOKEN and "answer" in event.data:
        return f"woken: {_answered(event.data)}"
    known = {kind.value: text for kind, text in _SENTENCES.items()}
    sentence, untold = known.get(event.kind, event.kind), _UNTOLD
    if event.kind == EventKind.CANCELLED and event.data.get("error_message"):  # it says by whom, and why
        sentence, untold = _told(event.data["error_message"], _MOST_OF_AN_ERROR), _UNTOLD | _OF_A_CANCEL
    elif event.data.get("error_type"):
        sentence, untold = f"{sentence}: {_error(event.data)}", _UNTOLD | _OF_AN_ERROR
    told = {k: _fact(k, v) for k, v in event.data.items() if k not in untold and v not in (None, "")}
    facts = ", ".join(f"{name} {value}" for name, value in told.items())
    return f"{sentence} ({facts})" if facts else sentence


def _asked(data: Mapping[str, object]) -> str:
    """What a job that parks waits for."""
    name = _told(data.get("name") or "?")
    match data["wait"]:
        case "event":
            return f"waits for event {name}"
        case "approval":
            return f'asks "{name}"'
        case "children":
            return "waits for its children"
        case _:
            return "waits for its time"


def _answered(data: Mapping[str, object]) -> str:
    name, by = _told(data.get("name") or "?"), _told(data.get("by") or "?")
    comment = f": {_told(data['comment'])}" if data.get("comment") else ""
    match data["answer"]:
        case "event":
            return f"event {name}, sent by {by}"
        case "approved" | "rejected" as answer:
            return f'"{name}" was {answer} by {by}{comment}'
        case "ended":
            return "its children have ended"
        case "default":
            return f"nobody answered {name}: it goes on with its default"
        case _:
            return "its time came"


def _error(data: Mapping[str, object]) -> str:
    return f"{_told(data['error_type'])}: {_told(data.get('error_message') or '', _MOST_OF_AN_ERROR)}".removesuffix(
        ": "
    )


def _fact(name: str, value: object) -> str:
    return duration(value) if name == "delay" and isinstance(value, int | float) else _told(value)


def _instant(value: object) -> str:
    """Spelled as the instants beside it; what an older version wrote in another way is told as it is."""
    try:
        return rfc3339(datetime.fromisoformat(str(value))) or ""
    except ValueError:
        return _told(value)


def _told(value: object, most: int = _MOST) -> str:
    text = str(value).replace("\n", " ")
    return text if len(text) <= most else text[: most - 1] + "…"
