"""Every verb takes its locks in the order that `store/lock_order.py` says."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

import pytest

from tests.conftest import StoreClock
from tests.store.test_fold import OUTCOMES
from tests.support import hooks, webhooks
from tests.support.builders import TENANT, a_job, a_worker, boom, chance, claim_all
from tests.support.lock_steps import LockWatch, locks_of
from tests.support.schedules import made, turn, verbs
from unstuck.intake.hooks import job_of
from unstuck.model.bulk import BulkVerb
from unstuck.model.errors import UnstuckError
from unstuck.model.hooks import Delivery
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.keys import NewKey
from unstuck.model.lifecycle import RequestKind
from unstuck.model.schedules import DeclaredSchedule
from unstuck.model.settlement import ErrorInfo, Parked, Stuck
from unstuck.model.waits import Answer, Wait, WaitKind
from unstuck.model.webhooks import WebhookState
from unstuck.store.database import Database
from unstuck.store.drivers.statements import Statements
from unstuck.store.lock_order import ORDER, RANK, UNDER
from unstuck.store.port import (
    AttemptOutput,
    BulkRecord,
    HookRefusal,
    JobFilter,
    Limit,
    NewBulk,
    NewChild,
    NewHookDelivery,
    NewStep,
    Pause,
    Report,
)
from unstuck.store.sql_store import SqlStore

only_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
WORKFLOW = "greet"


@pytest.fixture
def watch(database: Database) -> LockWatch:
    return LockWatch(database)


def out_of_order(sent: list[str]) -> str | None:
    """What a transaction waited for although it held something that comes later, or without what it belongs to."""
    held: dict[str, str] = {}
    for statement in sent:
        for kind, waits in locks_of(statement):
            ranked = [other for other in held if UNDER.get(other) not in held]
            later = [f"{other} ({held[other]})" for other in ranked if RANK[other] > RANK[kind]]
            if waits and kind in UNDER and UNDER[kind] not in held:
                return f"{statement} waits for {kind} without {UNDER[kind]}: {sent}"
            if waits and kind not in held and later and kind not in UNDER:
                return f"{statement} waits for {kind} behind {', '.join(later)}: {sent}"
            held.setdefault(kind, statement)
    return None


@only_postgres
def test_no_verb_waits_for_a_lock_that_comes_before_one_it_holds(watch: LockWatch, clock: StoreClock) -> None:
    story = Story(SqlStore(cast(Database, watch)), clock)
    story.wait_for_each()
    story.run(200)

    wrong = {found for sent in watch.transactions if (found := out_of_order(sent))}
    assert not wrong, "\n".join(sorted(wrong))
    waited = [[kind for name in sent for kind, waits in locks_of(name) if waits] for sent in watch.transactions]
    assert {kind for kinds in waited for kind in kinds} == set(ORDER), "every lock was waited for"
    assert sum(len(set(kinds)) > 1 for kinds in waited) > 20, "and several in one transaction"


def test_a_transaction_that_goes_back_is_noticed() -> None:
    assert out_of_order(["lock_job", "lock_targets"]) is not None
    assert out_of_order(["lock_targets", "lock_job", "lock_targets"]) is None
    assert out_of_order(["lock_job", "lock_free_targets"]) is None, "what is skipped may come at any time"
    assert out_of_order(["take_line"]) is not None, "a place in a line is its target's"
    assert out_of_order(["lock_targets", "take_ready", "take_line"]) is None, "under its target it may come later"
    assert out_of_order(["take_timer"]) is not None, "a timer is its job's"


def test_every_table_of_the_order_is_locked_by_some_statement() -> None:
    taken = {kind for name in Statements("postgres").names() for kind, _ in locks_of(name)}

    assert taken == set(ORDER)


class Story:
    """Random verbs of everybody on a few jobs that share targets, limits, parents and a workflow."""

    def __init__(self, store: SqlStore, clock: StoreClock) -> None:
        self.store, self.clock = store, clock
        self.dice = random.Random(1)
        self.jobs: list[str] = []
        self.held: dict[str, ClaimedJob] = {}
        self.worker = self._begin()

    def wait_for_each(self) -> None:
        """Every kind of lock at least once, whatever the dice say."""
        store, number = self.store, self.worker.number
        store.set_limit(Limit("workflow", WORKFLOW, "*", "ada", concurrency=8, rate=1000, per=60.0))
        store.beat(number, 60, [])
        first = [a_job(target=target) for target in ("t1", "t1", None)]
        store.submit(first)
        self.jobs += [job.id for job in first]
        store.ingest()
        store.pause(Pause("target", "t1", TENANT, "ada"))
        store.unpause("target", "t1", TENANT, "ada")
        for queued in self.jobs[1:]:
            store.cancel(TENANT, queued, "ada")  # from its line, and from ready
        for outcome in (
            boom(),
            Parked(Wait(WaitKind.EVENT, "event:paid#1", "paid")),
            Parked(Wait(WaitKind.APPROVAL, "approval#1", "Push?")),
            Stuck(ErrorInfo("ExecutionStuck", "x")),
        ):
            store.submit([job := a_job(retries=2)])
            self.jobs.append(job.id)
            [attempt] = [found for found in claim_all(store, self.worker) if found.id == job.id]
            if isinstance(outcome, Stuck):
                store.ask(attempt.ref, RequestKind.TIMEOUT)
            store.settle(number, [Report(attempt.ref, outcome)])
        *_, retried, told, decided, _ = self.jobs
        store.cancel(TENANT, retried, "ada")  # from its timer
        store.signal(TENANT, "paid", "1", "ada", job=told)
        store.decide(TENANT, decided, Answer.APPROVED, "ada")
        store.blacklist_add(TENANT, WORKFLOW, "it gets stuck", "ada")
        store.blacklist_remove(TENANT, WORKFLOW, "ada")
        store.cancel_bulk(TENANT, self._bulk().number, "ada")
        store.add_key(NewKey("aaaaaaaa", "ci", "0" * 64, TENANT, "reader", "ada"))
        store.revoke_key("aaaaaaaa", "ada")
        self._spend_in_a_tree()
        self._schedule()
        self._hook()
        self._webhook()

    def _webhook(self) -> None:
        """Made, copied for, sent, replayed, and gone."""
        store, begin = self.store, self.store.now()
        webhooks.made(store)
        store.submit([a_job(), a_job()])
        webhooks.copied(store)
        webhooks.sent(store, webhooks.BROKEN)
        store.state_webhook(TENANT, "hook", WebhookState.ACTIVE, "ada")
        webhooks.sent(store)
        store.replay_webhook(TENANT, "hook", "ada", since=begin)
        webhooks.copied(store)
        store.delete_webhook(TENANT, "hook", "ada")
        store.forget_deliveries(0.0)

    def _schedule(self) -> None:
        """Made, changed, fired and by code."""
        store = self.store
        made(store, workflow=WORKFLOW, overlap="queue")
        verbs(store).update("nightly", priority=1)
        self._tick()
        verbs(store).pause("nightly")
        verbs(store).resume("nightly")
        for version in ("v1", "v1", "v2"):
            store.declare_schedules("shop", "shop:app", version, [DeclaredSchedule(TENANT, "x", "{}")])

    def _hook(self) -> None:
        """Made, changed and delivered to."""
        hook = hooks.made(self.store).hook
        hooks.verbs(self.store).update("pushes", priority=1)
        hooks.verbs(self.store).rotate("pushes")
        hooks.verbs(self.store).pause("pushes")
        found = hooks.verbs(self.store).resume("pushes")
        assert hook.number == found.number
        job = job_of(self.store, found, Delivery(b'{"repo": "a/b"}'), "id:1")
        assert self.store.deliver_to_hook(NewHookDelivery(found, "id:1", job)) is not None
        self.store.refuse_hook_deliveries([HookRefusal(found.number, "misfit", "no", 422)])

    def _tick(self) -> None:
        self.clock.advance(60)
        turn(self.store)
        verbs(self.store).run_now("nightly")

    def _spend_in_a_tree(self) -> None:
        store, number = self.store, self.worker.number
        store.submit([top := a_job(budget_scope="tree", budget=(("tokens", 1.0),))])
        [parent] = [found for found in claim_all(store, self.worker) if found.id == top.id]
        child = store.spawn(NewChild(parent.ref, "child", 1, a_job()))
        [below] = [found for found in claim_all(store, self.worker) if child and found.id == child.id]
        for attempt in (below, parent):
            spent = store.spend(attempt.ref, 1, {"tokens": 1.0})
            store.settle(number, [Report(attempt.ref, boom())])
        assert spent is not None
        assert spent.exceeded
        self.jobs.append(top.id)

    def run(self, steps: int) -> None:
        verbs: list[Callable[[], object]] = [
            self._submit, self._claim, self._claim, self._settle, self._settle, self._settle, self._ask, self._ask,
            self._carry, self._flow, self._answer, self._order, self._guard, self._time, self._beat, self._ingest,
            self._tick,
        ]  # fmt: skip
        for _ in range(steps):
            try:
                self.dice.choice(verbs)()
            except UnstuckError:
                pass  # a verb that is refused has taken its locks all the same

    def _one(self) -> str:
        """By number: ids are random."""
        return self.dice.choice(sorted(self.held, key=lambda job: self.held[job].ref.job))

    def _begin(self) -> WorkerRecord:
        return a_worker(self.store, name=chance.nonce(), lease=60)

    def _submit(self) -> None:
        after = (self.dice.choice(self.jobs),) if self.jobs and self.dice.random() < 0.3 else ()
        job = a_job(
            target=self.dice.choice([None, "t1", "t2"]),
            after=after,
            on_hold=self.dice.random() < 0.1,
            retries=2,
            expires_after=self.dice.choice([None, 300.0]),
            on_blacklist=self.dice.choice(["fail", "hold"]),
        )
        self.store.submit([job])
        self.jobs.append(job.id)

    def _claim(self) -> None:
        self.held |= {job.id: job for job in claim_all(self.store, self.worker, self.dice.randint(1, 4))}

    def _settle(self) -> None:
        if self.held:
            attempt = self.held.pop(self._one())
            self.store.settle(self.worker.number, [Report(attempt.ref, self.dice.choice(OUTCOMES))])

    def _ask(self) -> None:
        if self.jobs:
            job = self.dice.choice(self.jobs)
            verb = self.dice.choice(["cancel", "interrupt", "resume", "run_now", "skip", "release", "reprioritise"])
            priority = [self.dice.randint(-3, 3)] if verb == "reprioritise" else []
            getattr(self.store, verb)(TENANT, job, *priority, "ada")

    def _bulk(self) -> BulkRecord:
        verb, filter = self.dice.choice(list(BulkVerb)), JobFilter(workflow=WORKFLOW)
        return self.store.start_bulk(NewBulk(chance.nonce(), TENANT, verb, filter, "ada"))

    def _carry(self) -> None:
        self._bulk()
        self.store.carry_bulks()

    def _flow(self) -> None:
        if not self.held:
            return
        attempt = self.held[self._one()]
        match self.dice.randrange(6):
            case 0:
                self.store.record_steps([NewStep(attempt.ref, "fetch", self.dice.randint(1, 9), "1", 1)])
            case 1:
                self.store.spend(attempt.ref, self.dice.randint(1, 99), {"tokens": 1.0})
            case 2:
                self.store.keep_part(attempt.ref, self.dice.randint(1, 99), "part", "1")
            case 3:
                self.store.keep_output([AttemptOutput(attempt.ref, output="said\n", progress="1")])
            case 4:
                child = self.store.spawn(NewChild(attempt.ref, "child", self.dice.randint(1, 5), a_job()))
                if child is not None:
                    wait = Wait(WaitKind.CHILDREN, "gather#1", children=(child.id,))
                    self.store.settle(self.worker.number, [Report(attempt.ref, Parked(wait))])
                    self.held.pop(attempt.id)
                    self.jobs.append(child.id)
            case 5:
                self.store.ask(attempt.ref, RequestKind.TIMEOUT)

    def _answer(self) -> None:
        """Whoever waits for an event gets it, and whoever asks a person an answer."""
        for wait in self.store.open_waits(TENANT, kind=self.dice.choice(["event", "approval"]), limit=3):
            if wait.wait.kind is WaitKind.EVENT:
                self.store.signal(TENANT, "paid", "1", "ada", job=wait.job)
            else:
                self.store.decide(TENANT, wait.job, Answer.APPROVED, "ada")

    def _order(self) -> None:
        match self.dice.randrange(4):
            case 0:
                self.store.pause(Pause("target", "t1", TENANT, "ada"))
            case 1:
                self.store.unpause("target", "t1", TENANT, "ada")
            case 2:
                self.store.set_limit(Limit("workflow", WORKFLOW, "*", "ada", concurrency=self.dice.randint(4, 9)))
            case 3:
                self.store.lift_body_mark(self.worker.number, self.dice.randint(1, 50))

    def _guard(self) -> None:
        match self.dice.randrange(4):
            case 0 if self.dice.random() < 0.3:
                self.store.blacklist_add(TENANT, WORKFLOW, "it gets stuck", "ada")
            case 1 | 2:
                self.store.blacklist_remove(TENANT, WORKFLOW, "ada")
            case 3:
                self.store.tend_guard()

    def _time(self) -> None:
        self.clock.advance(seconds=self.dice.choice([1, 5, 20]))
        self.store.release_due()
        self.store.expire_waits()
        self.store.convict_overdue(5, 30)
        self.store.tend_children()
        self.store.lift_body_marks(8)
        if self.dice.random() < 0.3:
            self.clock.advance(seconds=61)
            self.store.recover_lost(0)
            self.worker, self.held = self._begin(), {}

    def _beat(self) -> None:
        self.store.beat(self.worker.number, 60, [attempt.ref for attempt in self.held.values()])

    def _ingest(self) -> None:
        self.store.ingest()
