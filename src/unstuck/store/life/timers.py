"""Timers: delayed starts and retries that came due, stays in the queue that lasted too long, pauses that ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from unstuck.model.errors import SchemaMismatch, StoreBusy
from unstuck.store.database import T, Transaction
from unstuck.store.drivers import leaps
from unstuck.store.guard import isolation
from unstuck.store.guard.isolation import Act, Isolation
from unstuck.store.life import sweep
from unstuck.store.order import targets
from unstuck.store.port import Due, Enough, QuarantineDuty, never
from unstuck.store.rows import span
from unstuck.store.transactions import BY_JANITOR, Transactions

EXPIRE_ROUNDS = 50
SWEEP_ROUNDS = 10
#: Also before a time that no clock ever showed.
BEFORE_ALL = sweep.Timer(-(2**63), 0)


class Timers:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._isolation = Isolation(transactions.database)

    def due(self, after: int) -> Due:
        self._database.before_timers()
        row = self._database.read(lambda t: t.one("due", after=after))
        assert row is not None
        # Of what somebody damaged there need be no number, and it must not stop the others.
        times = [at for name in ("start_at", "expire_at", "pause_at") if isinstance(at := row[name], int)]
        if row["has_leapt"] or row["has_aside"]:
            times.append(row["now"])
        timer_in = max(0, min(times) - row["now"]) / 1_000_000 if times else None
        return Due(timer_in, has_news=bool(row["has_news"]), has_ready=bool(row["has_ready"]))

    def _may_have_timers(self) -> bool:
        """The question reads other tables too: where one of those is in trouble, timers are released all the same."""
        try:
            return self.due(0).has_timers
        except (StoreBusy, SchemaMismatch):
            return True

    def release_due(self, batch: int, enough: Enough) -> int:
        if not self._may_have_timers():
            return 0
        self._keep_appointments(batch, enough)
        # Two transactions: targets are locked before timers, by everybody.
        released = self._sweep("target", partial(targets.ended_pauses, batch=batch), targets.end_pauses, batch)
        started = self._ring("start", sweep.release_due, batch, rounds=1)
        if len(started) >= batch:
            started += self._ring_latest("start", sweep.release_due, batch)
        released += len(started)
        expired = self._ring(
            "expire",
            lambda t, some: sweep.expire_stays(t, self._transactions.tools, some),
            batch,
            rounds=EXPIRE_ROUNDS,
            enough=enough,
        )
        return released + sum(expired)

    def lift_body_marks(self, margin: float, batch: int) -> int:
        def lift(t: Transaction, jobs: Sequence[int]) -> tuple[int, bool]:
            return targets.lift_body_marks(t, margin, jobs)

        liftable = partial(targets.liftable_body_marks, margin=margin, batch=batch)
        return self._isolation.try_again("body_mark", lift, BY_JANITOR, batch) + self._sweep(
            "body_mark", liftable, lift, batch
        )

    def _keep_appointments(self, batch: int, enough: Enough) -> None:
        """The clock has leapt: what was to begin or to end at an instant of it does so by the new one."""
        writing = span(2 * self._database.store_call)
        if (unmoved := self._database.read(lambda t: t.one("clock_unmoved", writing=writing))) is None:
            return
        if stays_wrong := self._database.read(lambda t: t.one("wrong_pauses")) is not None:
            self._database.write(lambda t: t.run("move_appointed_pauses"))
        if is_wrong := self._database.read(lambda t: t.one("wrong_schedules")) is not None:
            self._database.write(lambda t: t.run("move_appointed_schedules"))
        after = 0
        while jobs := self._database.read(partial(leaps.wrong_appointments, after=after, batch=batch)):
            isolation.in_parts(jobs, self._move_appointments)
            after = jobs[-1]
            if enough():
                return
        if unmoved["is_settled"] and not after and not stays_wrong and not is_wrong:
            self._database.write(lambda t: t.run("appointments_moved", ahead=unmoved["ahead"]))

    def _move_appointments(self, jobs: Sequence[int], patience: float) -> None:
        self._database.write(lambda t: leaps.move_appointments(t, jobs), patience=patience)

    def _ring(
        self,
        kind: Literal["start", "expire"],
        act: Callable[[Transaction, Sequence[sweep.Timer]], tuple[list[T], bool]],
        batch: int,
        *,
        rounds: int,
        enough: Enough = never,
    ) -> list[T]:
        """Timers that came due, batch after batch up to a bound: neither those that another transaction holds nor
        those of stays that ended well hold up the others."""

        def look(t: Transaction) -> list[sweep.Timer]:
            rows = t.all("due_timers", kind=kind, after_due=after[0], after_job=after[1], batch=batch)
            return [sweep.Timer(row["due_at"], row["job"]) for row in rows]

        def look_aside(t: Transaction) -> list[sweep.Timer]:
            rows = t.all("aside_timers", kind=kind, batch=isolation.RETRIED)
            return [sweep.Timer(row["due_at"], row["job"]) for row in rows]

        sweeping = isolation.Sweep(self._database, kind)
        moved: list[T] = []
        after = BEFORE_ALL
        found, aside = self._database.read(lambda t: (look(t), look_aside(t)))
        while found:
            moved += sweeping.move(found, act, at_once=batch)
            rounds -= bool(moved)
            if len(found) < batch or rounds <= 0 or enough():
                break
            after = found[-1]
            found = self._database.read(look)
        return moved + sweeping.again(aside, act)

    def _ring_latest(
        self,
        kind: Literal["start", "expire"],
        act: Callable[[Transaction, Sequence[sweep.Timer]], tuple[list[T], bool]],
        batch: int,
    ) -> list[T]:
        """There is a backlog: thousands came due at one instant. The timers that came due last must not wait for all
        of it, so each call also takes a batch of them."""
        rows = self._database.read(lambda t: t.all("latest_due_timers", kind=kind, batch=batch))
        found = sorted(sweep.Timer(row["due_at"], row["job"]) for row in rows)
        return isolation.Sweep(self._database, kind).move(found, act, at_once=batch)

    def _sweep(self, duty: QuarantineDuty, look: Callable[..., list[int]], act: Act[int], batch: int) -> int:
        """Batch after batch, up to a bound, each behind the last: what another transaction holds is left for another
        time, and keeps nobody waiting."""
        moved, after = 0, 0
        for _ in range(SWEEP_ROUNDS):
            found = self._database.read(partial(look, after=after))
            moved += self._isolation.sweep(duty, found, act, BY_JANITOR) if found else 0
            if len(found) < batch:
                break
            after = found[-1]
        return moved
