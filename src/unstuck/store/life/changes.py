"""Changes: what one transaction writes about jobs: gathered first, then written, a statement per table."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from unstuck.model.lifecycle import JobState
from unstuck.model.news import NewsItem
from unstuck.model.payload import clean_text
from unstuck.model.settlement import ErrorInfo
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.life.news import tell
from unstuck.store.order.line import promote
from unstuck.store.rows import packed

MAX_OUTPUT = 64 << 10
MAX_STACK = 64 << 10
MAX_MESSAGE = 8 << 10
MAX_ERROR_TYPE = 200

Columns = dict[str, Any]


@dataclass(slots=True)
class Changes:
    """Every list is one statement. A move and its event are always in the same Changes.

    `touched` are targets that this transaction has locked: they are promoted last, when all else is written.
    """

    closed: list[int] = field(default_factory=list)
    rests: list[Columns] = field(default_factory=list)
    ends: list[Columns] = field(default_factory=list)
    events: list[Columns] = field(default_factory=list)
    passes: list[Columns] = field(default_factory=list)
    blocks: list[Columns] = field(default_factory=list)
    line: list[Columns] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    timers: list[Columns] = field(default_factory=list)
    body_marks: list[Columns] = field(default_factory=list)
    outputs: list[Columns] = field(default_factory=list)
    inbox: list[Columns] = field(default_factory=list)
    news: list[NewsItem] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)

    def write(self, t: Transaction) -> bool:
        """True if something became claimable, or will with the next ingest."""
        told = 0
        if self.closed:
            t.run("close_attempts", jobs=self.closed)
        if self.rests:
            t.run("rest_jobs", rows=packed(self.rests))
        if self.ends:
            t.run("end_jobs", rows=packed(self.ends))
            told = t.run("tell_dependants", jobs=[end["job"] for end in self.ends])
        if self.passes:
            t.run("pass_turns", rows=packed(self.passes))
        if self.blocks:
            t.run("block_targets", rows=packed(self.blocks))
        if self.line:
            t.run("add_line", rows=packed(self.line))
        if self.ready:
            t.run("add_ready", jobs=self.ready)
        if self.timers:
            t.run("add_timers", rows=packed(self.timers))
        if self.body_marks:
            t.run("add_body_marks", rows=packed(self.body_marks))
        if self.events:
            t.run("add_events", rows=packed(self.events))
        if self.news:
            tell(t, self.news)
        if self.outputs:
            t.run("keep_outputs", rows=packed(self.outputs), cap=MAX_OUTPUT)
        if self.inbox:
            t.run("add_inbox", rows=packed(self.inbox))
        return promote(t, self.touched) > 0 or bool(self.ready or self.inbox or told)

    def tell(self, job: int, n: int, at: int, kind: str, run: int, token: int, data: dict[str, Any]) -> None:
        facts = {name: value for name, value in data.items() if value is not None}
        self.events.append(
            {"job": job, "number": n, "at": at, "kind": kind, "run": run, "token": token, "data": packed(facts)}
        )

    def queue(
        self,
        job: int,
        now: int,
        available_at: int,
        expires_at: int | None,
        *,
        route: int,
        target: int | None = None,
        place: int = 0,
        is_locked: bool = True,
        ahead: int | None = None,
    ) -> None:
        """Claimable now, in the line of its target, or by a timer; its stay in the queue may end by another.

        `is_locked`: this transaction holds its target's row and may promote; else an entry in the inbox asks the next
        ingest to do it. `ahead`: of an appointment, how far our time is from the clock; its timers move when that
        changes.
        """
        if available_at > now:
            self.timers.append(_timer("start", available_at, job, route, ahead))
        elif target is None:
            self.ready.append(job)
        else:
            self.line.append({"target": target, "place": place, "job": job, "route": route})
            if is_locked:
                self.touched.add(target)
            else:
                self.inbox.append({"target": target, "job": None})
        if expires_at is not None:
            self.timers.append(_timer("expire", expires_at, job, route, ahead if available_at > now else None))

    def keep_output(self, job: int, token: int, output: str | None, stack: str | None = None) -> None:
        if output or stack:
            self.outputs.append(
                {
                    "job": job,
                    "token": token,
                    "output": clean_text(output, MAX_OUTPUT) if output else None,
                    "stack": clean_text(stack, MAX_STACK) if stack else None,
                }
            )


def _timer(kind: str, due_at: int, job: int, route: int, ahead: int | None) -> Columns:
    appointed = None if ahead is None else due_at - ahead
    return {"kind": kind, "due_at": due_at, "job": job, "route": route, "appointed": appointed}


def cleaned(error: ErrorInfo | None) -> tuple[str | None, str | None]:
    """Type and message as they can be stored: a handler may raise anything."""
    if error is None:
        return None, None
    kind = " ".join(str(error.type).split())[:MAX_ERROR_TYPE]  # lists show it in a line
    return clean_text(kind, MAX_ERROR_TYPE), clean_text(str(error.message), MAX_MESSAGE)


def rest_of(row: Row, state: JobState, **changed: Any) -> Columns:
    """The jobs row of a job at rest after its next event: what is not said stays, times and errors go."""
    kept = {name: row[name] for name in ("run", "token", "failures", "losses", "suspects", "alone", "started")}
    blank = {"available_at": None, "expires_at": None, "error_type": None, "error_message": None}
    return {**kept, **blank, "job": row["number"], "state": state, "event_count": row["event_count"] + 1, **changed}


def done_of(job: int, row: Row, state: JobState, now: int, **said: Any) -> Columns:
    """The done row of a job that ends by its next event: what is not said was not there."""
    kept = {name: row[name] for name in ("route", "run", "token")}
    blank = dict.fromkeys(("worker", "claimed_at", "duration_ms", "result", "error_type", "error_message"))
    return {
        **blank,
        **kept,
        "job": job,
        "state": state,
        "event_count": row["event_count"] + 1,
        "finished_at": now,
        "late": 0,
        **said,
    }


def ahead_of(t: Transaction) -> int:
    """How far the engine's time is from the database's clock: an instant of that clock is later by this in the
    engine's time."""
    row = t.one("ahead")
    assert row is not None
    return int(row["ahead"])


def moment(t: Transaction) -> int:
    """The database's clock, read inside a transaction."""
    row = t.one("now")
    assert row is not None
    return int(row["now"])
