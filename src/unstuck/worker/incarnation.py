"""One incarnation of a worker, from its registration to its leave: the loop that looks, plans and acts.

The main thread owns the executors and the books about them; it never waits for the database. Beside it: the
claimer, the settler, the requests and the janitor on one store, the beat on a store of its own. They talk to the main
thread by notes and a nudge, and it to them by their few methods. Everything is bounded: slots bound the ledger,
and the ledger bounds the reports that wait for a settle.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from unstuck.chance import Chance
from unstuck.clock import Clock
from unstuck.model.errors import ErrorType, SchemaMismatch, StoreError
from unstuck.model.job import AttemptRef, WorkerRecord
from unstuck.model.lifecycle import stronger
from unstuck.model.settlement import ErrorInfo, NotStarted, Stuck
from unstuck.model.times import Times
from unstuck.store.port import Asked, Beat, Report, Settled, Store
from unstuck.telemetry import emit
from unstuck.worker import plan as plans
from unstuck.worker import requests
from unstuck.worker.blame import reports_on_death
from unstuck.worker.claim import Claimer, Served
from unstuck.worker.heartbeat import Heartbeat
from unstuck.worker.identity import identify
from unstuck.worker.ledger import Holding, Ledger, Stage
from unstuck.worker.loops import Loop, Watchdog
from unstuck.worker.pace import Pace
from unstuck.worker.placing import Seats, place, room, suspects_to_seat
from unstuck.worker.plan import Limits, View, plan
from unstuck.worker.processes import (
    ExecutorDied,
    ExecutorReady,
    Finished,
    FleetEvent,
    FleetPort,
    Imported,
    ImportFailed,
    Recalled,
    Said,
    Started,
    ZygoteDied,
)
from unstuck.worker.roster import Post, Roster
from unstuck.worker.selffence import Fence
from unstuck.worker.settle import Settler
from unstuck.worker.shares import Room
from unstuck.worker.shutdown import Phase, Shutdown

LOOK_EVERY = 0.05
DESCRIBE_EVERY = 0.5
_REGISTER_EVERY = 1.0
#: After a zygote's death suspects run one at a time for so long: whoever did it has shown itself by then, as a rule.
WARY_FOR = 120.0
_SPAWN_REST = 0.1
_LONGEST_SPAWN_REST = 10.0


class Chores(Protocol):
    """What passing time does to jobs: the janitor, as a worker sees it."""

    def tick(self) -> float: ...
    def first_sweep(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What an incarnation is made of. `beat_store` has a connection of its own; `prepare` makes the tables of a store
    that has none."""

    incarnation: str
    store: Store
    beat_store: Store
    fleet: FleetPort
    chores: Callable[[WorkerRecord], Chores]
    clock: Clock
    chance: Chance
    times: Times
    seats: Seats
    limits: Limits
    queues: tuple[str, ...] = ()
    name: str | None = None
    prepare: Callable[[], None] = lambda: None


class End(Enum):
    """Why an incarnation is over."""

    LEFT = auto()
    FENCED = auto()


@dataclass(frozen=True, slots=True)
class Renewed:
    sent_at: float
    beat: Beat


@dataclass(frozen=True, slots=True)
class Revoked:
    ref: AttemptRef


class LeaseLost:
    """The database says that this incarnation is no more."""


Note = Asked | Renewed | Revoked | LeaseLost


class Incarnation:
    def __init__(self, parts: Parts, shutdown: Shutdown) -> None:
        self.parts = parts
        self.shutdown = shutdown
        self.clock, self.times, self.fleet = parts.clock, parts.times, parts.fleet
        self.ledger = Ledger()
        self.roster = Roster()
        self.pace = Pace()
        self.standing: list[Holding] = []
        self._notes: SimpleQueue[Note] = SimpleQueue()
        self._reports: list[Report] = []
        self._fence = Fence.after(self.clock.boot(), self.times)
        self._is_fenced = False
        self._is_congested = False
        self._imported: Imported | None = None
        self._import_error: str | None = None
        self._failed_spawns = 0
        self._start_error: str | None = None
        self._spawn_from = 0.0
        self._wary_until = 0.0
        self._look_at = 0.0
        self._describe_at = 0.0
        self._described: tuple[str, Mapping[str, Any]] = ("active", {})
        self._phase = Phase.WORKING
        self._loops: list[Loop] = []
        self._nudging = threading.Lock()
        self._is_closed = False

    # --- the whole life -----------------------------------------------------------------------------------------
    def run(self) -> End:
        try:
            heard = self._import()
            record = self._register(heard)
            if record is None:
                return End.LEFT
            self._start(record, heard)
            try:
                while not self._is_over():
                    self._main.turn()
                return End.FENCED if self._is_fenced else End.LEFT
            finally:
                self._leave(record)
        finally:
            self._close()

    def _import(self) -> list[FleetEvent]:
        """The app first: its version belongs into the worker's row. A failed import is shown there as well."""
        self.fleet.start()
        heard: list[FleetEvent] = []
        while not self.shutdown.is_asked and not any(isinstance(e, Imported | ImportFailed) for e in heard):
            heard += self.fleet.hear(0.5)
        return heard

    def _register(self, heard: list[FleetEvent]) -> WorkerRecord | None:
        """Until it works: a database that is not there yet is no reason to die. None: asked to stop before."""
        parts = self.parts
        me = identify(parts.incarnation, parts.name, parts.queues, _version(heard), self.times.lease)
        while not self.shutdown.is_asked:
            sent_at = self.clock.boot()
            try:
                parts.prepare()
                sent_at = self.clock.boot()
                record = parts.store.register_worker(me)
                self._fence = Fence.after(sent_at, self.times)
                return record
            except SchemaMismatch:
                raise
            except StoreError as error:
                emit("cannot_register", level=logging.WARNING, error=str(error))
                heard += self._hear_until(sent_at + _REGISTER_EVERY)
        return None

    def _hear_until(self, until: float) -> list[FleetEvent]:
        """A wait that a signal ends: its handler may take no lock, so there is no Event to wait for."""
        heard: list[FleetEvent] = []
        while not self.shutdown.is_asked and (left := until - self.clock.boot()) > 0:
            heard += self.fleet.hear(left)
        return heard

    def _start(self, record: WorkerRecord, heard: list[FleetEvent]) -> None:
        parts, number = self.parts, record.number
        chores = parts.chores(record)
        self.claimer = Claimer(
            parts.store,
            number,
            self.ledger,
            self.pace,
            self.times,
            self.clock,
            parts.chance,
            before_first=chores.first_sweep,
            landed=self.nudge,
        )
        self.settler = Settler(parts.store, number, self.ledger, self.clock, settled=self._on_settled)
        self.requests = requests.Requests(
            parts.store,
            number,
            self.times,
            self.clock,
            is_busy=lambda: self.ledger.held > 0,
            heard=self._note,
            revoked=lambda ref: self._note(Revoked(ref)),
        )
        self.heartbeat = Heartbeat(
            parts.beat_store,
            number,
            self.ledger,
            self.times,
            self.clock,
            describe=lambda: self._described,
            renewed=lambda sent_at, beat: self._note(Renewed(sent_at, beat)),
            fenced=lambda: self._note(LeaseLost()),
        )
        self.fleet.lease(self._fence.kill_at)
        self._announce(record)
        for event in heard:
            self._hear(event, self.clock.boot())
        self._describe()
        self._start_loops(chores)

    def _start_loops(self, chores: Chores) -> None:
        t = self.times
        call = t.store_call + t.slack
        self._main = Loop("main", self.tick, self.clock, silence=3.0 + call)
        self._beat = Loop("beat", self.heartbeat.tick, self.clock, silence=3 * t.beat + 2 * call)
        self._others = [
            Loop("claim", self.claimer.tick, self.clock, silence=3 * t.poll + 8 * call),
            Loop("settle", self.settler.tick, self.clock, silence=3.0 + 10 * call),
            Loop("requests", self.requests.tick, self.clock, silence=3 * t.cancel_poll + 10 * call),
            Loop("janitor", chores.tick, self.clock, silence=3 * t.sweep + 8 * call),
        ]
        self._loops = [self._beat, *self._others]
        watchdog = Watchdog([self._main, *self._loops], self.clock)
        self._guard = Loop("watchdog", watchdog.tick, self.clock, silence=float("inf"))
        for loop in (*self._loops, self._guard):
            loop.start()

    def _announce(self, record: WorkerRecord) -> None:
        seats = self.parts.seats
        bounds = "; ".join(f"{what}: {seconds:g} s" for what, seconds in self.times.bounds().items())
        emit(
            "worker_started",
            worker=record.name,
            incarnation=record.incarnation,
            queues=",".join(self.parts.queues) or "all of its workflows",
            slots=seats.slots,
            processes=seats.processes,
            bounds=bounds,
        )

    def _is_over(self) -> bool:
        if self._is_fenced:
            return True
        if self._phase is Phase.WORKING:
            return False
        if self.ledger.is_empty and not self.standing:
            return True
        bodies = any(post.load for post in self.roster.posts.values())
        # Only settles are left, and the store is away: they count for nothing once the lease is gone.
        is_hopeless = self._phase is Phase.LEAVING or self.clock.boot() >= self._fence.lease_ends_at
        return is_hopeless and not bodies

    def _leave(self, record: WorkerRecord) -> None:
        """Bodies first, then what is left to write, the lease last."""
        if not self._is_fenced:
            self._retire_executors()
        self._close_fleet()
        self._flush_reports()
        self._wait_for_settles()
        for loop in (*self._others, self._guard, self._beat):
            loop.stop()
        self.ledger.has_room.set()
        limit = self.times.poll + 2 * self.times.store_call + self.times.slack
        joined = [loop.join(limit) for loop in (*self._others, self._beat)]
        # Also when the lease was lost: its bodies are gone for sure now, so what nobody took yet goes back uncharged.
        self._unregister(record)
        emit("worker_left", worker=record.name, fenced=self._is_fenced, clean=all(joined))

    def _close_fleet(self) -> None:
        with self._nudging:
            self._is_closed = True
        self.fleet.close()

    def _close(self) -> None:
        self._close_fleet()
        self.parts.store.close()
        self.parts.beat_store.close()

    def _retire_executors(self) -> None:
        """Idle executors run their stop hooks before they end; who does not come to an end is killed by close."""
        for post in self.roster.posts.values():
            if post.state == "active" and not post.killed:
                self.fleet.drain(post.number, plans.HANDED_BACK)
        until = self.clock.boot() + self.times.kill_grace
        while self.roster.posts and self.clock.boot() < until:
            self._main.stamp()
            for event in self.fleet.hear(0.05):
                self._hear(event, self.clock.boot())

    def _wait_for_settles(self) -> None:
        until = self.clock.boot() + self.times.store_call + self.times.slack
        while self.ledger.unsettled and self.clock.boot() < until:
            self._main.stamp()
            self.clock.wait(threading.Event(), 0.01)

    def _unregister(self, record: WorkerRecord) -> None:
        try:
            self.parts.store.unregister_worker(record.number)
        except StoreError as error:
            emit("cannot_unregister", level=logging.WARNING, error=str(error))

    # --- look, plan, act ----------------------------------------------------------------------------------------
    def tick(self) -> float:
        events = self.fleet.hear(max(0.0, self._look_at - self.clock.boot()))
        now = self.clock.boot()
        self._notice_shutdown(now)
        self._read_notes(now)
        for event in events:
            self._hear(event, now)
        self._place(now)
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._look(now)
        self._flush_reports()
        self._publish()
        return 0.0

    def _look(self, now: float) -> None:
        self.roster.look(self.fleet.views(), now)
        for action in list(plan(self._view(now), now)):
            self._act(action, now)
        if now >= self._describe_at:
            self._describe_at = now + DESCRIBE_EVERY
            self._describe()

    def _view(self, now: float) -> View:
        return View(
            posts=tuple(self.roster.posts.values()),
            standing=tuple(self.standing),
            times=self.times,
            seats=self.parts.seats,
            limits=self.parts.limits,
            fence=self._fence,
            phase=self._phase,
            is_impatient=self.shutdown.is_impatient,
            is_imported=self._imported is not None,
            spawn_from=self._spawn_from,
            is_wary=now < self._wary_until,
        )

    def _act(self, action: plans.Action, now: float) -> None:
        match action:
            case plans.Kill(executor, reason):
                self._kill(executor, reason)
            case plans.Drain(executor, reason):
                self._drain(executor, reason)
            case plans.Convict(ref):
                self._convict(ref, now)
            case plans.Tell(ref, reason):
                if holding := self.ledger.get(ref):
                    self._tell(holding, reason, now)
            case plans.Ask(ref, kind, reason):
                if holding := self.ledger.get(ref):
                    holding.asking = kind
                    self.requests.ask(requests.Ask(ref, kind, reason))
            case plans.Recall(executor, refs):
                self._recall(executor, refs)
            case plans.GiveBack(ref, reason):
                self._give_back(ref, reason)
            case plans.Spawn(alone, slots):
                self.fleet.spawn(self.roster.open(alone, now, slots).number, alone=alone, slots=slots)

    def _kill(self, executor: int, reason: str) -> None:
        post = self.roster.posts.get(executor)
        if post is not None and not post.killed:
            post.killed = reason
            emit("executor_killed", executor=executor, pid=post.pid, reason=reason)
            self.fleet.kill(executor, reason)

    def _drain(self, executor: int, reason: str) -> None:
        if post := self.roster.posts.get(executor):
            post.state = "draining"
            emit("executor_draining", executor=executor, pid=post.pid, reason=reason)
            self.fleet.drain(executor, reason)

    def _convict(self, ref: AttemptRef, now: float) -> None:
        holding = self.ledger.get(ref)
        if holding is None:
            return
        grace = holding.job.policy.grace
        message = f"Execution did not respond to cancellation within {grace:g} seconds. Worker process recycled."
        self.ledger.convict(holding)
        emit("stuck", level=logging.WARNING, job=holding.job.id, workflow=holding.job.workflow)
        outcome = Stuck(ErrorInfo(ErrorType.EXECUTION_STUCK, message))
        self._report(Report(ref, outcome, duration_ms=_since(holding.started_at, now)))

    def _tell(self, holding: Holding, reason: str, now: float) -> None:
        holding.told_at = holding.told_at if holding.told_at is not None else now
        self.fleet.cancel(holding.executor or 0, holding.ref, holding.asked, reason)

    def _recall(self, executor: int, refs: Iterable[AttemptRef]) -> None:
        asked = [h for ref in refs if (h := self.ledger.get(ref))]
        for holding in asked:
            holding.recalled = True
        if asked:
            self._is_congested = True
            self.fleet.recall(executor, [h.ref for h in asked])

    def _give_back(self, ref: AttemptRef, reason: str) -> None:
        self.standing = [h for h in self.standing if h.ref != ref]
        if self.ledger.end(ref):
            self._report(Report(ref, NotStarted(reason)))

    # --- feeding ------------------------------------------------------------------------------------------------
    def _place(self, now: float) -> None:
        self.standing += self.ledger.take_fresh()
        if not self.standing or self._phase is not Phase.WORKING or now >= self._fence.cancel_at:
            return
        most_suspects = suspects_to_seat(self.roster.posts.values(), is_wary=now < self._wary_until)
        seats, self.standing = place(self.standing, self._feedable(), most_suspects)
        for number, holdings in seats.items():
            self.roster.seat(self.roster.posts[number], holdings, now)
            try:
                self.fleet.feed(number, [holding.job for holding in holdings])
            except ValueError as error:
                self._refused(holdings, str(error), now)

    def _refused(self, holdings: Iterable[Holding], why: str, now: float) -> None:
        for holding in holdings:
            self.roster.unseat(holding, now)
            self._give_back(holding.ref, why)

    def _feedable(self) -> list[Post]:
        return [post for post in self.roster.posts.values() if post.is_feedable(self.times.unresponsive)]

    def _publish(self) -> None:
        is_open = self._phase is Phase.WORKING and self.ledger.unsettled <= 4 * self.parts.seats.ahead
        self.ledger.publish(
            room(
                self.roster.posts.values(),
                self.standing,
                self.parts.seats,
                may_fetch_ahead=not self._is_congested,
                unresponsive=self.times.unresponsive,
            )
            if is_open
            else Room(0)
        )

    def _flush_reports(self) -> None:
        if self._reports:
            self.settler.report(self._reports)
            self._reports = []

    def _report(self, report: Report) -> None:
        self._reports.append(report)

    # --- what executors say -------------------------------------------------------------------------------------
    def _hear(self, event: FleetEvent, now: float) -> None:
        """One event that cannot be digested must not take the others of its batch with it."""
        try:
            self._on(event, now)
        except Exception:
            logging.getLogger("unstuck").exception("could not digest %s", type(event).__name__)

    def _on(self, event: FleetEvent, now: float) -> None:
        match event:
            case Finished():
                self._on_finished(event, now)
            case Started():
                self._on_started(event, now)
            case Recalled():
                self._on_recalled(event, now)
            case Said():
                self.settler.say(event.ref, event.kind, event.text)
            case ExecutorReady():
                self._on_ready(event)
            case ExecutorDied():
                self._on_died(event, now)
            case Imported():
                self._on_imported(event)
            case ZygoteDied():
                self._wary_until = now + WARY_FOR
                emit("zygote_died", level=logging.ERROR, status=event.status, again_in=event.again_in)
            case ImportFailed():
                self._import_error = event.error
                self._describe_at = 0.0
                emit("import_failed", level=logging.ERROR, error=event.error, again_in=event.again_in)

    def _on_imported(self, event: Imported) -> None:
        self._imported, self._import_error = event, None
        self._describe_at = 0.0
        emit("imported", workflows=len(event.workflows), mode=event.mode, reason=event.reason)
        self.claimer.serve(Served.of(event.workflows, self.parts.queues))

    def _on_ready(self, event: ExecutorReady) -> None:
        self._failed_spawns, self._start_error = 0, None
        if (post := self.roster.posts.get(event.executor)) and post.state == "starting":
            post.state, post.pid = "active", event.pid

    def _on_started(self, event: Started, now: float) -> None:
        holding = self.ledger.get(event.ref)
        if holding is not None and holding.stage is Stage.FED:
            holding.begin(event.at, now)

    def _on_finished(self, event: Finished, now: float) -> None:
        holding = self.ledger.get(event.ref)
        if holding is None:
            return
        self.roster.unseat(holding, now)
        self._is_congested = False
        if holding.stage in (Stage.STUCK, Stage.REVOKED):
            self._body_ended(holding)
            return
        self.ledger.end(event.ref)
        self.pace.note(holding.job.workflow, event.duration_ms)
        self._report(
            Report(event.ref, event.outcome, event.duration_ms, event.output, has_target=holding.job.has_target)
        )

    def _on_recalled(self, event: Recalled, now: float) -> None:
        for ref in event.refs:
            holding = self.ledger.get(ref)
            if holding is None:
                continue
            self.roster.unseat(holding, now)
            if holding.stage is Stage.REVOKED:
                self._body_ended(holding)
            elif self.ledger.end(ref):
                self._report(Report(ref, NotStarted("it had not started in time")))

    def _body_ended(self, holding: Holding) -> None:
        """Of an attempt that is ours no more: a hold that was written because its body lived may go."""
        self.ledger.drop(holding.ref)
        self.settler.lift(holding.ref.job)

    def _on_died(self, event: ExecutorDied, now: float) -> None:
        post = self.roster.close(event.executor)
        if post is None:
            return
        self._describe_at = 0.0
        emit("executor_died", executor=event.executor, pid=event.pid, status=event.status, expected=event.expected)
        self._back_off_spawns(post, event, now)
        ours = [h for h in post.holdings.values() if h.stage < Stage.STUCK]
        for report in reports_on_death(event, post, ours):
            if self.ledger.end(report.ref):
                self._report(report)
        for holding in post.holdings.values():
            if holding.stage in (Stage.STUCK, Stage.REVOKED):
                self._body_ended(holding)
            self.ledger.drop(holding.ref)

    def _back_off_spawns(self, post: Post, event: ExecutorDied, now: float) -> None:
        """An executor that never became ready will not next time either: later each time."""
        if post.state == "starting" and not post.killed and not event.expected:
            self._failed_spawns += 1
            self._start_error = event.status
            rest = min(_LONGEST_SPAWN_REST, _SPAWN_REST * 2.0 ** min(self._failed_spawns, 10))
            self._spawn_from = now + rest
            emit("executor_failed_to_start", level=logging.ERROR, status=event.status, again_in=rest)

    def nudge(self) -> None:
        """End the main thread's wait. Also from a signal handler, so it waits for no lock: who holds it nudges."""
        if self._nudging.acquire(blocking=False):
            try:
                if not self._is_closed:
                    self.fleet.nudge()
            finally:
                self._nudging.release()

    # --- what other threads say ---------------------------------------------------------------------------------
    def _note(self, note: Note) -> None:
        self._notes.put(note)
        self.nudge()

    def _on_settled(self, answers: list[Settled]) -> None:
        if self._phase is not Phase.WORKING:
            self.nudge()

    def _read_notes(self, now: float) -> None:
        while True:
            try:
                note = self._notes.get_nowait()
            except Empty:
                return
            match note:
                case Asked(ref, kind, reason):
                    self._on_asked(Asked(ref, kind, reason), now)
                case Renewed(sent_at, beat):
                    self._on_renewed(sent_at, beat, now)
                case Revoked(ref):
                    self._on_revoked(ref, now)
                case LeaseLost():
                    self._is_fenced = True
                    emit("lease_lost", level=logging.ERROR, incarnation=self.parts.incarnation)

    def _on_renewed(self, sent_at: float, beat: Beat, now: float) -> None:
        self._fence = Fence.after(sent_at, self.times)
        self.fleet.lease(self._fence.kill_at)
        for asked in beat.asked:
            self._on_asked(asked, now)
        for ref in beat.gone:
            self._on_revoked(ref, now)

    def _on_asked(self, asked: Asked, now: float) -> None:
        """Told once, and again if a stronger request comes; the grace counts from the first."""
        holding = self.ledger.get(asked.ref)
        if holding is None:
            return
        holding.asking = None
        match holding.stage:
            case Stage.CLAIMED:
                self._give_back(asked.ref, f"{asked.kind} before it started")
            case Stage.FED if not holding.recalled:
                holding.recalled = True
                self.fleet.recall(holding.executor or 0, [asked.ref])
            case Stage.RUNNING:
                kind = stronger(holding.asked, asked.kind)
                if kind is not holding.asked or holding.told_at is None:
                    holding.asked = kind
                    self._tell(holding, asked.reason or f"{asked.kind} requested", now)

    def _on_revoked(self, ref: AttemptRef, now: float) -> None:
        """Somebody else may own it already: stop the body, write nothing more about it."""
        holding = self.ledger.get(ref)
        if holding is None or holding.stage >= Stage.STUCK:
            return
        emit("revoked", level=logging.WARNING, job=holding.job.id, token=ref.token)
        if holding.stage is Stage.CLAIMED:
            self.standing = [h for h in self.standing if h.ref != ref]
            self.ledger.drop(ref)
            return
        if holding.stage is Stage.FED:
            self.fleet.recall(holding.executor or 0, [ref])
        holding.stage, holding.told_at, holding.asked = Stage.REVOKED, now, None
        self.fleet.cancel(holding.executor or 0, ref, None, "another worker may own this job now")

    def _notice_shutdown(self, now: float) -> None:
        phase = self.shutdown.phase(now)
        if phase is self._phase:
            return
        self._phase = phase
        emit("shutting_down", phase=phase.name.lower().replace("_", " "), running=self.ledger.held)
        self.claimer.close()
        self._look_at = now
        self._describe()
        self._beat.wake()

    # --- what others see ----------------------------------------------------------------------------------------
    def _describe(self) -> None:
        state = "active" if self._phase is Phase.WORKING else "draining"
        imported = self._imported
        info: dict[str, Any] = {
            "pids": self.fleet.pids(),
            "slots": self.parts.seats.slots,
            "processes": self.parts.seats.processes,
            "executors": [_describe_post(post) for post in self.roster.posts.values()],
        }
        if imported is not None:
            info |= {
                "code_version": imported.code_version,
                "mode": imported.mode,
                "mode_reason": imported.reason,
                "workflows": [w.name for w in imported.workflows],
            }
        if self._import_error is not None:
            info["import_error"] = self._import_error
        if self._start_error is not None:
            info["start_error"] = self._start_error
        self._described = (state, info)


def _describe_post(post: Post) -> dict[str, Any]:
    return {
        "executor": post.number,
        "pid": post.pid,
        "state": post.state,
        "alone": post.alone,
        "running": len(post.bodies),
        "jobs_done": post.jobs_done,
        "memory": post.memory,
    }


def _version(heard: Iterable[FleetEvent]) -> str:
    return next((event.code_version for event in heard if isinstance(event, Imported)), "")


def _since(started_at: float | None, now: float) -> int | None:
    return None if started_at is None else round((now - started_at) * 1000)
