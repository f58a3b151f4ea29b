"""Sixteen actors over few and over many targets: never two bodies at once, nobody forgotten in a line, order kept."""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from tests.store.test_actors import ENDS, IDLE, OUTCOMES, POLICY, TENANT, Crowd
from tests.support.builders import settle_all
from tests.tiers import in_tiers
from unstuck.chance import SystemChance
from unstuck.model.errors import Conflict, StoreBusy, UnknownTarget
from unstuck.model.job import EventRecord, NewJob
from unstuck.model.lifecycle import JobState, fold
from unstuck.store.port import NewWorker, Pause, Report, Share, Verdict
from unstuck.store.sql_store import SqlStore

LEASE = 1.5


@dataclass
class TargetCrowd(Crowd):
    targets: int = 8

    def enqueue(self, store: SqlStore, dice: random.Random) -> None:
        if len(self.ids) >= self.jobs:
            self.stop.wait(0.05)
            return
        new = [
            NewJob(
                id=SystemChance().job_id(),
                tenant=TENANT,
                queue="default",
                workflow=f"w{dice.randrange(3)}",
                payload="{}",
                policy=POLICY,
                priority=dice.randrange(3),
                delay=dice.choice([0.0, 0.0, 0.0, 0.1]),
                target=f"t{dice.randrange(self.targets)}",
            )
            for _ in range(dice.randrange(1, 40))
        ]
        self.ids += [submitted.id for submitted in store.submit(new)]

    def work(self, store: SqlStore, dice: random.Random) -> None:
        """One life of a worker; one in four falls silent and settles too late."""
        worker = store.register_worker(
            NewWorker(SystemChance().nonce(), "w", "host", "boot", "ns", 1, 1, ("default",), "v1", LEASE)
        )
        zombie = dice.random() < 0.1
        for _ in range(dice.randrange(5, 40)):
            store.ingest()
            shares = [Share(front.route, dice.randrange(1, 20)) for front in store.open_routes()]
            claimed = store.claim(worker.number, SystemChance().nonce(), shares)
            if zombie and claimed:
                self.stop.wait(LEASE + 0.5)
            elif not store.beat(worker.number, LEASE, [job.ref for job in claimed]).alive:
                return
            if not claimed:
                self.stop.wait(IDLE)
            reports = [Report(job.ref, dice.choice(OUTCOMES), duration_ms=1) for job in claimed]
            names = {job.ref: job.id for job in claimed}
            for settled in settle_all(store, worker.number, reports):
                if settled.verdict is Verdict.DONE:
                    self.accepted.append((settled.ref, names[settled.ref]))
                else:
                    self.fenced.append(settled.ref)
        store.unregister_worker(worker.number)

    def mend(self, store: SqlStore, dice: random.Random) -> None:
        """Somebody looks at what blocks and does something about it."""
        self.stop.wait(0.01)
        for target in store.targets(TENANT, blocked=True, limit=20):
            if target.blocked_by is None:
                continue
            try:
                match dice.randrange(4):
                    case 0:
                        store.skip(TENANT, target.blocked_by, "mender")
                    case 1:
                        store.resolve(TENANT, target.blocked_by, "mender", "1")
                    case 2:
                        store.cancel(TENANT, target.blocked_by, "mender")
                    case _:
                        store.resume(TENANT, target.blocked_by, "mender")
            except Conflict:
                pass

    def pause(self, store: SqlStore, dice: random.Random) -> None:
        self.stop.wait(0.03)
        name = f"t{dice.randrange(self.targets)}"
        try:
            if dice.random() < 0.5:
                until = store.now() + timedelta(seconds=dice.random() * 0.3)
                store.pause(Pause("target", name, TENANT, "pauser", until_at=until))
            else:
                store.unpause("target", name, TENANT)
        except UnknownTarget:
            pass


@pytest.mark.timeout(300)
@pytest.mark.parametrize("targets", [8, 300])
@in_tiers("jobs", 40, 1500)
def test_a38_a39_sixteen_actors_never_run_two_jobs_of_a_target_and_forget_none(
    store_url: str, targets: int, jobs: int
) -> None:
    crowd = TargetCrowd(store_url, jobs, targets=targets)
    parts = [crowd.enqueue] * 3 + [crowd.work] * 7 + [crowd.cancel, crowd.meddle, crowd.mend, crowd.pause]
    parts += [crowd.sweep] * 2
    actors = [crowd.actor(part, seed) for seed, part in enumerate(parts)]
    judge = crowd.store()

    _wait_until_drained(crowd, judge)
    crowd.stop.set()
    for actor in actors:
        actor.join(60)

    assert crowd.errors == []
    assert len(set(crowd.ids)) == len(crowd.ids) >= jobs
    histories = {job: judge.history(TENANT, job) for job in crowd.ids}
    for job, events in histories.items():
        record = judge.get(TENANT, job)
        assert record is not None, f"{job} was acknowledged and is gone"
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert fold(event.kind for event in events) is record.state
    _check_one_body_at_a_time(judge, histories)
    judge.close()


def _wait_until_drained(crowd: TargetCrowd, judge: SqlStore) -> None:
    """A target that lost its head would keep its line for ever: then this never comes to an end."""
    deadline = time.monotonic() + max(200, crowd.jobs / 5)
    while not crowd.stop.is_set():
        time.sleep(0.2)
        try:
            counts = judge.counts(TENANT)
        except StoreBusy:
            continue
        assert time.monotonic() < deadline, (counts, judge.targets(TENANT, limit=400))
        if len(crowd.ids) >= crowd.jobs and not counts[JobState.QUEUED] and not counts[JobState.RUNNING]:
            return


def _check_one_body_at_a_time(judge: SqlStore, histories: dict[str, list[EventRecord]]) -> None:
    spans: dict[str, list[tuple[datetime, datetime, str]]] = defaultdict(list)
    for job, events in histories.items():
        record = judge.get(TENANT, job)
        assert record is not None
        spans[str(record.target)] += [(begin, end, job) for begin, end in _attempts(events)]
    for target, attempts in spans.items():
        attempts.sort()
        for (_, end, one), (begin, _, other) in itertools.pairwise(attempts):
            assert begin >= end, f"{one} and {other} ran at once on {target}"


def _attempts(events: Iterable[EventRecord]) -> list[tuple[datetime, datetime]]:
    found, begin = [], None
    for event in events:
        if event.kind == "claimed":
            begin = event.at
        elif event.kind in ENDS and begin is not None:
            found.append((begin, event.at))
            begin = None
    return found


@pytest.mark.timeout(120)
@in_tiers("size", 150, 400)
def test_a38_ten_claimers_run_each_target_in_order_of_priority_then_age(store_url: str, size: int) -> None:
    """No retries, no meddling: the order of the claims is exactly the order of the line."""
    crowd = TargetCrowd(store_url, jobs=0)
    store = crowd.store()
    dice = random.Random(7)
    jobs = [
        NewJob(
            id=SystemChance().job_id(),
            tenant=TENANT,
            queue="default",
            workflow=f"w{n % 3}",
            payload="{}",
            policy=POLICY,
            priority=dice.randrange(3),
            target=f"t{dice.randrange(12)}",
        )
        for n in range(size)
    ]
    store.submit(jobs)

    def work(mine: SqlStore, dice: random.Random) -> None:
        worker = mine.register_worker(
            NewWorker(SystemChance().nonce(), "w", "host", "boot", "ns", 1, 1, ("default",), "v1", 60.0)
        )
        while not crowd.stop.is_set():
            mine.ingest()
            shares = [Share(front.route, dice.randrange(1, 5)) for front in mine.open_routes()]
            claimed = mine.claim(worker.number, SystemChance().nonce(), shares)
            settle_all(mine, worker.number, [Report(job.ref, OUTCOMES[0], duration_ms=1) for job in claimed])
            if not claimed:
                crowd.stop.wait(IDLE)

    actors = [crowd.actor(work, seed) for seed in range(10)]
    deadline = time.monotonic() + 90
    while store.counts(TENANT)[JobState.COMPLETED] < len(jobs) and not crowd.stop.is_set():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    crowd.stop.set()
    for actor in actors:
        actor.join(60)

    assert crowd.errors == []
    claims = {job.id: store.history(TENANT, job.id)[1].at for job in jobs}
    for name in {job.target for job in jobs}:
        line = [job for job in jobs if job.target == name]
        by_line = sorted(range(len(line)), key=lambda n: (-line[n].priority, n))
        by_claim = sorted(range(len(line)), key=lambda n: claims[line[n].id])
        assert by_claim == by_line
    store.close()
