"""One incarnation on a real store, with executors that do what the test says: lost answers, revoked attempts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.fake_fleet import FakeFleet
from unstuck.assembly.janitor import build_janitor
from unstuck.chance import SystemChance
from unstuck.clock import MachineClock
from unstuck.model.errors import InvalidSettings, OutcomeUnknown, StoreUnavailable
from unstuck.model.job import AttemptRef, ClaimedJob, JobRecord, NewJob, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.offers import left_out, offered
from unstuck.model.policy import Policy
from unstuck.model.settlement import Returned, Stopped
from unstuck.model.times import Times
from unstuck.store.port import Claimed, Grant, Share, Store, Verdict, Wanted, WorkerOrder
from unstuck.store.sql_store import SqlStore
from unstuck.worker.claim import Claimer
from unstuck.worker.incarnation import Incarnation
from unstuck.worker.parts import ClaimerNeeds, End, WorkerParts
from unstuck.worker.placing import Seats
from unstuck.worker.processes import ExecutorDied, ExecutorView, Finished, Imported, LeftBehind, Started
from unstuck.worker.remote_claim import RemoteClaimer
from unstuck.worker.shutdown import Shutdown
from unstuck.worker.view import WearLimits

TIMES = Times(
    lease=6.0,
    beat=0.4,
    margin=2.0,
    sweep=0.5,
    poll=0.1,
    cancel_poll=0.2,
    kill_grace=0.3,
    store_call=0.39,
    offer_ack=1,
)
WORKFLOW = WorkflowRecord("w", "v1", "default", Policy(), {})


def a_job_of(workflow: str, **policy: Any) -> NewJob:
    return NewJob(SystemChance().job_id(), "default", "default", workflow, "{}", Policy(**policy))


class Shop:
    """A store, a fake fleet and the incarnation between them."""

    def __init__(
        self, store: Store, fleet: FakeFleet | None = None, coroutines: Iterable[str] = (), **seats: int
    ) -> None:
        self.coroutines = frozenset(coroutines)
        self.store = store
        self.fleet = fleet or FakeFleet()
        self.shutdown = Shutdown(TIMES)
        self.parts = WorkerParts(
            incarnation=SystemChance().nonce(),
            store=store,
            beat_store=store,
            claimer=lambda needs: Claimer(
                store,
                needs.worker,
                needs.ledger,
                needs.pace,
                TIMES,
                MachineClock(),
                SystemChance(),
                name=needs.name,
                before_first=needs.before_first,
                landed=needs.landed,
            ),
            fleet=self.fleet,
            duties=lambda me: build_janitor(store, TIMES, me),
            clock=MachineClock(),
            chance=SystemChance(),
            times=TIMES,
            seats=Seats(**{"slots": 2, "processes": 1, **seats}),
            limits=WearLimits(),
        )
        self.incarnation = Incarnation(self.parts, self.shutdown)
        self.ends: list[End] = []
        self.thread = threading.Thread(target=lambda: self.ends.append(self.incarnation.run()))

    def open(self) -> None:
        self.fleet.say(Imported((WORKFLOW,), "v1", "fork", "", self.coroutines))
        self.thread.start()

    def submit(self, count: int = 1, **policy: Any) -> list[str]:
        new = [a_job_of("w", **policy) for _ in range(count)]
        return [stored.id for stored in self.store.submit(new)]

    def fed(self, count: int = 1) -> list[ClaimedJob]:
        def arrived() -> list[ClaimedJob]:
            jobs = [job for jobs in self.fleet.fed.values() for job in jobs]
            assert len(jobs) >= count
            return jobs

        return eventually(arrived)

    def begin(self, job: ClaimedJob) -> None:
        self.fleet.say(Started(1, job.ref, MachineClock().boot()))

    def finish(self, job: ClaimedJob) -> None:
        self.fleet.say(Finished(1, job.ref, Returned("1"), 1))

    def record(self, job: str) -> JobRecord:
        found = self.store.get("default", job)
        assert found is not None
        return found

    def until(self, job: str, state: JobState) -> JobRecord:
        eventually(lambda: self.record(job).state is state)
        return self.record(job)


def test_code_that_requires_signatures_where_there_is_no_key_does_not_begin(store: SqlStore) -> None:
    """A44: told by the error of its start; nobody ever sees such a worker"""
    shop = Shop(store)
    shop.fleet.say(Imported((replace(WORKFLOW, require_signature=True),), "v1", "fork", ""))

    with pytest.raises(InvalidSettings, match=r"required \(workflow:w\), and there is no signing key"):
        shop.incarnation.run()

    assert not hasattr(shop.incarnation, "claimer")


class Withheld:
    """A server's part: it offers one job, and never comes to give its payload."""

    grant = Grant()

    def __init__(self) -> None:
        self.has_offered = False
        self.was_asked = threading.Event()

    def register_workflows(self, workflows: Sequence[WorkflowRecord], **_: Any) -> frozenset[str]:
        return frozenset()

    def declare_schedules(self, app: str, origin: str, code_version: str, declared: Sequence[Any]) -> list[str]:
        return []

    def take(self, worker: int, claim: str, wanted: Wanted, *, again: bool = False) -> list[ClaimedJob]:
        if self.has_offered:
            return []
        self.has_offered = True
        ref = AttemptRef(1, 1, offered(claim))
        return [ClaimedJob(ref, "j1", 1, "default", "default", "w", left_out("{}"), Policy(), 1, False)]

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]:
        return [Verdict.DONE] * len(offers)

    def payloads(self, worker: int, refs: Sequence[AttemptRef]) -> list[str | None]:
        self.was_asked.set()
        raise StoreUnavailable("no answer")


def test_nobody_asks_for_the_payloads_of_an_incarnation_that_has_lost_its_lease(store: SqlStore) -> None:
    shop, server = Shop(store), Withheld()

    def claimer(needs: ClaimerNeeds) -> RemoteClaimer:
        return RemoteClaimer(server, needs, TIMES, MachineClock(), SystemChance())

    shop.incarnation.parts = replace(shop.parts, claimer=claimer)
    shop.open()
    assert server.was_asked.wait(10)
    assert store.fence_worker(shop.incarnation._record.number, "the test")
    shop.thread.join(20)
    assert shop.ends == [End.FENCED]
    eventually(lambda: "unstuck-payloads" not in {thread.name for thread in threading.enumerate()}, timeout=15)


@pytest.fixture
def build(store: SqlStore) -> Iterator[Callable[..., Shop]]:
    shops: list[Shop] = []

    def make(over: Callable[[Store], Store] = lambda store: store, **seats: Any) -> Shop:
        shop = Shop(over(store), **seats)
        shops.append(shop)
        shop.open()
        return shop

    yield make
    for shop in shops:
        for _ in range(3):
            shop.shutdown.ask()
        shop.fleet.say(*[ExecutorDied(n, 1, "end", (), ()) for n in tuple(shop.fleet.fed)])
        shop.thread.join(20)
        assert not shop.thread.is_alive()


class Lossy:
    """The store, except that the answer of the first claims is lost after they were carried out."""

    def __init__(self, store: Store, losses: int) -> None:
        self._store = store
        self.losses = losses
        self.claims: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> Claimed:
        jobs = self._store.claim(worker, claim, shares)
        self.claims.append(claim)
        if jobs and self.losses > 0:
            self.losses -= 1
            raise OutcomeUnknown("the answer was lost")
        return jobs


def test_it_never_claims_more_than_it_has_slots_for(build: Callable[..., Shop]) -> None:
    shop = build()
    ids = shop.submit(5)
    first, second = shop.fed(2)
    assert [shop.record(job).state for job in ids].count(JobState.RUNNING) == 2
    for job in (first, second):
        shop.begin(job)
        shop.finish(job)
    assert len(shop.fed(4)) == 4


def test_thousands_of_routes_that_it_does_not_serve_do_not_hide_its_own(
    build: Callable[..., Shop], store: SqlStore
) -> None:
    store.submit([a_job_of(f"foreign-{n}") for n in range(1100)])
    shop = build()

    [job] = shop.submit(1)

    assert [fed.id for fed in shop.fed(1)] == [job]


def test_a_lost_answer_of_a_claim_is_asked_for_again_under_the_same_id(build: Callable[..., Shop]) -> None:
    lossy: list[Lossy] = []

    def over(store: Store) -> Any:
        lossy.append(Lossy(store, losses=1))
        return lossy[0]

    shop = build(over)
    (id,) = shop.submit()
    (job,) = shop.fed()
    assert lossy[0].claims.count(job.ref.claim) == 2
    shop.begin(job)
    shop.finish(job)
    assert shop.until(id, JobState.COMPLETED).token == 1


def test_a_claim_whose_answer_never_comes_goes_back_with_the_next_beat_uncharged(build: Callable[..., Shop]) -> None:
    shop = build(lambda store: Lossy(store, losses=2))
    (id,) = shop.submit()
    (job,) = shop.fed()
    assert job.ref.token == 2
    kinds = [event.kind for event in shop.store.history("default", id)]
    assert kinds == ["submitted", "claimed", "given_back", "claimed"]
    assert shop.record(id).losses == 0


def test_an_attempt_that_the_database_took_away_is_stopped_and_its_executor_ended(build: Callable[..., Shop]) -> None:
    """A worker whose attempt was revoked ends that executor; what the old body says later changes nothing."""
    shop = build()
    (id,) = shop.submit(timeout=30, grace=30)
    (job,) = shop.fed()
    shop.begin(job)
    # Long before its time: the worker itself is not to judge first.
    eventually(lambda: shop.store.convict_overdue(kill_grace=-100.0, lease=0.0))

    eventually(lambda: shop.fleet.told("drain"))
    eventually(lambda: shop.fleet.told("kill"))
    assert shop.record(id).held
    shop.finish(job)
    assert shop.record(id).error_type == "ExecutionStuck"
    eventually(lambda: not shop.record(id).held)


def test_the_lease_is_granted_to_the_executors_with_every_beat(build: Callable[..., Shop]) -> None:
    shop = build()
    eventually(lambda: shop.fleet.granted is not None)
    first = shop.fleet.granted
    assert first is not None
    eventually(lambda: (shop.fleet.granted or 0) > first)
    assert (shop.fleet.granted or 0) <= MachineClock().boot() + TIMES.lease - TIMES.margin


def test_an_incarnation_whose_lease_was_ended_by_others_stops_for_good(build: Callable[..., Shop]) -> None:
    shop = build()
    (id,) = shop.submit()
    shop.begin(shop.fed()[0])
    eventually(lambda: shop.record(id).state is JobState.RUNNING)
    (worker,) = shop.store.workers()
    eventually(lambda: shop.store.expire_worker(worker.number, shop.store.workers()[0].lease_until, "a test says so"))
    eventually(lambda: shop.ends == [End.FENCED])
    assert ("close",) in shop.fleet.orders


class SlowToClose(FakeFleet):
    """Its processes take their time to end."""

    def __init__(self) -> None:
        super().__init__()
        self.silences: list[float] = []
        self.shop: Shop | None = None

    def close(self, stamp: Callable[[], None] = lambda: None) -> None:
        super().close(stamp)
        if self.shop is not None and len(self.told("close")) == 1:
            before = self.shop.incarnation._main.stamped_at
            stamp()
            self.silences.append(self.shop.incarnation._main.stamped_at - before)


def test_a_worker_that_waits_for_the_end_of_its_processes_is_not_taken_for_stalled(
    build: Callable[..., Shop],
) -> None:
    fleet = SlowToClose()
    shop = fleet.shop = build(fleet=fleet)
    eventually(lambda: shop.fleet.granted is not None)

    shop.shutdown.ask()
    shop.fleet.say(*[ExecutorDied(n, 1, "end", (), ()) for n in tuple(shop.fleet.fed)])
    eventually(lambda: shop.ends == [End.LEFT])

    assert [silence > 0 for silence in fleet.silences] == [True]


# --- the ladder, as far as state and actions go--------------------------------------------------------------------
def a_running_job(shop: Shop, **policy: Any) -> tuple[str, ClaimedJob]:
    (id,) = shop.submit(**policy)
    (job,) = shop.fed()
    shop.begin(job)
    return id, job


def test_a_verdict_carries_message_duration_and_stack(build: Callable[..., Shop]) -> None:
    """A25"""
    shop = build()
    (id,) = shop.submit(timeout=0.1, grace=0.2)
    (job,) = shop.fed()
    shop.fleet.stacks[job.ref] = "File handlers.py, line 7, in forever"
    shop.begin(job)

    record = shop.until(id, JobState.FAILED)

    assert record.error_type == "ExecutionStuck"
    assert record.error_message == (
        "Execution did not respond to cancellation within 0.2 seconds. Worker process recycled."
    )
    (attempt,) = shop.store.attempts("default", id)
    assert attempt.stack == "File handlers.py, line 7, in forever"
    assert attempt.duration_ms is not None
    assert attempt.duration_ms >= 300
    assert [ref for _, refs in shop.fleet.told("dump") for ref in refs] == [job.ref]


def test_a_verdict_without_a_stack_says_why(build: Callable[..., Shop]) -> None:
    shop = build()
    id, _ = a_running_job(shop, timeout=0.1, grace=0.2)
    shop.fleet.look(1, is_stopped=True, pulse_age=9.0)
    shop.until(id, JobState.FAILED)
    (attempt,) = shop.store.attempts("default", id)
    assert attempt.stack == "no stack: process 1001 is stopped (state T)"


def test_the_replacement_is_ordered_in_the_same_tick_as_the_verdict(build: Callable[..., Shop]) -> None:
    """A27"""
    shop = build()
    a_running_job(shop, timeout=0.1, grace=0.2)
    eventually(lambda: shop.fleet.told("kill"))
    orders = [order[0] for order in shop.fleet.orders]
    assert orders[orders.index("drain") :][:3] == ["drain", "kill", "spawn"]


def test_a_job_that_was_interrupted_for_its_neighbours_runs_again_by_itself_uncharged(
    build: Callable[..., Shop],
) -> None:
    shop = build()
    first, second = shop.submit(2)
    blocker, other = shop.fed(2)
    for job in (blocker, other):
        shop.begin(job)
    on_main = frozenset({blocker.ref, other.ref})
    shop.fleet.stacks[blocker.ref] = "time.sleep(1000)"
    shop.fleet.look(1, on_main=on_main, on_loop=blocker.ref, loop_age=29.9)
    eventually(lambda: shop.fleet.told("dump"))
    shop.fleet.look(1, on_main=on_main, on_loop=blocker.ref, loop_age=30.0)
    eventually(lambda: shop.fleet.told("interrupt"))
    shop.fleet.look(1, on_main=on_main, on_loop=None, loop_age=0.0)
    shop.fleet.say(Finished(1, blocker.ref, Stopped(None), 1))

    def again() -> None:
        (attempt, *_) = shop.store.attempts("default", blocker.id)
        assert attempt.stack == "time.sleep(1000)"
        assert "blocked the event loop" in (attempt.error_message or "")

    eventually(again)
    assert shop.record(blocker.id).losses == 0
    assert {first, second} == {blocker.id, other.id}
    eventually(lambda: any(job.ref.token == 2 and job.alone for jobs in shop.fleet.fed.values() for job in jobs))


# --- orders -------------------------------------------------------------------------------------------------------
def ordered(shop: Shop, kind: Any, subject: str = "") -> WorkerOrder:
    (worker,) = [w for w in eventually(shop.store.workers) if w.state == "active"]
    order = shop.store.give_order(worker.number, kind, subject, "ada")

    def answered() -> WorkerOrder:
        found = shop.store.order(order.number)
        assert found is not None
        assert found.done_at is not None
        return found

    return eventually(answered)


def test_a_process_is_recycled_by_order_and_its_jobs_finish_first(build: Callable[..., Shop]) -> None:
    """A31"""
    shop = build()
    id, job = a_running_job(shop)
    answer = ordered(shop, "recycle", "1001")
    assert (answer.answer, answer.is_refused) == ("process 1001 is draining; 1 job finishes first", False)
    assert (1,) in shop.fleet.told("drain")
    shop.finish(job)
    shop.until(id, JobState.COMPLETED)
    eventually(lambda: "recycled by ada" in str(shop.store.workers()[0].info.get("executors")))


@pytest.mark.parametrize("subject", ["4242", "none", "-1", ""])
def test_an_order_about_a_process_that_is_not_here_is_refused(build: Callable[..., Shop], subject: str) -> None:
    answer = ordered(build(), "recycle", subject)
    assert (answer.answer, answer.is_refused) == (f"no process {subject} here", True)


def test_a_drain_by_order_is_like_a_first_signal(build: Callable[..., Shop]) -> None:
    shop = build()
    id, job = a_running_job(shop)
    answer = ordered(shop, "drain")
    assert answer.answer == "this worker is draining; 1 job finishes first"
    assert not shop.shutdown.is_impatient
    shop.finish(job)
    shop.until(id, JobState.COMPLETED)
    eventually(lambda: shop.ends == [End.LEFT])


def test_the_answer_to_a_drain_is_written_before_an_idle_worker_leaves(build: Callable[..., Shop]) -> None:
    shop = build()
    eventually(lambda: shop.fleet.told("spawn"))
    assert ordered(shop, "drain").answer == "this worker is draining; 0 jobs finish first"
    eventually(lambda: shop.ends == [End.LEFT])


def test_the_stack_of_a_running_job_is_the_answer_to_an_order(build: Callable[..., Shop]) -> None:
    shop = build()
    _, job = a_running_job(shop)
    shop.fleet.stacks[job.ref] = "File handlers.py, line 7"
    answer = ordered(shop, "stack", f"{job.ref.job}:{job.ref.token}")
    assert (answer.answer, answer.is_refused) == ("File handlers.py, line 7", False)

    gone = ordered(shop, "stack", f"{job.ref.job}:{job.ref.token + 1}")
    assert (gone.answer, gone.is_refused) == ("it does not run here any more", True)
    shop.fleet.stacks.clear()
    none = ordered(shop, "stack", f"{job.ref.job}:{job.ref.token}")
    assert (none.answer, none.is_refused) == ("no stack: process 1001 does not show one", True)


def test_a_process_that_is_killed_by_order_gives_its_jobs_back_uncharged(build: Callable[..., Shop]) -> None:
    shop = build()
    id, job = a_running_job(shop)
    assert ordered(shop, "kill", "1001").answer == "process 1001 is killed; 1 of its jobs go back"
    shop.fleet.forget(1)
    shop.fleet.say(ExecutorDied(1, 1001, "signal 9", (job.ref,), ()))
    eventually(lambda: shop.record(id).token == 2)
    assert shop.record(id).losses == 0


# --- seen by others -----------------------------------------------------------------------------------------------
def test_it_is_ready_once_an_executor_is_and_no_longer_when_it_drains(build: Callable[..., Shop]) -> None:
    shop = build()
    eventually(lambda: any(worker.info.get("ready") for worker in shop.store.workers()))
    a_running_job(shop)
    assert shop.parts.readiness.is_ready
    shop.shutdown.ask()
    eventually(lambda: not shop.parts.readiness.is_ready)
    eventually(lambda: shop.store.workers()[0].info.get("ready") is False)


def test_a_process_that_went_is_remembered_with_its_reason(build: Callable[..., Shop]) -> None:
    shop = build()
    eventually(lambda: shop.fleet.told("spawn"))
    shop.fleet.say(LeftBehind(1, "w", ("Thread-1",)))
    eventually(lambda: shop.fleet.told("drain"))
    shop.fleet.forget(1)
    shop.fleet.say(ExecutorDied(1, 1001, "exit 0", (), (), expected=True))

    def told() -> None:
        info = shop.store.workers()[0].info
        gone = [(process["pid"], process["reason"]) for process in info.get("recycled", ())]
        assert gone == [(1001, "w left 1 running behind it: Thread-1")]
        assert [e["generation"] for e in info["executors"]] == [2]

    eventually(told)


def test_a_process_with_a_broken_import_is_replaced_however_often_that_happens(build: Callable[..., Shop]) -> None:
    """Threads that leak again and again are tolerated; a module that cannot be imported never is."""
    shop = build(processes=1)

    def is_told(verb: str, executor: int) -> bool:
        return executor in [order[0] for order in shop.fleet.told(verb)]

    for executor in range(1, 6):
        eventually(partial(is_told, "spawn", executor))
        shop.fleet.say(LeftBehind(executor, "w", (), broken_import="numpy"))
        eventually(partial(is_told, "drain", executor))
        shop.fleet.forget(executor)
        shop.fleet.say(ExecutorDied(executor, 1000 + executor, "exit 0", (), (), expected=True))

    reason = "w was interrupted while it imported numpy"
    eventually(lambda: reason in str(shop.store.workers()[0].info.get("recycled")))


def test_coroutines_are_left_to_others_while_no_loop_turns(build: Callable[..., Shop]) -> None:
    shop = build(coroutines={"w"}, processes=1)
    eventually(lambda: shop.fleet.told("spawn"))
    shop.fleet.look(1, loop_age=2.0)
    eventually(lambda: shop.incarnation.state.unrunnable() == {"w"})
    (id,) = shop.submit()
    with pytest.raises(AssertionError):
        eventually(lambda: shop.record(id).state is JobState.RUNNING, timeout=1.0)
    assert [event.kind for event in shop.store.history("default", id)] == ["submitted"]
    shop.fleet.look(1, loop_age=0.0)
    assert [job.id for job in shop.fed()] == [id]


class SlowToNudge(FakeFleet):
    """Whoever nudges it is held up right after the nudge, once."""

    def __init__(self) -> None:
        super().__init__()
        self.nudges = 0
        self.is_nudged = threading.Event()
        self.may_go = threading.Event()

    def nudge(self) -> None:
        self.nudges += 1
        if self.nudges == 1:
            self.is_nudged.set()
            self.may_go.wait(5.0)
        super().nudge()


def test_a_nudge_that_meets_another_is_not_lost(store: SqlStore) -> None:
    """The first may have been heard already when the second comes, and its thread not be done with it yet."""
    fleet = SlowToNudge()
    incarnation = Shop(store, fleet).incarnation
    first = threading.Thread(target=incarnation.nudge)
    first.start()
    fleet.is_nudged.wait(5.0)

    incarnation.nudge()
    fleet.may_go.set()
    first.join(5.0)

    assert fleet.nudges == 2


class Watched(FakeFleet):
    """Counts how often somebody looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def views(self) -> list[ExecutorView]:
        self.looks += 1
        return super().views()


class CountedBeats:
    """The store, and how often its worker beat."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.beats = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def renew(self, *facts: Any, **options: Any) -> Any:
        self.beats += 1
        return self._store.renew(*facts, **options)


def test_a_worker_that_holds_nothing_looks_at_its_executors_hardly_oftener_than_it_beats(
    build: Callable[..., Shop],
) -> None:
    """Both are slow on a slow machine. What it holds is looked at twenty times a second."""
    counted: list[CountedBeats] = []

    def over(store: Store) -> Any:
        counted.append(CountedBeats(store))
        return counted[0]

    shop = build(over, fleet=(fleet := Watched()))
    eventually(lambda: shop.incarnation.state.has_started and counted[0].beats >= 3)
    beats, looks = counted[0].beats, fleet.looks
    eventually(lambda: counted[0].beats >= beats + 6)
    assert fleet.looks - looks <= 3 * 6


def test_code_that_asks_for_signatures_later_is_shown_and_nothing_of_it_is_taken(build: Callable[..., Shop]) -> None:
    """The zygote was started anew, with other code: the worker lives, and says why it takes nothing"""
    shop = build()
    eventually(lambda: [worker.serves.get("workflows") for worker in shop.store.workers()] == [["w"]])
    shop.fleet.say(Imported((replace(WORKFLOW, require_signature=True),), "v2", "fork", ""))
    eventually(lambda: "there is no signing key" in (shop.store.workers()[0].info.get("import_error") or ""))
    eventually(lambda: shop.store.workers()[0].serves.get("workflows") == [])

    (job,) = shop.submit()
    waits_a_poll = threading.Event()
    waits_a_poll.wait(5 * TIMES.poll)

    assert shop.record(job).state is JobState.QUEUED
