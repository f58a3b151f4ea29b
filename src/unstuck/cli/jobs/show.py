"""unstuck jobs show: everything about one job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import options, output, shapes
from unstuck.cli.flow import FlowDetails
from unstuck.cli.jobs.texts import on_its_way, print_stack, run_time, took
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.cli.state_texts import explain, narrate
from unstuck.model.errors import ErrorType
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, shown_state
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.why.facts import AwaitedJob
from unstuck.observe.why import why


def show(
    job: options.JobName,
    last: Annotated[int, option("--last", metavar="N", least=1, help="number of attempts and events")] = 20,
    all_: Annotated[bool, option("--all", help="every attempt and event, whole stacks")] = False,
    *,
    common: options.Common,
) -> None:
    """Everything about one job. What its state means, its attempts, its history, what it printed."""
    with opened(common) as session:
        record = session.job(job)
        everything = all_ or common.json
        attempts = session.lookup.attempts(record.id, 0 if everything else max(0, record.token - last))
        past = session.lookup.history(record.id, 0 if everything else max(0, record.events - last))
        progress = session.lookup.progress(record.id)
        order = Blockers.of(session, record)
        flow = FlowDetails.of(session, record)
        now = session.now()
        meaning = _meaning(session, record, now, past)
    if common.json:
        whole = shapes.job_whole(record, now, attempts, past, progress, order.waits_for)
        output.emit_json(whole | flow.shape())
        return
    _print_head(record, now, meaning, progress, order, flow)
    shown = None if all_ else last
    _print_attempts(attempts, record.token, shown, whole=all_)
    output.say(f"\nHistory{_rest(record.events, shown, 'events')}")
    for event in past[-(shown or len(past)) :]:
        output.say(f"  {event.number:>3}  {output.rfc3339(event.at)}  {output.visible(narrate(event))}")
    _print_output(attempts)


@dataclass(frozen=True, slots=True)
class Blockers:
    """What a job waits for, beyond its own record: other jobs, or the one that blocks its target."""

    waits_for: tuple[AwaitedJob, ...] = ()
    blocked_by: str | None = None

    @classmethod
    def of(cls, session: Session, record: JobRecord) -> Blockers:
        if record.state is JobState.PENDING:
            return cls(waits_for=session.lookup.dependencies(record.id))
        if record.is_blocked and record.target is not None and not record.state.is_final:
            return cls(blocked_by=session.lookup.target(record.target).blocked_by)
        return cls()


def _meaning(session: Session, record: JobRecord, now: datetime, past: list[EventRecord]) -> str:
    """Of a job that is due the record alone does not tell what shuts its queue: `why` does."""
    if shown_state(record, now) is JobState.QUEUED and not record.held:
        found = why(session.store, session.tenant, record.id, session.settings.times)
        if found.reasons and not found.is_runnable:
            return found.verdict
    is_skipped = bool(past) and past[-1].kind == EventKind.SKIPPED
    return explain(record, now, is_skipped=is_skipped)


def _print_head(
    record: JobRecord, now: datetime, meaning: str, progress: str | None, order: Blockers, flow: FlowDetails
) -> None:
    shown = shapes.shown_state(record, now)
    output.say(f"{output.styled(record.workflow, 'bold')}  {record.id}")
    output.say(f"{output.state(shown)}  {output.visible(meaning)}\n")
    for label, value in [*flow.awaited(record, now), *_facts(record, now, progress, order), *flow.facts(record)]:
        if value is not None:
            output.say(f"  {label:<10} {output.indented(output.visible(str(value)), 13)}")


def _facts(record: JobRecord, now: datetime, progress: str | None, order: Blockers) -> list[tuple[str, str | None]]:
    call = shapes.loads(record.payload)
    return [
        ("called", _call(record.workflow, call)),
        ("result", _short(record.result) if record.result is not None else None),
        ("error", f"{record.error_type}: {record.error_message}" if record.error_type else None),
        ("progress", _short(progress) if progress is not None else None),
        ("created", f"{output.rfc3339(record.created_at)} ({output.age(record.created_at, now)})"),
        ("due", f"{output.rfc3339(record.available_at)} ({output.age(record.available_at, now)})"
         if record.state is JobState.QUEUED else None),
        ("started", output.rfc3339(record.started_at)),
        ("finished", output.rfc3339(record.finished_at)),
        ("took", _duration(record, now)),
        ("worker", record.worker),
        ("lease", f"until {output.rfc3339(record.lease_until)}" if record.lease_until else None),
        ("queue", f"{record.queue}, priority {record.priority}, tenant {record.tenant}"),
        ("target", _target(record, order)),
        ("hold", f"until somebody lets it go: unstuck jobs release {record.id}" if record.on_hold else None),
        ("after", ", ".join(f"{d.job} ({d.state or 'gone'})" for d in order.waits_for) or None),
        ("key", record.key),
        ("limit key", record.limit_key),
        ("tags", ", ".join(record.tags) or None),
        ("limits", _limits(record)),
    ]  # fmt: skip


def _target(record: JobRecord, order: Blockers) -> str | None:
    if record.target is None:
        return None
    if record.is_blocker:
        return f"{record.target}, which it blocks: resume, resolve or skip it"
    return f"{record.target}, blocked by job {order.blocked_by}" if order.blocked_by else record.target


def _duration(record: JobRecord, now: datetime) -> str | None:
    """12 ms (attempt #3 of 3), ended 2h 3m after it was submitted: its waits and earlier attempts count there."""
    run, total = run_time(record, now), on_its_way(record)
    if run is None:
        return None
    which = f" (attempt #{record.token} of {record.token})" if record.token > 1 else ""
    if total is None:
        return f"{output.duration(run)} so far{which}"
    later = f", ended {output.duration(total)} after it was submitted" if total >= run + 1 else ""
    return f"{output.duration(run)}{which}{later}"


def _call(workflow: str, call: Any) -> str:
    if not isinstance(call, dict):
        return _short(json.dumps(call, ensure_ascii=False))
    parts = [json.dumps(a, ensure_ascii=False) for a in call.get("args", [])]
    parts += [f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call.get("kwargs", {}).items()]
    return _short(f"{workflow}({', '.join(parts)})")


def _short(text: str, limit: int = 2000) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters; --json shows all)"


def _limits(record: JobRecord) -> str:
    policy = record.policy
    timeout = policy.timeout if policy.timeout == "unlimited" else output.duration(float(policy.timeout))
    return (
        f"timeout {timeout}, grace {output.duration(policy.grace)}, "
        f"failures {record.failures} of {policy.retries + 1}, losses {record.losses} of {policy.max_lost + 1}"
    )


def _rest(count: int, shown: int | None, what: str) -> str:
    """Of a job that was retried for days nobody wants to scroll through thousands of lines."""
    return f" (the last {shown} of {count:,} {what}; --all shows all)" if shown and count > shown else ""


def _print_attempts(attempts: list[AttemptRecord], count: int, shown: int | None, *, whole: bool) -> None:
    if not attempts:
        return
    output.say(f"\nAttempts{_rest(count, shown, 'attempts')}")
    for a in attempts[-(shown or len(attempts)) :]:
        error = output.indented(output.visible(f": {a.error_type}: {a.error_message}"), 6) if a.error_type else ""
        output.say(f"  #{a.token}  {output.rfc3339(a.claimed_at)}  on {a.worker}: {_outcome(a)}{took(a)}{error}")
        print_stack(a, whole, "      ")


def _outcome(attempt: AttemptRecord) -> str:
    if attempt.error_type == ErrorType.EXECUTION_STUCK:
        return output.state("STUCK")
    return attempt.outcome or "running"


def _print_output(attempts: list[AttemptRecord], lines: int = 20) -> None:
    printed = [a for a in attempts if a.output]
    if not printed:
        return
    last = printed[-1]
    text = (last.output or "").splitlines()
    more = f" (the last {lines} of {len(text)} lines; `unstuck jobs logs` shows all)" if len(text) > lines else ""
    output.say(f"\nOutput of attempt #{last.token}{more}")
    for line in text[-lines:]:
        output.say(f"  {output.visible(line)}")
