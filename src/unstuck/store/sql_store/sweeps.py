"""The verbs of the janitor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from unstuck.model.payload import clean_text
from unstuck.store.drivers import sessions
from unstuck.store.flow import waking
from unstuck.store.guard import breaker, isolation
from unstuck.store.life import news, orphans, sweep
from unstuck.store.order import gates, targets
from unstuck.store.port import (
    FIRST_ENDED,
    Ended,
    EndedPauses,
    Enough,
    NameKind,
    Recovered,
    ServerSession,
    WaitingRoutes,
    never,
)
from unstuck.store.read import feed
from unstuck.store.rows import microseconds, span
from unstuck.store.sql_store.verbs import SqlVerbs
from unstuck.telemetry import emit


class SqlSweeps(SqlVerbs):
    def recover_lost(self, lost_grace: float, batch: int = 500, *, enough: Enough = never) -> list[Recovered]:
        return self._recovery.recover_lost(lost_grace, batch, enough)

    def convict_overdue(self, kill_grace: float, lease: float, batch: int = 500) -> list[Recovered]:
        return self._recovery.convict_overdue(kill_grace, lease, batch)

    def expire_worker(self, worker: int, seen_lease_until: datetime, reason: str) -> bool:
        facts = {"worker": worker, "seen": microseconds(seen_lease_until), "reason": clean_text(reason, 1000)}
        return self._database.write(lambda t: t.run("expire_worker", **facts), patience=isolation.PATIENCE) == 1

    def release_due(self, batch: int = 1000, *, enough: Enough = never) -> int:
        return self._timers.release_due(batch, enough)

    def idle_duties(self) -> frozenset[str]:
        row = self._database.read(lambda t: t.one("chores"))
        assert row is not None
        chores = dict(row)
        return (
            frozenset()
            if chores.pop("aside")
            else frozenset(duty for duty, is_there in chores.items() if not is_there)
        )

    def unread_sessions(self, unread_for: float) -> list[ServerSession]:
        return sessions.unread(self._database, unread_for)

    def end_unread_session(self, session: ServerSession) -> bool:
        return sessions.end(self._database, session)

    def lift_body_marks(self, margin: float, batch: int = 500) -> int:
        return self._timers.lift_body_marks(margin, batch)

    def lift_body_mark(self, worker: int, job: int) -> bool:
        return self._transactions.waking(lambda t: targets.lift_body_mark(t, worker, job), isolation.IMPATIENCE) == 1

    def ended_before(self, retention: float, after: Ended = FIRST_ENDED, limit: int = 1000) -> list[Ended]:
        return self._database.read(lambda t: sweep.ended_before(t, retention, after, limit))

    def count_ended(self, seconds: float, most: int) -> int:
        return self._database.read(lambda t: sweep.count_ended(t, seconds, most))

    def forget_jobs(self, jobs: Sequence[int], retention: float) -> int:
        wanted = list(jobs)
        return self._database.write(lambda t: sweep.forget_jobs(t, wanted, retention))

    def forget_ended(self, retention: float, batch: int = 1000) -> int:
        return self._database.write(lambda t: sweep.forget_ended(t, retention, batch))

    def forget_keys(self, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: t.run("forget_keys", batch=batch, past=past))

    def forget_starts(self, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: t.run("forget_starts", batch=batch, past=past))

    def waits(self, after: int = 0, limit: int = 1000) -> WaitingRoutes:
        return self._database.read(lambda t: gates.waits(t, after, limit))

    def keep_code_limits(self) -> int:
        return gates.keep_code_limits(self._database)[0]

    def note_known(self) -> int:
        return self._database.write(orphans.note_known)

    def fail_orphans(self, route: int, orphan_after: float, batch: int = 500) -> int:
        return orphans.fail(self._transactions, route, orphan_after, batch)

    def forget_workers(self, retention: float, batch: int = 100, past: int = 0) -> int:
        return self._database.write(lambda t: sweep.forget_workers(t, retention, batch, past))

    def tend_guard(self, batch: int = 500, *, enough: Enough = never) -> int:
        return self._blacklist_duty.tend(batch, enough)

    def forget_stucks(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: breaker.forget_stucks(t, retention, batch, past))

    def forget_audit(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(
            lambda t: t.run("forget_audit", retention=span(retention), batch=batch, past=past)
        )

    def expire_waits(self, batch: int = 500, *, enough: Enough = never) -> int:
        return self._flow_sweep.expire_waits(batch, enough)

    def next_wait(self) -> float | None:
        return self._database.read(waking.next_end)

    def tend_children(self, batch: int = 100, *, enough: Enough = never) -> int:
        return self._flow_sweep.tend_children(batch, enough)

    def forget_event_ids(self, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: t.run("forget_event_ids", batch=batch, past=past))

    def forget_unclaimed_events(self, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: t.run("forget_unclaimed_events", batch=batch, past=past))

    def forget_orders(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(
            lambda t: t.run("forget_orders", retention=span(retention), batch=batch, past=past)
        )

    def forget_names(self, kind: NameKind, before: datetime, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: sweep.forget_names(t, kind, microseconds(before), batch, past))

    def forget_workflows(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(
            lambda t: t.run("forget_workflows", retention=span(retention), batch=batch, past=past)
        )

    def forget_breakers(self, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: t.run("forget_breakers", batch=batch, past=past))

    def end_pauses(self, batch: int = 100, past: int = 0) -> EndedPauses:
        """The look first: what is over is rare, and a look costs SQLite no write lock. Nothing is set aside here, so
        each of the batch has its try, however many fail."""
        over = self._database.read(lambda t: t.all("ended_pauses", batch=batch, past=past))
        ended = 0

        def act(some: Sequence[tuple[str, str, str]], patience: float) -> None:
            nonlocal ended
            ended += self._database.write(lambda t: gates.end_pauses(t, some), patience=patience)

        for pause, error in isolation.in_parts(
            [(row["kind"], row["name"], row["tenant"]) for row in over], act, most=batch
        ).items():
            emit("store.not_ended", level=logging.WARNING, pause=pause, problem=isolation.problem_of(error))
        return EndedPauses(ended, len(over) - ended)

    def forget_news(self, kept: float, batch: int = 1000, past: int = 0) -> int:
        return news.forget(self._database, kept, batch, past)

    def forget_published(self, batch: int = 1000, past: int = 0) -> int:
        return news.forget_surplus(self._database, batch, past)

    def forget_feed(self, kept: float, batch: int = 5000, past: int = 0) -> int:
        return feed.forget(self._database, kept, batch, past)
