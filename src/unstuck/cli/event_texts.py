"""What events mean, in words for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from unstuck.cli.output import duration, rfc3339
from unstuck.model.lifecycle import EventKind
from unstuck.model.news import NewsKind
from unstuck.views.meaning import one_line


class Happened(Protocol):
    """An event of a job, from its history or from the feed."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


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
    NewsKind.WORKER_JOINED: "joined",
    NewsKind.WORKER_LEFT: "left",
    NewsKind.WORKER_LOST: "was lost",
    NewsKind.TARGET_BLOCKED: "is blocked",
    NewsKind.TARGET_FREED: "is free again",
    NewsKind.PAUSE_BEGUN: "a pause begins",
    NewsKind.PAUSE_ENDED: "a pause is over",
    NewsKind.BLACKLIST_ADDED: "was blacklisted",
    NewsKind.BLACKLIST_REMOVED: "is no longer blacklisted",
    NewsKind.APPROVAL_ASKED: "asks for an approval",
    NewsKind.APPROVAL_DECIDED: "an approval was decided",
    NewsKind.NOTIFICATION: "notification",
    NewsKind.SIGNATURE_REFUSED: "a signature was refused",
    NewsKind.DEAD_LETTER: "is a dead letter",
    NewsKind.ALERT_OPENED: "alert",
    NewsKind.ALERT_CLOSED: "an alert is over",
    NewsKind.SCHEDULE_FIRED: "a schedule fired",
    NewsKind.SCHEDULE_NOT_FIRED: "a tick of a schedule made no job",
    NewsKind.SCHEDULE_SILENT: "a schedule fell silent",
    NewsKind.SCHEDULE_PAUSED: "a schedule is paused",
    NewsKind.SCHEDULE_RESUMED: "a schedule goes on",
}
#: Facts that every event of a kind carries or that `jobs show` prints elsewhere.
_UNTOLD = {"output", "stack", "result", "traceback", "duration_ms", "claim", "worker", "alone", "loss", "failure"}
#: So much of an error is told, more than of other facts: it may name the culprit at its end.
_MOST_OF_AN_ERROR = 400
_OF_AN_ERROR = {"error_type", "error_message"}
_OF_A_CANCEL = {"by", "reason", *_OF_AN_ERROR}


def narrate(event: Happened) -> str:
    """An event as a sentence with its facts."""
    if event.kind == EventKind.PARKED and "wait" in event.data:
        return f"parked: {_asked(event.data)}, until {_instant(event.data.get('until'))}"
    if event.kind == EventKind.WOKEN and "answer" in event.data:
        return f"woken: {_answered(event.data)}"
    known = {kind.value: text for kind, text in _SENTENCES.items()}
    sentence, untold = known.get(event.kind, event.kind), _UNTOLD
    if event.kind == EventKind.CANCELLED and event.data.get("error_message"):  # it says by whom, and why
        sentence, untold = one_line(event.data["error_message"], _MOST_OF_AN_ERROR), _UNTOLD | _OF_A_CANCEL
    elif event.data.get("error_type"):
        sentence, untold = f"{sentence}: {_error(event.data)}", _UNTOLD | _OF_AN_ERROR
    shown = {k: _fact(k, v) for k, v in event.data.items() if k not in untold and v not in (None, "")}
    facts = ", ".join(f"{name} {value}" for name, value in shown.items())
    return f"{sentence} ({facts})" if facts else sentence


def _asked(data: Mapping[str, object]) -> str:
    """What a job that parks waits for."""
    name = one_line(data.get("name") or "?")
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
    name, by = one_line(data.get("name") or "?"), one_line(data.get("by") or "?")
    comment = f": {one_line(data['comment'])}" if data.get("comment") else ""
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
    message = one_line(data.get("error_message") or "", _MOST_OF_AN_ERROR)
    return f"{one_line(data['error_type'])}: {message}".removesuffix(": ")


def _fact(name: str, value: object) -> str:
    return duration(value) if name == "delay" and isinstance(value, int | float) else one_line(value)


def _instant(value: object) -> str:
    """Spelled as the instants beside it; what an older version wrote in another way is told as it is."""
    try:
        return rfc3339(datetime.fromisoformat(str(value))) or ""
    except ValueError:
        return one_line(value)
