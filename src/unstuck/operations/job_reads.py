"""What the operations about one job read, where that takes more than one question to the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from unstuck.intake import workers
from unstuck.intake.workers import Stack
from unstuck.model.errors import Conflict, NoStack
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, shown_state
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.redaction import NOTHING, Redaction
from unstuck.model.why import Why
from unstuck.model.why.facts import AwaitedJob
from unstuck.observe.why import why
from unstuck.operations.bounds import size_of_attempt, size_of_event
from unstuck.operations.table import Caller
from unstuck.store.port import ATTEMPTS_PAGE
from unstuck.views import shown
from unstuck.views.flow import ChildView, StepView, UsageView, WaitView
from unstuck.views.jobs import (
    AttemptView,
    AwaitedView,
    EventView,
    EventWhole,
    JobWhole,
    StackView,
    call_of,
    signer_of,
)
from unstuck.views.meaning import explain
from unstuck.views.workers import where_is


def why_not(caller: Caller, ident: str) -> Why:
    return why(caller.store, caller.one, ident, caller.times)


def whole(caller: Caller, name: str, last: int | None) -> JobWhole:
    """With its `last` attempts and events; None: with as many as are told at once."""
    found = caller.lookup.dossier(name, last)
    record, now = found.job, found.at
    awaited, blocked_by = _blockers(caller, record)
    hide = caller.redactions[record.workflow] if found.is_redacted else NOTHING
    args, kwargs = call_of(record, hide)
    return JobWhole.of(
        record,
        now,
        hide,
        meaning=_meaning(caller, record, now, found.events),
        args=tuple(args),
        kwargs=kwargs,
        policy=record.policy,
        progress=shown("progress", found.progress, hide),
        waits_for=tuple(map(AwaitedView.of, awaited)),
        attempt_list=tuple(AttemptView.of(each, hide) for each in found.attempts),
        history=tuple(map(EventView.of, found.events)),
        steps=tuple(StepView.of(each, hide) for each in found.steps),
        waits=tuple(WaitView.of(each, hide) for each in found.waits),
        usage=UsageView.of(found.usage),
        children=tuple(map(ChildView.of, found.children)),
        parent=found.parent,
        partials=found.parts,
        blocked_by=blocked_by,
        signed_by=signer_of(record),
        dead_letter=found.letter,
    )


def _blockers(caller: Caller, record: JobRecord) -> tuple[Sequence[AwaitedJob], str | None]:
    """What a job waits for beyond its own record: other jobs, or the one that blocks its target."""
    if record.state is JobState.PENDING:
        return caller.lookup.dependencies(record.id), None
    if record.is_blocked and record.target is not None and not record.state.is_final:
        return (), caller.lookup.target(record.target).blocked_by
    return (), None


def _meaning(caller: Caller, record: JobRecord, now: datetime, past: Sequence[EventRecord]) -> str:
    """Of a job that is due the record alone does not tell what shuts its queue: `why` does."""
    if shown_state(record, now) is JobState.QUEUED and not record.held:
        found = why_not(caller, record.id)
        if found.reasons and not found.is_runnable:
            return found.verdict
    is_skipped = bool(past) and past[-1].kind == EventKind.SKIPPED
    return explain(record, now, is_skipped=is_skipped)


class EndingEvent(NamedTuple):
    """An event with the attempt that it ended, if it did."""

    event: EventRecord
    ended: AttemptRecord | None

    @property
    def size(self) -> int:
        return size_of_event(self.event) + size_of_attempt(self.ended)

    def view(self, hide: Redaction) -> EventWhole:
        return EventWhole.of(self.event, ended=None if self.ended is None else AttemptView.of(self.ended, hide))


def with_attempts(caller: Caller, job: JobRecord, events: Iterable[EventRecord]) -> Iterator[EndingEvent]:
    """Attempts are large, and some only are read at once, as far as somebody reads."""
    coming = iter(events)
    while some := list(islice(coming, ATTEMPTS_PAGE)):
        tokens = [event.token for event in some]
        first = max(0, min(tokens) - 1)
        attempts = {each.token: each for each in caller.lookup.attempts(job.id, first, max(tokens) - first)}
        for event in some:
            yield EndingEvent(event, _ended_by(event, attempts))


def _ended_by(event: EventRecord, attempts: dict[int, AttemptRecord]) -> AttemptRecord | None:
    attempt = attempts.get(event.token)
    is_end = attempt is not None and (attempt.outcome, attempt.ended_at) == (event.kind, event.at)
    return attempt if is_end else None


# --- stacks -------------------------------------------------------------------------------------------------------


def asked_stack(caller: Caller, ident: str, timeout: float) -> StackView:
    """As its worker shows it now; of a job that does not run, as its last attempt left it."""
    found = where_is(caller.store.live_workers(), ident)
    stack = workers.stack(caller.store, caller.one, ident, caller.by, timeout)
    return _stack_view(caller, ident, stack, found[1].pid if found and stack.is_live else None)


def stored_stack(caller: Caller, ident: str, number: int) -> StackView:
    """As this attempt left it."""
    record = caller.lookup.job(ident)
    kept = next(iter(caller.lookup.attempts(ident, number - 1, 1)), None)
    if kept is None:
        raise Conflict(f"job {ident} has had no attempt #{number}; `unstuck jobs show {ident}` lists those it had")
    if not kept.stack:
        raise NoStack(ident, record.state, f"attempt #{number} left none")
    return _stack_view(
        caller, ident, Stack(kept.stack, False, kept.worker, number, kept.ended_at or kept.claimed_at), None
    )


def _stack_view(caller: Caller, ident: str, stack: Stack, pid: int | None) -> StackView:
    record, now = caller.lookup.job(ident), caller.store.now()
    attempt = next(iter(caller.lookup.attempts(ident, stack.attempt - 1, 1)), None)
    return StackView(
        job=record.id,
        workflow=record.workflow,
        state=record.state,
        shown_state=shown_state(record, now),
        source="live" if stack.is_live else "stored",
        at=stack.at,
        attempt=stack.attempt,
        worker=stack.worker,
        pid=pid,
        error_type=attempt.error_type if attempt else None,
        error_message=attempt.error_message if attempt else None,
        duration_ms=attempt.duration_ms if attempt else None,
        stack=stack.text,
        since_at=(record.started_at or record.claimed_at) if stack.is_live else None,
        request=record.request.value if record.request else None,
        requested_at=record.requested_at,
    )
