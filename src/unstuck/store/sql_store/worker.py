"""The verbs of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from unstuck.model.budget import check_amounts
from unstuck.model.errors import InvalidInput
from unstuck.model.job import AttemptRef, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import RequestKind
from unstuck.model.news import Publication, check_place, check_publication
from unstuck.model.parts import check_part
from unstuck.model.payload import clean_text
from unstuck.model.waits import Child, Journal, Spent
from unstuck.store.flow import parts, spawn, usage
from unstuck.store.flow import steps as journals
from unstuck.store.guard import audit, isolation
from unstuck.store.life import claim as claims
from unstuck.store.life import control, news, output, worker_orders, workers
from unstuck.store.life.beat import BeatFacts
from unstuck.store.life.changes import moment
from unstuck.store.order import gates
from unstuck.store.port import (
    Asked,
    AttemptOutput,
    Beat,
    Claimed,
    Due,
    Ingested,
    NewChild,
    NewStep,
    NewWorker,
    OpenRoutes,
    Report,
    Route,
    Settled,
    Share,
    Verdict,
    WorkerOrder,
    never,
)
from unstuck.store.read import lookup
from unstuck.store.rows import asked_of, instant, packed
from unstuck.store.sql_store.verbs import SqlVerbs

#: Children that an ingest cancels by the way; it must not keep a claimer from its claims. A janitor has the others.
TENDED_SOON = 10


class SqlWorker(SqlVerbs):
    def now(self) -> datetime:
        return instant(self._database.read(moment))

    def register_worker(self, worker: NewWorker) -> WorkerRecord:
        self._database.remember(worker.name, worker.boot_id)
        # One row; a worker that fails here tries again for ever, and must leave SQLite's lock to others meanwhile.
        return self._database.write(
            partial(workers.register, worker=worker), stop_after=self._database.store_call / 3
        )

    def register_workflows(
        self,
        workflows: Sequence[WorkflowRecord],
        *,
        worker: int | None = None,
        queues: Sequence[str] = (),
        app: str | None = None,
        tenant: str | None = None,
    ) -> frozenset[str]:
        held = gates.register_workflows(self._database, workflows, worker, queues, app, tenant)
        if worker is not None and (version := gates.version_of(workflows)) is not None:
            self._versions[worker] = version
        return held

    def due(self, after: int = 0) -> Due:
        return self._timers.due(after)

    def ingest(self, after: int = 0, batch: int = 1000) -> Ingested:
        """The look first: an empty inbox must not cost SQLite its write lock."""
        if not self._database.read(lambda t: t.all("inbox_waits", after=after)):
            return Ingested(0, 0, after)
        found = self._inbox.ingest(after, batch)
        if found.entries:
            self._flow_sweep.tend_children(TENDED_SOON, never)  # the end of a parent leaves an entry
        return found

    def ingest_again(self, batch: int = 1000) -> int:
        aside = self._transactions.duties_aside()
        moved = self._inbox.try_again(aside, batch)
        return moved + (self._flow_sweep.tend_again(batch) if "children" in aside else 0)

    def routes(self, numbers: Sequence[int]) -> list[Route]:
        wanted = list(numbers)
        return [Route(**row) for row in self._database.read(lambda t: t.all("routes", numbers=wanted))]

    def open_routes(self, after: int = 0, limit: int = 1000) -> OpenRoutes:
        found, self._transactions.has_limits = self._database.read(lambda t: gates.look(t, after, limit))
        return found

    def open_routes_of(self, routes: Sequence[int]) -> OpenRoutes:
        found, has_limits = self._database.read(lambda t: gates.look_at(t, routes))
        self._transactions.has_limits = self._transactions.has_limits or has_limits
        return found

    def open_plain_routes(self) -> OpenRoutes:
        found, has_limits = self._database.read(gates.look_at_plain)
        self._transactions.has_limits = self._transactions.has_limits or has_limits
        return found

    def weights(self) -> dict[str, int]:
        return {row["name"]: row["weight"] for row in self._database.read(lambda t: t.all("weights"))}

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> Claimed:
        known = self._transactions.known_worker(worker)
        if known is None:
            return Claimed()
        version = self._versions.get(worker, known["code_version"])
        data = packed({"by": known["name"], "claim": claim, "code_version": version})
        claimed = self._claims.claim(worker, claim, shares, data)
        if claimed.left_out:
            self._beats.give_back(worker, claimed.left_out, claims.NOT_READ)
        return claimed

    def beat(
        self,
        worker: int,
        lease: float,
        held: Sequence[AttemptRef],
        *,
        pending_claims: Sequence[str] = (),
        settling: Sequence[AttemptRef] = (),
        started: Mapping[int, datetime] | None = None,
        state: str = "active",
        info: Mapping[str, Any] | None = None,
    ) -> Beat:
        renewed = self.renew(worker, lease, state=state, info=info)
        if not renewed.alive:
            return renewed
        return self.reconcile(
            worker, renewed, held, pending_claims=pending_claims, settling=settling, started=started
        )

    def renew(
        self, worker: int, lease: float, *, state: str = "active", info: Mapping[str, Any] | None = None
    ) -> Beat:
        return self._beats.renew(worker, lease, state, info)

    def reconcile(
        self,
        worker: int,
        renewed: Beat,
        held: Sequence[AttemptRef],
        *,
        pending_claims: Sequence[str] = (),
        settling: Sequence[AttemptRef] = (),
        started: Mapping[int, datetime] | None = None,
    ) -> Beat:
        return self._beats.reconcile(worker, renewed, BeatFacts(held, pending_claims, settling, started or {}))

    def asked(self, worker: int) -> list[Asked]:
        return [asked_of(row) for row in self._database.read(lambda t: t.all("asked", worker=worker))]

    def ask(self, ref: AttemptRef, kind: RequestKind, reason: str | None = None) -> Verdict:
        return self._database.write(lambda t: control.ask(t, ref, kind, reason), patience=isolation.IMPATIENCE)

    def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
        return self._reports.settle(worker, reports)

    def keep_output(self, outputs: Sequence[AttemptOutput]) -> list[Verdict]:
        return output.keep(self._transactions, outputs)

    def journal(self, ref: AttemptRef, after: int = 0) -> Journal | None:
        return self._database.read(lambda t: journals.journal(t, ref, after))

    def record_steps(self, steps: Sequence[NewStep]) -> list[Verdict]:
        journals.check(steps)
        return journals.record(self._database, steps) if steps else []

    def spend(self, ref: AttemptRef, serial: int, amounts: Mapping[str, float]) -> Spent | None:
        check_amounts(amounts)
        return self._database.write(
            lambda t: usage.spend(t, self._name_ids, ref, serial, amounts), patience=isolation.IMPATIENCE
        )

    def keep_part(self, ref: AttemptRef, serial: int, name: str, value: str) -> Verdict:
        name = check_part(name, value)
        return self._database.write(lambda t: parts.keep(t, ref, serial, name, value), patience=isolation.IMPATIENCE)

    def publish_from(self, ref: AttemptRef, place: int, given: Publication) -> Verdict:
        check_place(place)
        check_publication(given)
        return self._database.write(lambda t: news.publish_from(t, ref, place, given), patience=isolation.IMPATIENCE)

    def spawn(self, child: NewChild) -> Child | None:
        spawn.check(child)
        answer = self._transactions.with_numbers(
            [child.job],
            lambda t, numbers: spawn.spawn(t, self._name_ids, child, numbers, self._key_life),
            patience=isolation.IMPATIENCE,
        )
        self._database.hint()  # of a repeat too, as after a submit
        return answer

    def gather(self, ref: AttemptRef, children: Sequence[str], release_target: bool = False) -> str | None:
        wanted = list(children)
        if not lookup.can_exist(*wanted):
            raise InvalidInput("these are not the ids of children")
        return self._database.read(lambda t: spawn.gather(t, ref, wanted, release_target))

    def orders(self, worker: int) -> list[WorkerOrder]:
        return self._database.read(lambda t: worker_orders.waiting(t, worker))

    def answer_order(self, number: int, answer: str, *, refused: bool = False) -> None:
        self._database.write(
            lambda t: worker_orders.answer(t, number, answer, refused), patience=isolation.IMPATIENCE
        )

    def unregister_worker(self, worker: int) -> None:
        self._recovery.leave(worker)

    def fence_worker(self, worker: int, reason: str) -> bool:
        facts = {"worker": worker, "reason": clean_text(reason, 1000)}
        return self._database.write(lambda t: t.run("fence_worker", **facts)) == 1

    def notify(self, title: str, message: str, link: str, severity: str = "warning") -> bool:
        return self._database.write(lambda t: audit.notify(t, title, message, link, severity))
