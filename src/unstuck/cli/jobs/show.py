"""unstuck jobs show: everything about one job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from unstuck.cli import flow, options, output
from unstuck.cli.event_texts import narrate
from unstuck.cli.jobs.texts import as_json, on_its_way, print_stack, run_time, took
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.model.errors import ErrorType
from unstuck.model.lifecycle import JobState
from unstuck.operations import jobs
from unstuck.store.port import EVERY
from unstuck.views.jobs import AttemptView, JobWhole


def show(
    job: options.JobName,
    last: Annotated[int, option("--last", metavar="N", least=1, help="number of attempts and events")] = 20,
    all_: Annotated[bool, option("--all", help="every attempt and event, whole stacks")] = False,
    all_tenants: options.Anybodys = False,
    *,
    common: options.Common,
) -> None:
    """Everything about one job. What its state means, its attempts, its history, what it printed."""
    options.check_whose(all_tenants, common)
    shown = None if all_ else last
    with opened(common) as session:
        caller = session.caller.about(EVERY if all_tenants else None)
        found = jobs.get(caller, job, last=None if common.json else shown)
        now = session.now()
    if common.json:
        output.emit_view(found)
        return
    _print_head(found, now)
    _print_attempts(found, shown, whole=all_)
    output.say(f"\nHistory{_rest(found.events, shown, 'events')}")
    for event in found.history:
        output.say(f"  {event.number:>3}  {output.rfc3339(event.at)}  {output.visible(narrate(event))}")
    _print_output(found.attempt_list)


def _print_head(job: JobWhole, now: datetime) -> None:
    output.say(f"{output.styled(job.workflow, 'bold')}  {job.id}")
    output.say(f"{output.state(job.shown_state)}  {output.visible(job.meaning)}\n")
    for label, value in [*flow.awaited(job, now), *_facts(job, now), *flow.facts(job)]:
        if value is not None:
            output.say(f"  {label:<10} {output.indented(output.visible(str(value)), 13)}")


def _facts(job: JobWhole, now: datetime) -> list[tuple[str, str | None]]:
    return [
        ("called", _call(job)),
        ("result", _short(as_json(job.result)) if job.state is JobState.COMPLETED else None),
        ("error", f"{job.error_type}: {job.error_message}" if job.error_type else None),
        ("progress", _short(as_json(job.progress)) if job.progress is not None else None),
        ("created", f"{output.rfc3339(job.created_at)} ({output.age(job.created_at, now)})"),
        ("due", f"{output.rfc3339(job.available_at)} ({output.age(job.available_at, now)})"
         if job.state is JobState.QUEUED else None),
        ("started", output.rfc3339(job.started_at)),
        ("finished", output.rfc3339(job.finished_at)),
        ("took", _duration(job, now)),
        ("worker", job.worker),
        ("lease", f"until {output.rfc3339(job.lease_until)}" if job.lease_until else None),
        ("queue", f"{job.queue}, priority {job.priority}, tenant {job.tenant}"),
        ("target", _target(job)),
        ("letter", f"{job.dead_letter}: unstuck dead-letters show {job.id}" if job.dead_letter else None),
        ("hold", f"until somebody lets it go: unstuck jobs release {job.id}" if job.on_hold else None),
        ("after", ", ".join(f"{d.job} ({d.state or 'gone'})" for d in job.waits_for) or None),
        ("key", job.key),
        ("signed", None if job.signed_by is None else f"by key {job.signed_by}"),
        ("limit key", job.limit_key),
        ("tags", ", ".join(job.tags) or None),
        ("trace", job.trace),
        ("limits", _limits(job)),
    ]  # fmt: skip


def _target(job: JobWhole) -> str | None:
    if job.target is None:
        return None
    if job.is_blocker:
        return f"{job.target}, which it blocks: resume, resolve or skip it"
    return f"{job.target}, blocked by job {job.blocked_by}" if job.blocked_by else job.target


def _duration(job: JobWhole, now: datetime) -> str | None:
    """12 ms (attempt #3 of 3), ended 2h 3m after it was submitted: its waits and earlier attempts count there."""
    run, total = run_time(job, now), on_its_way(job)
    if run is None:
        return None
    which = f" (attempt #{job.attempts} of {job.attempts})" if job.attempts > 1 else ""
    if total is None:
        return f"{output.duration(run)} so far{which}"
    later = f", ended {output.duration(total)} after it was submitted" if total >= run + 1 else ""
    return f"{output.duration(run)}{which}{later}"


def _call(job: JobWhole) -> str:
    parts = [json.dumps(each, ensure_ascii=False) for each in job.args]
    parts += [f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in job.kwargs.items()]
    return _short(f"{job.workflow}({', '.join(parts)})")


def _short(text: str, limit: int = 2000) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters; --json shows all)"


def _limits(job: JobWhole) -> str:
    policy = job.policy
    timeout = policy.timeout if policy.timeout == "unlimited" else output.duration(float(policy.timeout))
    return (
        f"timeout {timeout}, grace {output.duration(policy.grace)}, "
        f"failures {job.failures} of {policy.retries + 1}, losses {job.losses} of {policy.max_lost + 1}"
    )


def _rest(count: int, shown: int | None, what: str) -> str:
    """Of a job that was retried for days nobody wants to scroll through thousands of lines."""
    return f" (the last {shown} of {count:,} {what}; --all shows all)" if shown and count > shown else ""


def _print_attempts(job: JobWhole, shown: int | None, *, whole: bool) -> None:
    if not job.attempt_list:
        return
    output.say(f"\nAttempts{_rest(job.attempts, shown, 'attempts')}")
    for a in job.attempt_list:
        error = output.indented(output.visible(f": {a.error_type}: {a.error_message}"), 6) if a.error_type else ""
        output.say(f"  #{a.attempt}  {output.rfc3339(a.claimed_at)}  on {a.worker}: {_outcome(a)}{took(a)}{error}")
        print_stack(a, whole, "      ")


def _outcome(attempt: AttemptView) -> str:
    if attempt.error_type == ErrorType.EXECUTION_STUCK:
        return output.state("STUCK")
    return attempt.outcome or "running"


def _print_output(attempts: Sequence[AttemptView], lines: int = 20) -> None:
    printed = [a for a in attempts if a.output]
    if not printed:
        return
    last = printed[-1]
    text = (last.output or "").splitlines()
    more = f" (the last {lines} of {len(text)} lines; `unstuck jobs logs` shows all)" if len(text) > lines else ""
    output.say(f"\nOutput of attempt #{last.attempt}{more}")
    for line in text[-lines:]:
        output.say(f"  {output.visible(line)}")
