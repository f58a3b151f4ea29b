"""Jobs: list them, look into one, stop it, let it go on, run it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from unstuck.intake.arguments import encode_result
from unstuck.model.errors import (
    AmbiguousJob,
    Conflict,
    IdConflict,
    IllegalMove,
    InvalidArguments,
    InvalidPolicy,
    KeyConflict,
    NoAnswer,
    NoStack,
    NotBlocking,
    NotStorable,
    SignatureRefused,
    TooManyQueued,
    UnknownJob,
    UnknownWorkflowName,
    WorkflowBlacklisted,
)
from unstuck.model.job import AfterFailure, JobRecord
from unstuck.model.parts import MOST_PARTS
from unstuck.model.waits import MOST_STEPS, MOST_WAITS
from unstuck.observe.flow import family
from unstuck.observe.logs import Logs
from unstuck.observe.lookup import State
from unstuck.observe.parts import PartialsReader
from unstuck.observe.stream import Looks, Source
from unstuck.observe.wait import wait_for_end
from unstuck.operations import job_reads, submitting
from unstuck.operations.bounds import bounded, size_of_attempt, size_of_wait
from unstuck.operations.filters import job_filter
from unstuck.operations.kinds import (
    UNSAID,
    Cursor,
    Duration,
    Unsaid,
    number_of,
    patience,
    seconds,
    whole_number,
)
from unstuck.operations.table import OPERATOR, READER, SUBMITTER, Caller, operation
from unstuck.store.port import ATTEMPTS_PAGE
from unstuck.views import Page
from unstuck.views.flow import BranchView, ChildView, PartialView, StepView, UsageView, WaitView
from unstuck.views.jobs import AttemptView, EventWhole, JobList, JobView, JobWhole, LogView, NewJobView, StackView
from unstuck.views.why import WhyAnswer

#: A job is named by its id, or by as much of its beginning as names one job only.
NAMED = (UnknownJob, AmbiguousJob)

MOST_EVENTS = 10_000
MOST_IN_TREE = 10_000


# --- look ---------------------------------------------------------------------------------------------------------


@operation(role=READER, limited="kept", whose="any", paged="after")
def list_(
    caller: Caller,
    *,
    state: State | Iterable[State] = (),
    workflow: str | None = None,
    queue: str | None = None,
    error_type: str | None = None,
    target: str | None = None,
    tag: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    argument: tuple[str, Any] | None = None,
    newest_first: bool = True,
    limit: int = 50,
    after: str | None = None,
) -> JobList:
    """The newest jobs, or those you ask for: in these states, of this workflow, submitted `before` or `since`. A
    search by `argument` (its name and value) looks at a bounded number of jobs: `looked` says at how many, and `next`
    goes on behind them."""
    wanted = job_filter(
        caller,
        state=state,
        workflow=workflow,
        queue=queue,
        error_type=error_type,
        target=target,
        tag=tag,
        before=before,
        since=since,
        argument=argument,
    )
    found = caller.lookup.jobs(replace(wanted, newest_first=newest_first), limit, after)
    now, hidden = caller.store.now(), caller.redactions
    items = tuple(JobView.of(record, now, hidden.of(record.tenant)[record.workflow]) for record in found.jobs)
    return JobList(items=items, next=found.next, looked=found.looked)


@operation(role=READER, limited="kept", whose="any", errors=NAMED, command="jobs show")
def get(caller: Caller, job: str, *, last: int | None = None) -> JobWhole:
    """Everything about one job: what its state means, its attempts, its history, what it waits for. `last`: of
    attempts and events only so many. It has the last 100 attempts and 1,000 events at most; `attempts` and `history`
    have all."""
    most = None if last is None else whole_number(last, "last", 1)
    return job_reads.whole(caller, job, most)


@operation(role=READER, limited="kept", whose="any", waits=True, errors=NAMED)
def wait(caller: Caller, job: str, *, timeout: Duration = 30.0) -> JobView:
    """A job once it has ended, or as it stands when the time is over: `state` says which. One call waits for at most
    60 seconds; ask again."""
    ident, most = _known(caller, job), patience(timeout)
    seen: list[JobRecord] = []

    def look() -> JobRecord:
        seen[:] = [caller.lookup.job(ident)]
        return seen[0]

    wait_for_end(look, most)
    record = seen[0] if seen else look()  # it looks once more when the time is over, unless the store is away
    return JobView.of(record, caller.store.now(), caller.redactions[record.workflow])


@operation(role=READER, limited="kept", whose="any", paged="after", errors=NAMED)
def history(caller: Caller, job: str, *, after: Cursor | None = None, limit: int = 1000) -> Page[EventWhole]:
    """What happened to a job above this event's number, in order, each with the attempt that it ended."""
    record, behind = caller.lookup.job(job), number_of(after) or 0
    most = whole_number(limit, "limit", 1, MOST_EVENTS)
    events = job_reads.with_attempts(caller, record, islice(caller.lookup.events(record.id, behind), most))
    found, is_full = bounded(events, most, lambda each: each.size)
    hide = caller.redactions[record.workflow]
    items = tuple(each.view(hide) for each in found)
    return Page(items=items, next=str(items[-1].number) if is_full else None)


@operation(role=READER, limited="kept", whose="any", paged="after", errors=NAMED, command="jobs show")
def attempts(
    caller: Caller, job: str, *, after: Cursor | None = None, limit: int = ATTEMPTS_PAGE
) -> Page[AttemptView]:
    """The attempts of a job above this one's number, with what they printed and the stacks that they left."""
    record, behind = caller.lookup.job(job), number_of(after) or 0
    most = whole_number(limit, "limit", 1, ATTEMPTS_PAGE)
    found, is_full = bounded(caller.lookup.attempts(record.id, behind, most), most, size_of_attempt)
    hide = caller.redactions[record.workflow]
    items = tuple(AttemptView.of(each, hide) for each in found)
    return Page(items=items, next=str(items[-1].attempt) if is_full else None)


@operation(role=READER, limited="kept", whose="any", paged="after", errors=NAMED)
def logs(
    caller: Caller,
    job: str,
    *,
    attempt: int | None = None,
    level: str | None = None,
    after: Cursor | None = None,
    limit: int = ATTEMPTS_PAGE,
) -> Page[LogView]:
    """What a job printed and logged so far: of all attempts above `after`, at most `limit` of them, or of one. With a
    `level` only records of this level and above."""
    record, behind = caller.lookup.job(job), number_of(after) or 0
    reader = Logs(caller.lookup, record.id, attempt, level)
    most, hide = whole_number(limit, "limit", 1, ATTEMPTS_PAGE), caller.redactions[record.workflow]
    if attempt is not None:
        return Page(items=tuple(LogView.of(piece, hide) for piece in reader.look()[0]))
    read, is_full = bounded(caller.lookup.attempts(record.id, behind, most), most, size_of_attempt)
    items = tuple(LogView.of(piece, hide) for each in read for piece in reader.said_by(each))
    return Page(items=items, next=str(read[-1].token) if is_full else None)


@operation(role=READER, limited="kept", effect="stream", whose="any", errors=NAMED, command="jobs logs")
def follow_logs(caller: Caller, job: str, *, attempt: int | None = None, level: str | None = None) -> Source[LogView]:
    """What a job printed and logged, and what comes, until it has ended."""
    record = caller.lookup.job(job)
    reader = Logs(caller.lookup, record.id, attempt, level, follow=True)
    view = partial(LogView.of, hide=caller.redactions[record.workflow])
    return Looks(reader.look, view, lambda piece: piece.attempt)


@operation(role=READER, limited="kept", whose="any", paged="after", errors=NAMED)
def steps(caller: Caller, job: str, *, after: Cursor | None = None, limit: int = 1000) -> Page[StepView]:
    """The steps that a job has finished, in the order it did, behind the first `after` of them. Later attempts get
    their results instead of running them again."""
    record, behind = caller.lookup.job(job), number_of(after) or 0
    most = whole_number(limit, "limit", 1, MOST_STEPS)
    found, is_full = bounded(caller.lookup.steps(record.id, behind), most, lambda step: len(step.result))
    hide = caller.redactions[record.workflow]
    items = tuple(StepView.of(each, hide) for each in found)
    return Page(items=items, next=str(behind + len(items)) if is_full else None)


@operation(role=READER, limited="kept", whose="any", paged="after", errors=NAMED)
def partials(caller: Caller, job: str, *, after: Cursor | None = None, limit: int = MOST_PARTS) -> Page[PartialView]:
    """The parts of its result that a job has given before its end, above this number, in the order it gave them. A
    name that is given again has a new value."""
    most = whole_number(limit, "limit", 1, MOST_PARTS)
    record = caller.lookup.job(job)
    read, hide = caller.lookup.parts(record.id, number_of(after) or 0, most), caller.redactions[record.workflow]
    found, is_full = bounded(read, most, lambda part: len(part.value))
    items = tuple(PartialView.of(part, hide) for part in found)
    return Page(items=items, next=str(items[-1].number) if is_full else None)


@operation(role=READER, limited="kept", effect="stream", whose="any", errors=NAMED, command="jobs partials")
def follow_partials(caller: Caller, job: str, *, after: Cursor | None = None) -> Source[PartialView]:
    """The parts of its result that a job has given above this number, and those that come, until it has ended. A name
    that is given again comes again."""
    record = caller.lookup.job(job)
    reader = PartialsReader(caller.lookup, record.id, number_of(after) or 0)
    view = partial(PartialView.of, hide=caller.redactions[record.workflow])
    return Looks(reader.look, view, lambda part: part.number)


@operation(role=READER, limited="kept", whose="any", paged="after", errors=NAMED, command="jobs show")
def waits(caller: Caller, job: str, *, after: Cursor | None = None, limit: int = 1000) -> Page[WaitView]:
    """What a job ever waited for, the oldest first, behind the first `after` of them."""
    record, behind = caller.lookup.job(job), number_of(after) or 0
    most = whole_number(limit, "limit", 1, MOST_WAITS)
    found, is_full = bounded(caller.lookup.waits(record.id, behind), most, size_of_wait)
    hide = caller.redactions[record.workflow]
    items = tuple(WaitView.of(each, hide) for each in found)
    return Page(items=items, next=str(behind + len(items)) if is_full else None)


@operation(role=READER, limited="kept", whose="any", errors=NAMED, command="jobs show")
def usage(caller: Caller, job: str) -> UsageView:
    """What a job has used of its budget in its present run."""
    return UsageView.of(caller.lookup.usage(_known(caller, job)))


@operation(role=READER, limited="kept", whose="any", errors=NAMED, command="jobs show")
def children(caller: Caller, job: str) -> Page[ChildView]:
    """The jobs that a job spawned, as they stand."""
    return Page(items=tuple(map(ChildView.of, caller.lookup.children(_known(caller, job)))))


@operation(role=READER, whose="any", errors=NAMED)
def tree(caller: Caller, job: str, *, limit: int = 200) -> BranchView:
    """Parents and children, from the topmost parent down, at most `limit` jobs."""
    most = whole_number(limit, "limit", 1, MOST_IN_TREE)
    return BranchView.of(family(caller.store, caller.one, _known(caller, job), most))


@operation(role=READER, limited="kept", whose="any", errors=NAMED, command="why")
def why(caller: Caller, job: str) -> WhyAnswer:
    """Why a job is not running: the verdict, every reason, who must act, and the command to type."""
    return WhyAnswer.of(job_reads.why_not(caller, caller.lookup.job_id(job)))


@operation(
    role=READER,
    limited="kept",
    effect="change",
    repeat="same",
    audited="workers.stack",
    errors=(*NAMED, NoStack, NoAnswer, Conflict),
    command="stack",
)
def stack(caller: Caller, job: str, *, attempt: int | None = None, timeout: Duration = 10.0) -> StackView:
    """Where a job is in its code: of a running one its worker is asked, which may take so long; else the stack is
    given that its last attempt left, or this `attempt`."""
    most = seconds(timeout, "timeout")
    ident = _known(caller, job)
    if attempt is None:
        return job_reads.asked_stack(caller, ident, most)
    return job_reads.stored_stack(caller, ident, whole_number(attempt, "attempt", 1))


# --- ask ----------------------------------------------------------------------------------------------------------


@operation(
    role=SUBMITTER,
    limited="kept",
    effect="change",
    repeat="key",
    errors=(
        UnknownWorkflowName,
        InvalidArguments,
        InvalidPolicy,
        NotStorable,
        KeyConflict,
        IdConflict,
        TooManyQueued,
        SignatureRefused,
        WorkflowBlacklisted,
        *NAMED,
    ),
    status=201,
    command="enqueue",
)
def enqueue(
    caller: Caller,
    workflow: str,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    key: str | None = None,
    id: str | None = None,
    priority: int = 0,
    delay: Duration | None = None,
    at: datetime | None = None,
    queue: str | None = None,
    target: str | Unsaid | None = UNSAID,
    limit_key: str | Unsaid | None = UNSAID,
    tags: Sequence[str] = (),
    hold: bool = False,
    after: Sequence[str] = (),
    after_failure: AfterFailure = "fail",
    policy: Mapping[str, Any] | None = None,
    payload: str | None = None,
    signature: Mapping[str, Any] | None = None,
) -> NewJobView:
    """Accept a job of a workflow that workers have registered. The same `key`, or the same `id` (a UUID that you
    chose), is the same job. `policy`: where it is not to be its workflow's, {"timeout": 60, "retries": 0}. A signed
    job has its arguments as the text `payload`, which is stored as it came, and a `signature`: docs/signing.md."""
    asked = submitting.asked(
        caller,
        workflow,
        args=args,
        kwargs=kwargs,
        key=key,
        id=id,
        priority=priority,
        delay=delay,
        at=at,
        queue=queue,
        target=target,
        limit_key=limit_key,
        tags=tags,
        hold=hold,
        after=after,
        after_failure=after_failure,
        policy=policy,
        payload=payload,
        signature=signature,
    )
    return submitting.submit(asked)


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="refused",
    over_filter=True,
    audited="jobs.cancel",
    errors=(*NAMED, IllegalMove),
)
def cancel(caller: Caller, job: str, *, reason: str | None = None) -> JobView:
    """Stop a job for good. At once if it has not started; else its handler is asked to stop."""
    return _ask(caller, job, lambda ident: caller.control.cancel(ident, reason))


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="refused",
    over_filter=True,
    audited="jobs.interrupt",
    errors=(*NAMED, IllegalMove),
)
def interrupt(caller: Caller, job: str, *, reason: str | None = None) -> JobView:
    """Pause a job. Stopped like a cancel, but resumable."""
    return _ask(caller, job, lambda ident: caller.control.interrupt(ident, reason))


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="refused",
    over_filter=True,
    audited="jobs.resume",
    errors=(*NAMED, IllegalMove),
)
def resume(caller: Caller, job: str, *, from_start: bool = False) -> JobView:
    """Let a stopped job go on: a new, clean run of a paused, failed, timed-out or cancelled one. `from_start`: its
    finished steps and partial results are forgotten."""
    return _ask(caller, job, lambda ident: caller.control.resume(ident, from_start=from_start))


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="refused",
    over_filter=True,
    audited="jobs.release",
    errors=(*NAMED, IllegalMove),
)
def release(caller: Caller, job: str, *, force: bool = False) -> JobView:
    """Let go of a job that was enqueued with `hold`; with `force` it no longer waits for other jobs either."""
    return _ask(caller, job, lambda ident: caller.control.release(ident, force=force))


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="refused",
    over_filter=True,
    audited="jobs.skip",
    errors=(*NAMED, NotBlocking),
)
def skip(caller: Caller, job: str) -> JobView:
    """Let the target that this job blocks move on. The job stays as it is."""
    return _ask(caller, job, caller.control.skip)


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="again",
    over_filter=True,
    audited="jobs.retry",
    errors=(*NAMED, IllegalMove),
)
def retry(caller: Caller, job: str) -> JobView:
    """Run a job again from its start. One that waits for its next try is due now."""
    return _ask(caller, job, caller.control.retry)


@operation(
    role=OPERATOR, limited="kept", effect="change", repeat="same", audited="jobs.retry", errors=(*NAMED, IllegalMove)
)
def run_now(caller: Caller, job: str) -> JobView:
    """Let a job that waits for its time (`delay`, `at`, the next try) be due now. Nothing else is changed."""
    return _ask(caller, job, caller.control.run_now)


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="same",
    audited="jobs.reprioritise",
    errors=(*NAMED, IllegalMove),
)
def reprioritise(caller: Caller, job: str, priority: int) -> JobView:
    """Give a job that waits another priority; its age stays. IllegalMove if it runs or has ended."""
    return _ask(caller, job, lambda ident: caller.control.reprioritise(ident, priority))


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="refused",
    audited="jobs.resolve",
    errors=(*NAMED, IllegalMove, NotStorable),
)
def resolve(caller: Caller, job: str, result: Any) -> JobView:
    """Complete a job by hand: a paused, failed or timed-out one ends COMPLETED with this result, without running."""
    return _ask(caller, job, lambda ident: caller.control.resolve(ident, encode_result(result)))


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="again",
    audited="jobs.replay",
    errors=(*NAMED, IllegalMove, InvalidPolicy, SignatureRefused, TooManyQueued, WorkflowBlacklisted),
    status=201,
)
def replay(caller: Caller, job: str, *, budget: Mapping[str, float] | None = None) -> JobView:
    """Run an ended job once more, as a new job with the same workflow, arguments and policy. `budget`: the units in
    which that one may use more, or less."""
    return _ask(
        caller, job, lambda ident: caller.lookup.job(caller.flow.replay(ident, budget=budget, trace=caller.trace).id)
    )


def _ask(caller: Caller, job: str, verb: Callable[[str], JobRecord]) -> JobView:
    ident = caller.lookup.job_id(job)
    try:
        record = verb(ident)
    except UnknownJob:
        raise caller.lookup.unknown(job) from None  # it says whose jobs were looked at
    return JobView.of(record, caller.store.now(), caller.redactions[record.workflow])


def _known(caller: Caller, job: str) -> str:
    """The whole id of a job that is there: a list of what an unknown one did would read like good news."""
    return caller.lookup.job(job).id
