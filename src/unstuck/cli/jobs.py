"""unstuck jobs …: look at jobs and ask things of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any

from unstuck.cli import exits, gates, options, output, shapes
from unstuck.cli.excerpt import shortened
from unstuck.cli.flow import FlowDetails, called, draw
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.cli.state_texts import explain, narrate
from unstuck.model.errors import ErrorType, SchemaMismatch, UnstuckError
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, shown_state
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.parts import Part
from unstuck.model.why.facts import AwaitedJob
from unstuck.observe.flow import family
from unstuck.observe.follow import follow
from unstuck.observe.logs import LogPiece, Logs, pieces
from unstuck.observe.parts import PartialsReader
from unstuck.observe.why import why

#: Events that are printed at a time, with the attempts that they ended.
HISTORY_SHOWN = 200

app = options.group("List jobs, look into one, wait for it, stop it, let it go on.")


@app.command("list")
def list_(
    state: Annotated[
        list[str] | None, option("--state", "-s", metavar="STATE", help="only these, e.g. BLOCKED; may be repeated")
    ] = None,
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only of this workflow")] = None,
    queue: Annotated[str | None, option("--queue", "-q", metavar="NAME", help="only of this queue")] = None,
    target: Annotated[str | None, option("--target", metavar="NAME", help="only on this target")] = None,
    tag: Annotated[str | None, option("--tag", metavar="TAG", help="only with this tag")] = None,
    error: Annotated[
        str | None, option("--error", "--error-type", metavar="NAME", help="only of this error, e.g. ExecutionStuck")
    ] = None,
    older: Annotated[
        float | None,
        option("--older", read=options.seconds, metavar="DURATION", help="submitted longer ago than, e.g. 10m"),
    ] = None,
    newer: Annotated[
        float | None, option("--newer", read=options.seconds, metavar="DURATION", help="submitted within, e.g. 1h")
    ] = None,
    limit: Annotated[int, option("--limit", "-n", help="at most so many", least=1, most=100_000)] = 50,
    after: Annotated[str | None, option("--after", metavar="CURSOR", help="go on where the last page ended")] = None,
    oldest: Annotated[bool, option("--oldest-first", "--oldest", help="the oldest before the newest")] = False,
    wide: Annotated[bool, option("--wide", help="whole ids and more columns")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """The newest jobs, or those you ask for. TOOK is the last attempt's: (#3) was the third."""
    with opened(database, tenant) as session:
        now = session.now()
        page = session.lookup.jobs(
            state=list(state or ()),
            workflow=workflow,
            queue=queue,
            error_type=error,
            target=target,
            tag=tag,
            before=_ago(now, older),
            since=_ago(now, newer),
            newest_first=not oldest,
            limit=limit,
            after=after,
        )
        if not page.jobs:
            _warn_of_misspelt(session, workflow, queue, error)
    if json_:
        for record in page.jobs:
            output.emit_json(shapes.job(record, now))
    else:
        headers, rows = _wide(page.jobs, now) if wide else _narrow(page.jobs, now)
        output.table(headers, rows, empty="no such jobs; `unstuck enqueue WORKFLOW` makes one")
    if page.next:
        output.note(f"there are more: --after {page.next}")


def _warn_of_misspelt(session: Session, workflow: str | None, queue: str | None, error: str | None) -> None:
    """An empty list reads like good news: say so when a filter names what nobody has ever used."""
    for kind, name in (("workflow", workflow), ("queue", queue), ("tenant", session.tenant)):
        if name is not None:
            gates.warn_if_unheard_of(session, kind, name)
    own = {known.casefold(): known.value for known in ErrorType}
    if error is not None and error not in set(ErrorType) and (meant := own.get(error.casefold())):
        output.note(f"errors are spelt as their classes: did you mean {meant}?")


def _ago(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now - timedelta(seconds=seconds)


def _narrow(records: tuple[JobRecord, ...], now: datetime) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = [
        [
            r.id,
            shapes.shown_state(r, now),
            r.workflow,
            output.age(r.created_at, now),
            _last_took(r, now),
            _first_line(f"{r.error_type}: {r.error_message}") if r.error_type else None,
        ]
        for r in records
    ]
    return ["JOB", "STATE", "WORKFLOW", "CREATED", "TOOK", "ERROR"], rows


def _wide(records: tuple[JobRecord, ...], now: datetime) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = [
        [
            r.id,
            shapes.shown_state(r, now),
            r.workflow,
            r.queue,
            r.target,
            r.priority,
            r.token,
            output.rfc3339(r.created_at),
            output.duration(_run_time(r, now)),
            output.duration(_on_its_way(r)),
            r.worker,
            f"{r.error_type}: {r.error_message}" if r.error_type else None,
        ]
        for r in records
    ]
    headers = [
        "JOB",
        "STATE",
        "WORKFLOW",
        "QUEUE",
        "TARGET",
        "PRIORITY",
        "ATTEMPTS",
        "CREATED",
        "LAST TOOK",
        "TOTAL",
        "WORKER",
        "ERROR",
    ]
    return headers, rows


def _run_time(record: JobRecord, now: datetime) -> float | None:
    if record.duration_ms is not None:
        return record.duration_ms / 1000
    if record.state is JobState.RUNNING and (since := record.started_at or record.claimed_at):
        return max(0.0, (now - since).total_seconds())
    return None


def _last_took(record: JobRecord, now: datetime) -> str:
    """For a column; numbered where it is not all that the job did."""
    text = output.duration(_run_time(record, now))
    return f"{text} (#{record.token})" if record.token > 1 and text != "-" else text


def _on_its_way(record: JobRecord) -> float | None:
    """From when it was submitted to its end."""
    total = shapes.total_ms(record)
    return None if total is None else total / 1000


def _duration(record: JobRecord, now: datetime) -> str | None:
    """12 ms (attempt #3 of 3), ended 2h 3m after it was submitted: its waits and earlier attempts count there."""
    run, total = _run_time(record, now), _on_its_way(record)
    if run is None:
        return None
    which = f" (attempt #{record.token} of {record.token})" if record.token > 1 else ""
    if total is None:
        return f"{output.duration(run)} so far{which}"
    later = f", ended {output.duration(total)} after it was submitted" if total >= run + 1 else ""
    return f"{output.duration(run)}{which}{later}"


def _first_line(text: str, limit: int = 60) -> str:
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"


@app.command()
def show(
    job: options.JobName,
    last: Annotated[int, option("--last", metavar="N", least=1, help="so many attempts and events")] = 20,
    all_: Annotated[bool, option("--all", help="every attempt and event, whole stacks")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """Everything about one job. What its state means, its attempts, its history, what it printed."""
    with opened(database, tenant) as session:
        record = session.job(job)
        everything = all_ or json_
        attempts = session.lookup.attempts(record.id, 0 if everything else max(0, record.token - last))
        past = session.lookup.history(record.id, 0 if everything else max(0, record.events - last))
        progress = session.lookup.progress(record.id)
        order = Blockers.of(session, record)
        flow = FlowDetails.of(session, record)
        now = session.now()
        meaning = _meaning(session, record, now, past)
    if json_:
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
        output.say(f"  #{a.token}  {output.rfc3339(a.claimed_at)}  on {a.worker}: {_outcome(a)}{_took(a)}{error}")
        _print_stack(a, whole, "      ")


def _outcome(attempt: AttemptRecord) -> str:
    if attempt.error_type == ErrorType.EXECUTION_STUCK:
        return output.state("STUCK")
    return attempt.outcome or "running"


def _took(attempt: AttemptRecord | None) -> str:
    if attempt is None or attempt.duration_ms is None:
        return ""
    return f" after {output.duration(attempt.duration_ms / 1000)}"


def _print_stack(attempt: AttemptRecord, whole: bool, indent: str) -> None:
    for line in (attempt.stack or "").splitlines() if whole else shortened(attempt.stack or ""):
        output.say(f"{indent}{output.visible(line)}")


@app.command()
def steps(
    job: options.JobName,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """The steps that a job has finished. Later attempts get their results instead of running them again."""
    with opened(database, tenant) as session:
        record = session.job(job)
        found, now = session.lookup.steps(record.id), session.now()
    if json_:
        for step in found:
            output.emit_json(shapes.step(step))
        return
    output.table(
        ["STEP", "RUN", "ATTEMPT", "FINISHED", "TOOK", "RESULT"],
        [
            (
                called(s.name, s.ordinal),
                s.run,
                f"#{s.token}",
                output.age(s.at, now),
                output.duration(s.duration_ms / 1000),
                _first_line(s.result),
            )
            for s in found
        ],
        empty="it has finished no step so far; ctx.step(name, function) makes one",
    )


@app.command()
def partials(
    job: options.JobName,
    follow_: Annotated[bool, option("--follow", "-f", help="go on until the job ends")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """The parts of its result that a job has given before its end. A name that is given again has a new value."""
    with opened(database, tenant) as session:
        ident = session.job(job).id
        if follow_:
            _print_as_they_come(follow(PartialsReader(session.lookup, ident).look), json_)
            return
        found = session.lookup.parts(ident)
    if json_:
        _print_as_they_come(found, json_)
        return
    output.table(
        ["NAME", "ATTEMPT", "AT", "VALUE"],
        [(p.name, f"#{p.token}", output.rfc3339(p.at), _first_line(p.value)) for p in found],
        empty=_NO_PART,
    )


_NO_PART = "it has given no part of its result so far; ctx.partial(name, value) does"


def _print_as_they_come(parts: Iterable[Part], as_json: bool) -> None:
    is_none = True
    for part in parts:
        is_none = False
        _print_part(part, as_json)
    if is_none and not as_json:
        output.note(_NO_PART)


def _print_part(part: Part, as_json: bool) -> None:
    if as_json:
        output.emit_json(shapes.part(part))
    else:
        line = f"{output.rfc3339(part.at)}  #{part.token}  {part.name}  {_first_line(part.value)}"
        output.say(output.visible(line))


@app.command()
def tree(
    job: options.JobName,
    limit: Annotated[int, option("--limit", "-n", help="at most so many jobs", least=1, most=10_000)] = 200,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """Who spawned whom, from the topmost parent down, each with its state."""
    with opened(database, tenant) as session:
        record = session.job(job)
        top = family(session.store, session.tenant, record.id, limit)
    if json_:
        output.emit_json(shapes.branch(top))
    else:
        draw(top, record.id)


@app.command()
def replay(
    jobs: options.JobNames,
    budget: Annotated[
        list[tuple[str, float]] | None,
        option(
            "--budget",
            read=options.amount,
            metavar="UNIT=MOST",
            help="may use so much, e.g. tokens=5000; may be repeated",
        ),
    ] = None,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Run ended jobs once more, as new jobs with the same workflow, arguments and policy. Prints the new ids."""

    def again(session: Session, ident: str) -> None:
        new = session.job(session.flow.replay(ident, budget=dict(budget or ())).id)
        if json_:
            output.emit_json(shapes.job(new, session.now()))
        else:
            output.say(new.id)
            output.note(f"job {new.id} does again what {ident} did")
        _remark_on_units(session.job(ident), [unit for unit, _ in budget or ()])

    return _each_of(jobs, database, tenant, again)


def _remark_on_units(record: JobRecord, named: list[str]) -> None:
    """A new unit may be meant, or a slip that leaves the old limit as it was."""
    known = [unit for unit, _ in record.policy.budget]
    for unit in sorted(set(named) - set(known)):
        if known:
            others = ", ".join(known)
            output.note(
                f"the budget of job {record.id} has no {unit}, only {others}; the new job is limited in {unit} too"
            )
        else:
            output.note(f"job {record.id} had no budget; the new job is limited in {unit}")


@app.command()
def history(
    job: options.JobName,
    limit: Annotated[int, option("--limit", "-n", metavar="N", least=1, help="the last so many events")] = 1000,
    all_: Annotated[bool, option("--all", help="every event, whole stacks")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """What happened to a job, in order. How long each attempt took, how it ended, and its stack."""
    with opened(database, tenant) as session:
        record = session.job(job)
        after = 0 if all_ else max(0, record.events - limit)
        if after:
            output.note(f"the last {limit:,} of {record.events:,} events; --all shows all")
        events = session.lookup.events(record.id, after)
        while page := list(islice(events, HISTORY_SHOWN)):
            _print_events(page, _attempts_in(session, record.id, page), all_, as_json=json_)


def _attempts_in(session: Session, job: str, events: list[EventRecord]) -> dict[int, AttemptRecord]:
    tokens = [event.token for event in events]
    first = max(0, min(tokens) - 1)
    found = session.lookup.attempts(job, first, max(tokens) - first)
    return {attempt.token: attempt for attempt in found}


def _print_events(
    events: list[EventRecord], attempts: dict[int, AttemptRecord], whole: bool, *, as_json: bool
) -> None:
    for event in events:
        ended = _ended_by(event, attempts)
        if as_json:
            output.emit_json(shapes.event(event) | {"ended": shapes.attempt(ended) if ended else None})
            continue
        output.say(f"{event.number:>3}  {output.rfc3339(event.at)}  {_narrated(event, ended)}")
        if ended is not None:
            _print_stack(ended, whole, "       ")


def _ended_by(event: EventRecord, attempts: dict[int, AttemptRecord]) -> AttemptRecord | None:
    """The attempt that this event ended, if it did."""
    attempt = attempts.get(event.token)
    is_end = attempt is not None and (attempt.outcome, attempt.ended_at) == (event.kind, event.at)
    return attempt if is_end else None


def _narrated(event: EventRecord, ended: AttemptRecord | None) -> str:
    text = output.visible(narrate(event))
    return f"attempt #{event.token}{_took(ended)}: {text}" if ended is not None else text


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


@app.command()
def wait(
    job: options.JobName,
    timeout: options.Timeout = None,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Wait until a job ends; the exit code says how. 0 completed, 1 failed, 7 still going, 8 cancelled, 9 stuck."""
    with opened(database, tenant) as session:
        record = session.wait(session.job(job).id, timeout)
        return finish(session, record, json_, timeout)


def finish(session: Session, record: JobRecord, as_json: bool, waited: float | None) -> int:
    """Print how a job that was waited for stands; the result is data, the rest are remarks."""
    if as_json:
        output.emit_json(shapes.job(record, session.now()))
    elif record.state is JobState.COMPLETED:
        output.say(record.result if record.result is not None else "null")
    elif record.state.is_final:
        error = f": {record.error_type}: {record.error_message}" if record.error_type else ""
        closer = "stack" if record.error_type == ErrorType.EXECUTION_STUCK else "jobs show"
        output.note(f"job {record.id} is {record.state}{error}\nlook closer: unstuck {closer} {record.id}")
    else:
        output.note(
            f"job {record.id} is still {record.state} after {output.duration(waited)}; it goes on\n"
            f"wait again: unstuck jobs wait {record.id}"
        )
    return exits.code_of_job(record)


@app.command()
def logs(
    job: options.JobName,
    follow: Annotated[bool, option("--follow", "-f", help="go on until the job ends")] = False,
    attempt: Annotated[int | None, option("--attempt", least=1, help="only this one")] = None,
    level: Annotated[
        str | None, option("--level", metavar="LEVEL", help="only records of this level and above, e.g. warning")
    ] = None,
    times: Annotated[bool, option("--times", "-t", help="when each record was logged")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> None:
    """What a job printed and logged, attempt by attempt."""
    with opened(database, tenant) as session:
        logs = Logs(session.lookup, session.job(job).id, attempt, level, follow=follow)
        if json_:
            for piece in pieces(logs):
                output.emit_json(shapes.log_piece(piece))
            return
        told = _Told(times)
        for piece in pieces(logs):
            told.tell(piece)
        told.end_line()
    if told.attempt is None:
        output.note("it has said nothing like that" if level else "it has printed nothing so far")


class _Told:
    """What has been printed of a job's output so far."""

    def __init__(self, times: bool) -> None:
        self.attempt: int | None = None
        self._times = times
        self._mid_line = False

    def tell(self, piece: LogPiece) -> None:
        if piece.attempt != self.attempt:
            self.attempt = piece.attempt
            self.end_line()
            output.note(f"--- attempt #{piece.attempt} on {piece.worker}")
        if self._times and piece.record:
            print(output.styled(output.rfc3339(piece.record.at) or "", "dim"), end="  ")
        # For a pipe exactly as it was printed, half lines included; a terminal would obey what is in it.
        print(_harmless(piece.text) if sys.stdout.isatty() else piece.text, end="", flush=True)
        self._mid_line = not piece.text.endswith("\n")

    def end_line(self) -> None:
        if self._mid_line:
            output.say("")
            self._mid_line = False


def _harmless(text: str) -> str:
    """A progress bar that overwrites itself becomes a line per state."""
    return output.visible(text.replace("\r\n", "\n").replace("\r", "\n"))


Reason = Annotated[str | None, option("--reason", metavar="TEXT", help="kept in the history")]


@app.command()
def cancel(
    jobs: options.JobNames,
    reason: Reason = None,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Stop jobs for good. At once if they have not started; else their handlers are asked to stop."""
    return _each(jobs, json_, database, tenant, lambda s, job: s.control.cancel(job, reason))


@app.command()
def interrupt(
    jobs: options.JobNames,
    reason: Reason = None,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Pause jobs. Stopped like a cancel, but resumable."""
    return _each(jobs, json_, database, tenant, lambda s, job: s.control.interrupt(job, reason))


@app.command()
def resume(
    jobs: options.JobNames,
    from_start: Annotated[bool, option("--from-start", help="forget finished steps and partial results")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Let stopped jobs go on. A new, clean run of paused, failed, timed-out or cancelled ones."""
    return _each(jobs, json_, database, tenant, lambda s, job: s.control.resume(job, from_start=from_start))


@app.command()
def release(
    jobs: options.JobNames,
    force: Annotated[bool, option("--force", help="even if they wait for other jobs to end")] = False,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Let held jobs go on. With --force they no longer wait for other jobs either."""
    return _each(jobs, json_, database, tenant, lambda s, job: s.control.release(job, force=force))


@app.command()
def skip(
    jobs: options.JobNames,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Let targets move on past jobs that block them. The jobs stay as they are."""
    return _each(jobs, json_, database, tenant, lambda s, job: s.control.skip(job))


@app.command()
def retry(
    jobs: options.JobNames,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Run jobs again from their start. One that waits for its next try is due now."""
    return _each(jobs, json_, database, tenant, lambda s, job: s.control.retry(job))


@app.command()
def resolve(
    job: options.JobName,
    result: Annotated[str, Argument(metavar="RESULT", help="in JSON, e.g. 42, '\"done\"' or null")],
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.Tenant = None,
) -> int:
    """Complete a job by hand. A paused, failed or timed-out one ends COMPLETED with a result of yours."""
    from unstuck.model.payload import decode, encode

    stored = encode(decode(result, "the result"), "the result")
    return _each([job], json_, database, tenant, lambda s, ident: s.control.resolve(ident, stored))


def _each(
    jobs: list[str],
    as_json: bool,
    database: str | None,
    tenant: str | None,
    verb: Callable[[Session, str], JobRecord],
) -> int:
    return _each_of(jobs, database, tenant, lambda s, job: _print_changed(s, verb(s, job), as_json))


def _each_of(jobs: list[str], database: str | None, tenant: str | None, act: Callable[[Session, str], None]) -> int:
    """One refusal does not spare the others; the exit code is that of the first one."""
    code = exits.OK
    with opened(database, tenant) as session:
        for job in jobs:
            try:
                act(session, session.job(job).id)
            except SchemaMismatch:  # true of every job alike
                raise
            except UnstuckError as error:
                output.note(f"unstuck: {error}")
                code = code or exits.code_of(error)
    return code


def _print_changed(session: Session, record: JobRecord, as_json: bool) -> None:
    now = session.now()
    if as_json:
        output.emit_json(shapes.job(record, now))
    else:
        meaning = output.visible(explain(record, now))
        output.say(f"{record.id}  {output.state(shapes.shown_state(record, now))}  {meaning}")
