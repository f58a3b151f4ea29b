"""What is asked about jobs and of them, by the one operation that every face calls; on both databases."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.operations.conftest import Ask
from tests.store.test_pending import work_off
from tests.support.builders import a_worker, begin, boom, claim_all, claimed, settle, submitted
from tests.support.parking import Stage
from unstuck.model.errors import (
    AmbiguousJob,
    Conflict,
    IllegalMove,
    InvalidArguments,
    InvalidInput,
    KeyConflict,
    NoStack,
    NotBlocking,
    NotPermitted,
    UnknownJob,
    UnknownWorkflowName,
)
from unstuck.model.lifecycle import JobState, Shown
from unstuck.model.settlement import ErrorInfo, Raised, Returned
from unstuck.model.waits import Wait, WaitKind
from unstuck.observe.stream import Stream
from unstuck.operations import bounds, events, jobs, stats
from unstuck.operations.table import Caller, Operation
from unstuck.store.port import AttemptOutput
from unstuck.store.sql_store import SqlStore
from unstuck.views import as_json, plain
from unstuck.views.jobs import EventWhole

ABOUT_ONE: list[Operation[Any, Any]] = [
    jobs.get, jobs.history, jobs.attempts, jobs.logs, jobs.steps, jobs.partials, jobs.waits, jobs.usage,
    jobs.children, jobs.tree, jobs.why, jobs.wait, jobs.stack, jobs.cancel, jobs.interrupt, jobs.resume, jobs.release,
    jobs.skip, jobs.retry, jobs.replay, jobs.follow_logs, jobs.follow_partials,
]  # fmt: skip
NOBODY = "01900000-0000-7000-8000-000000000000"


def retried(store: SqlStore, times: int) -> str:
    """The id of a job that failed so often; each time with a stack and a line of output."""
    ada = a_worker(store)
    ident = submitted(store, retries=times).id
    for attempt in range(1, times + 1):
        [held] = claim_all(store, ada)
        begin(store, ada, held)
        store.keep_output([AttemptOutput(held.ref, output=f"attempt {attempt}\n")])
        settle(store, ada, held.ref, Raised(ErrorInfo("ValueError", f"no {attempt}", stack=f"line {attempt}")))
        store.run_now("default", ident, "test")
    return ident


# --- look -----------------------------------------------------------------------------------------------------------


def test_what_is_written_as_json_is_what_is_plain(ask: Ask, store: SqlStore) -> None:
    """One encoder walks it; the other way copies it first."""
    whole = jobs.get(ask(), retried(store, 3))
    page = jobs.list_(ask())
    for view in (whole, page, {"items": [{"job": whole, "at": whole.created_at, "policy": whole.policy}]}, "ü", None):
        assert json.loads(as_json(view)) == json.loads(json.dumps(plain(view)))


@pytest.mark.parametrize("operation", ABOUT_ONE, ids=lambda operation: operation.verb)
def test_a_job_that_nobody_knows_is_told_with_the_tenant_that_was_asked(
    ask: Ask, operation: Operation[Any, Any]
) -> None:
    for name in (NOBODY, NOBODY[:12]):
        with pytest.raises(UnknownJob, match="acme"):
            operation(ask(tenant="acme"), name)


READS = [operation for operation in ABOUT_ONE if operation.entry.effect != "change"]


@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.verb)
def test_every_tenant_means_whoever_has_the_job(ask: Ask, store: SqlStore, operation: Operation[Any, Any]) -> None:
    ident, other = submitted(store, tenant="acme").id, submitted(store).id
    everybody = ask(tenant="*")
    at_once = {"timeout": 0} if operation.entry.waits else {}
    theirs, same = operation(ask(tenant="acme"), ident, **at_once), operation(everybody, ident, **at_once)
    if operation.entry.effect == "stream":
        assert same.cursor == theirs.cursor
    else:
        assert without_times(plain(same)) == without_times(plain(theirs))
    for name in (ident[:-1], ident.upper()):
        operation(everybody, name, **at_once)
    operation(everybody, job=other, **at_once)
    for name in (NOBODY, NOBODY[:12], "\x00", ""):
        with pytest.raises(UnknownJob, match="there is no job"):
            operation(everybody, name)
    with pytest.raises(AmbiguousJob):
        operation(everybody, ident[:3])
    with pytest.raises(UnknownJob):
        operation(ask(), ident)


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in ("at", "meaning")}


def test_every_tenant_lists_all_and_is_refused_where_something_is_asked_of_a_job(ask: Ask, store: SqlStore) -> None:
    made = [submitted(store, tenant=tenant).id for tenant in ("acme", "default", "zeta")]
    everybody = ask(tenant="*")
    assert [(job.id, job.tenant) for job in jobs.list_(everybody, newest_first=False)] == [
        *zip(made, ("acme", "default", "zeta"), strict=True)
    ]
    first = jobs.list_(everybody, limit=2, state="queued")
    assert [job.id for job in first] == made[:0:-1]
    assert [job.id for job in jobs.list_(everybody, state="queued", after=first.next)] == made[:1]
    for operation in ABOUT_ONE:
        if operation.entry.effect == "change":
            with pytest.raises(InvalidInput, match="name it instead"):
                operation(everybody, made[0])
    with pytest.raises(NotPermitted, match="acme alone"):
        jobs.get(ask(tenant="*", bound="acme"), made[1])
    with pytest.raises(UnknownJob):
        jobs.get(ask(bound="acme"), made[1])
    found = events.list_(everybody, job=made[0][:-1])
    assert {(event.job, event.tenant) for event in found} == {(made[0], "acme")}


def test_a_wait_answers_with_the_job_when_it_has_ended_or_when_the_time_is_over(ask: Ask, store: SqlStore) -> None:
    ada = a_worker(store)
    held = claimed(store, ada)
    assert jobs.wait(ask(), held.id[:-1], timeout=0).state is JobState.RUNNING
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(jobs.wait, ask(), held.id, timeout="50s")
        assert not waiting.done()
        settle(store, ada, held.ref, Returned('"done"'))
        ended = waiting.result(timeout=20)
    assert (ended.state, ended.result) == (JobState.COMPLETED, "done")
    assert jobs.wait(ask(), held.id) == ended
    for timeout in (61, "2m", -1, "soon", None):
        with pytest.raises(InvalidInput, match="timeout"):
            jobs.wait(ask(), held.id, timeout=timeout)  # type: ignore[arg-type]


def test_a_list_goes_on_behind_its_cursor(ask: Ask, store: SqlStore) -> None:
    made = [submitted(store, tags=("night",) if n % 2 else ()).id for n in range(5)]
    page = jobs.list_(ask(), limit=2)
    assert [job.id for job in page] == made[:2:-1]
    rest = jobs.list_(ask(), limit=5, after=page.next)
    assert ([job.id for job in rest], rest.next) == (made[2::-1], None)
    assert [job.id for job in jobs.list_(ask(), tag="night", newest_first=False)] == [made[1], made[3]]
    now = store.now()
    assert not jobs.list_(ask(), before=now - timedelta(minutes=1)).items
    assert len(jobs.list_(ask(), since=now - timedelta(minutes=1))) == 5
    assert not jobs.list_(ask(tenant="acme")).items


def test_a_list_reaches_from_the_first_instant_of_the_calendar_to_the_last(ask: Ask, store: SqlStore) -> None:
    """Programs say "no bound" so: the smallest time of Go and .NET is the first of them."""
    ident, first, last = submitted(store).id, datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert [job.id for job in jobs.list_(ask(), since=first, before=last)] == [ident]
    assert [job.id for job in jobs.list_(ask(), since=first, before=last, newest_first=True)] == [ident]
    assert jobs.list_(ask(), since=last).items == jobs.list_(ask(), before=first).items == ()


def test_a_view_says_what_its_state_means(ask: Ask, store: SqlStore) -> None:
    held = submitted(store, on_hold=True).id
    later = submitted(store, delay=60.0).id
    found = {job.id: job for job in jobs.list_(ask())}
    assert found[held].meaning == f"accepted, held back on purpose; let it go: unstuck jobs release {held}"
    assert found[later].shown_state is Shown.SCHEDULED
    assert found[later].meaning.startswith("starts in ")


def test_the_whole_of_a_job_has_all_that_the_other_questions_tell(ask: Ask, store: SqlStore) -> None:
    stage = Stage(store)
    attempt = stage.begun(budget=(("tokens", 5.0),))
    stage.step(attempt, "fetch", '{"n": 1}')
    stage.part(attempt, "page", "[1]", 1)
    child = stage.spawn(attempt, "crawl")
    whole = jobs.get(ask(), attempt.id[:-3])
    assert whole.id == attempt.id
    assert whole.steps == jobs.steps(ask(), attempt.id).items
    assert [(step.name, step.result) for step in whole.steps] == [("fetch", {"n": 1})]
    assert whole.children == jobs.children(ask(), attempt.id).items
    assert whole.usage == jobs.usage(ask(), attempt.id)
    assert whole.usage.budget == {"tokens": 5.0}
    assert [(part.name, part.value) for part in jobs.partials(ask(), attempt.id)] == [("page", [1])]
    assert (whole.partials, [each.id for each in whole.children]) == (1, [child.id])
    assert jobs.get(ask(), child.id).parent == attempt.id
    for ident in (attempt.id, child.id):
        tree = jobs.tree(ask(), ident)
        assert (tree.id, [below.id for below in tree.children]) == (attempt.id, [child.id])
    waiting = stage.asks("Deploy?", who=("kim",))
    [wait] = jobs.waits(ask(), waiting)
    assert (wait.question, wait.who, wait.answer) == ("Deploy?", ("kim",), None)
    assert jobs.get(ask(), waiting).waits == (wait,)


def test_a_history_is_read_page_by_page_with_the_attempts_that_ended(ask: Ask, store: SqlStore) -> None:
    ident = retried(store, 3)
    whole = jobs.get(ask(), ident)
    read: list[EventWhole] = []
    after: str | None = None
    while True:
        page = jobs.history(ask(), ident, after=after, limit=2)
        read += page.items
        if (after := page.next) is None:
            break
    assert [event.number for event in read] == list(range(1, whole.events + 1))
    assert [(event.kind, event.ended.attempt) for event in read if event.ended] == [("retried", n) for n in (1, 2, 3)]
    assert [event.number for event in jobs.history(ask(), ident, after=whole.events - 2)] == [
        whole.events - 1,
        whole.events,
    ]
    assert len(jobs.get(ask(), ident, last=2).history) == len(jobs.get(ask(), ident, last=2).attempt_list) == 2


def test_attempts_and_what_they_said_are_pages_too(ask: Ask, store: SqlStore) -> None:
    ident = retried(store, 3)
    first = jobs.attempts(ask(), ident, limit=2)
    assert [(each.attempt, each.stack) for each in first] == [(1, "line 1"), (2, "line 2")]
    assert [each.attempt for each in jobs.attempts(ask(), ident, after=first.next)] == [3]
    said = jobs.logs(ask(), ident, limit=2)
    assert [piece.text for piece in said] == ["attempt 1\n", "attempt 2\n"]
    assert [piece.text for piece in jobs.logs(ask(), ident, after=said.next)] == ["attempt 3\n"]
    assert [piece.text for piece in jobs.logs(ask(), ident, attempt=2)] == ["attempt 2\n"]
    assert not jobs.logs(ask(), ident, level="info").items
    with pytest.raises(InvalidInput, match="has no attempt 4"):
        jobs.logs(ask(), ident, attempt=4)


@pytest.mark.parametrize("number", [2**31, 2**63 - 1, 2**63, 2**64])
def test_an_attempt_that_no_job_can_have_had_is_none(ask: Ask, store: SqlStore, number: int) -> None:
    """Also one whose number no database can hold."""
    ident = retried(store, 1)
    if number < 2**63:
        for operation in (jobs.attempts, jobs.logs, jobs.history, jobs.partials):
            assert operation(ask(), ident, after=str(number)).items == ()
    with pytest.raises(Conflict):
        jobs.stack(ask(), ident, attempt=number)
    with pytest.raises(InvalidInput):
        jobs.logs(ask(), ident, attempt=number)


def test_a_page_of_what_is_large_is_short_and_says_how_to_go_on(
    ask: Ask, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check 9: what attempts printed, their stacks and what events hold is never told without bound."""
    ident = retried(store, 3)
    whole = {operation: read_all(operation, ask(), ident) for operation in (jobs.attempts, jobs.logs, jobs.history)}
    assert [len(pages) for pages in whole.values()] == [1, 1, 1]
    monkeypatch.setattr(bounds, "MOST_CHARACTERS", len("attempt 1\nline 1"))
    for operation, [full] in whole.items():
        pages = read_all(operation, ask(), ident)
        assert [item for page in pages for item in page] == full, operation
        assert len(pages) >= 3, operation
        assert len(pages[0]) < len(full), operation


def test_pages_of_steps_waits_and_events_are_short_where_those_are_large(
    ask: Ask, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check 9."""
    stage = Stage(store)
    attempt = stage.begun()
    for number in range(3):
        stage.step(attempt, f"s{number}", f'"{"x" * 100}"')
        stage.park(attempt, Wait(WaitKind.EVENT, f"event:e{number}#1", f"e{number}"))
        events.send(ask(), f"e{number}", "y" * 100, job=attempt.id)
        work_off(store)
        (attempt,) = claim_all(store, stage.worker)
        events.publish(ask(), "large.one", {"n": number, "x": ["z" * 100]})
    asked: dict[Operation[Any, Any], Any] = {
        jobs.steps: partial(jobs.steps, ask(), attempt.id),
        jobs.waits: partial(jobs.waits, ask(), attempt.id),
        events.list_: partial(events.list_, ask(), kinds="large.one"),
    }
    whole = {operation: [*page()] for operation, page in asked.items()}
    assert [len(each) for each in whole.values()] == [3, 3, 3]
    monkeypatch.setattr(bounds, "MOST_CHARACTERS", 150)
    for operation, page in asked.items():
        first = page()
        second = page(after=first.next)
        assert [*first, *second] == whole[operation], operation
        assert [len(first), len(second)] == [2, 1], operation
        some = page(limit=1)
        assert [*some, *page(after=some.next, limit=1)] == whole[operation][:2]
    assert (jobs.steps(ask(), attempt.id, after=2).next, jobs.steps(ask(), attempt.id, after=3).items) == (None, ())


def read_all(operation: Any, caller: Caller, ident: str) -> list[list[Any]]:
    pages, after = [], None
    while True:
        page = operation(caller, ident, after=after)
        pages.append([*page])
        if (after := page.next) is None:
            return [each for each in pages if each]


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (jobs.history, {"after": "x"}),
        (jobs.history, {"limit": 0}),
        (jobs.attempts, {"limit": 101}),
        (jobs.attempts, {"after": True}),
        (jobs.partials, {"limit": "5"}),
        (jobs.tree, {"limit": 0}),
        (jobs.get, {"last": 0}),
        (jobs.stack, {"timeout": "soon"}),
        (jobs.stack, {"attempt": 0}),
    ],
    ids=str,
)
def test_numbers_that_are_none_are_refused(
    ask: Ask, store: SqlStore, operation: Operation[Any, Any], words: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        operation(ask(), submitted(store).id, **words)


def test_a_stored_stack_is_that_of_the_attempt_that_is_named_or_of_the_last(ask: Ask, store: SqlStore) -> None:
    ident = retried(store, 2)
    shown = jobs.stack(ask(), ident)
    assert (shown.source, shown.attempt, str(shown), shown.error_message) == ("stored", 2, "line 2", "no 2")
    assert jobs.stack(ask(), ident, attempt=1).stack == "line 1"
    with pytest.raises(Conflict, match="no attempt #3"):
        jobs.stack(ask(), ident, attempt=3)
    with pytest.raises(NoStack, match="QUEUED"):
        jobs.stack(ask(), submitted(store).id)


def test_arguments_that_were_damaged_are_shown_as_they_are(ask: Ask, store: SqlStore) -> None:
    ident = submitted(store, payload="{not JSON").id
    assert jobs.get(ask(), ident).args == ("{not JSON",)


def test_what_a_job_gives_is_followed_to_its_end_and_from_where_a_reader_stopped(ask: Ask, store: SqlStore) -> None:
    stage = Stage(store)
    attempt = stage.begun()
    for serial, name in enumerate("abc", start=1):
        stage.part(attempt, name, "1", serial)
    stage.end(attempt)
    first = Stream(jobs.follow_partials(ask(), attempt.id))
    assert (next(first).name, first.cursor) == ("a", "1")
    rest = Stream(jobs.follow_partials(ask(), attempt.id, after=first.cursor))
    assert ([part.name for part in rest], rest.cursor) == (["b", "c"], "3")
    ident = retried(store, 2)
    jobs.cancel(ask(), ident)
    said = Stream(jobs.follow_logs(ask(), ident))
    assert ([piece.text for piece in said], said.cursor) == (["attempt 1\n", "attempt 2\n"], "2")


def test_counts_are_told_together_and_by_name(ask: Ask, store: SqlStore) -> None:
    submitted(store, queue="mail")
    submitted(store, queue="mail", delay=60.0)
    submitted(store, tenant="acme")
    found = stats.get(ask())
    assert (found["QUEUED"], found.scheduled, found.tenant) == (2, 1, "default")
    everybody = stats.get(ask(tenant="*"))
    assert (everybody["QUEUED"], everybody.tenant) == (3, None)
    assert [(queue.name, queue.states[JobState.QUEUED]) for queue in stats.by_queue(ask())] == [("mail", 2)]
    page = stats.by_tenant(ask(), limit=1)
    assert ([tenant.name for tenant in page], page.next) == (["acme"], "acme")
    assert [tenant.name for tenant in stats.by_tenant(ask(), after="acme")] == ["default"]
    assert plain(found)["states"]["QUEUED"] == 2


# --- ask ------------------------------------------------------------------------------------------------------------


def test_a_job_is_stopped_and_goes_on_and_its_history_says_who_asked(ask: Ask, store: SqlStore) -> None:
    ident = submitted(store).id
    paused = jobs.interrupt(ask(by="kim"), ident[:-3], reason="lunch")
    assert (paused.state, paused.id) == (JobState.PAUSED, ident)
    assert jobs.resume(ask(by="kim"), ident).state is JobState.QUEUED
    assert jobs.cancel(ask(by="lee"), ident, reason="no").state is JobState.CANCELLED
    asked = [(event.kind, event.data.get("by")) for event in jobs.history(ask(), ident) if event.data.get("by")]
    assert asked == [("interrupted", "kim"), ("resumed", "kim"), ("cancelled", "lee")]
    with pytest.raises(IllegalMove):
        jobs.cancel(ask(), ident)


def test_a_job_that_failed_is_resolved_retried_replayed_or_skipped(ask: Ask, store: SqlStore) -> None:
    ada = a_worker(store)
    failed = [claimed(store, ada, retries=0) for _ in range(3)]
    for held in failed:
        settle(store, ada, held.ref, boom())
    resolved = jobs.resolve(ask(), failed[0].id, {"by": "hand"})
    assert (resolved.state, resolved.result) == (JobState.COMPLETED, {"by": "hand"})
    assert jobs.retry(ask(), failed[1].id).run == 2
    again = jobs.replay(ask(), failed[2].id)
    assert (again.state, again.replay_of) == (JobState.QUEUED, failed[2].id)
    with pytest.raises(NotBlocking):
        jobs.skip(ask(), failed[2].id)
    on_hold = submitted(store, on_hold=True)
    assert jobs.release(ask(), on_hold.id).state is JobState.QUEUED


def test_a_workflow_is_enqueued_by_the_row_that_its_workers_registered(ask: Ask, store: SqlStore) -> None:
    from unstuck import App

    app = App("sqlite:///nowhere.db")

    @app.workflow(queue="sums")
    def add(a: int, b: int = 0) -> int:
        return a + b

    store.register_workflows(app._registry.records())
    first = jobs.enqueue(ask(), "add", args=[1], key="k", tags=["x"], delay="5m", policy={"retries": 7})
    assert (first.created, first.queue, first.tags, first.shown_state) == (True, "sums", ("x",), Shown.SCHEDULED)
    assert first.available_at - first.created_at == timedelta(minutes=5)
    whole = jobs.get(ask(), first.id)
    assert (whole.args, whole.kwargs, whole.policy.retries) == ((1,), {}, 7)
    again = jobs.enqueue(ask(), "add", args=[1], key="k")
    assert (again.created, again.id) == (False, first.id)
    behind = jobs.enqueue(ask(), "add", kwargs={"a": 2}, after=[first.id[:-3]])
    assert behind.state is JobState.PENDING
    with pytest.raises(KeyConflict):
        jobs.enqueue(ask(), "add", args=[2], key="k")
    with pytest.raises(InvalidArguments):
        jobs.enqueue(ask(), "add", args=["x"])
    with pytest.raises(UnknownWorkflowName, match="add"):
        jobs.enqueue(ask(), "ad")
    with pytest.raises(InvalidInput, match="priority is an option of the job"):
        jobs.enqueue(ask(), "add", args=[1], policy={"priority": 5})
    with pytest.raises(UnknownJob):
        jobs.enqueue(ask(), "add", args=[1], after=[NOBODY])
    assert stats.get(ask()).states[JobState.QUEUED] == 1


def test_an_ended_job_has_its_result_in_its_view(ask: Ask, store: SqlStore) -> None:
    ada = a_worker(store)
    held = claimed(store, ada)
    settle(store, ada, held.ref, Returned('{"n": [1]}'))
    [job] = jobs.list_(ask(), state="completed")
    assert (job.result, job.meaning) == ({"n": [1]}, "its result is stored")
