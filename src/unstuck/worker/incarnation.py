"""One incarnation of a worker, from its registration to its leave: the loop that looks, plans and acts.

The main thread owns the executors and the state about them; it never waits for the database. Beside it: the
claimer, the settler, the flow calls, the requests and the janitor on one store, the beat on a store of its own, and
the watchdog, which ends the process when one of them stops (`_start_loops` is the list). They talk to the main thread
by its mailbox and a nudge, and it to them by their few methods; only answers to flow calls go straight to the
executor. Everything is bounded: slots bound the ledger, and the ledger bounds the reports that wait for a settle and
the flow calls under way.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from unstuck.executor.messages import Reply
from unstuck.model.errors import SchemaMismatch, StoreError
from unstuck.model.job import WorkerRecord
from unstuck.store.port import Settled
from unstuck.telemetry import emit
from unstuck.worker.act import ActionRunner
from unstuck.worker.actions import HANDED_BACK, Convict, Drain, Kill, Promote, Terminate
from unstuck.worker.describing import describe, states
from unstuck.worker.feeding import Feeding
from unstuck.worker.fleet_events import FleetEventHandler
from unstuck.worker.flow_calls import FlowCallRunner
from unstuck.worker.heartbeat import Heartbeat
from unstuck.worker.identity import identify
from unstuck.worker.loops import Loop, LoopWatchdog, end_process
from unstuck.worker.mailbox import LeaseLost, Mailbox, MailboxReader, Renewed, Revoked
from unstuck.worker.nudge import Nudge
from unstuck.worker.orders import Orders
from unstuck.worker.parts import ClaimerNeeds, Duties, End, WorkerParts
from unstuck.worker.plan import plan
from unstuck.worker.processes import FleetEvent, FlowCall, Imported, ImportFailed
from unstuck.worker.requests import Requests
from unstuck.worker.role_watch import RoleWatch
from unstuck.worker.roles import failing, is_hopeless
from unstuck.worker.selffence import Fence
from unstuck.worker.served import signed_only
from unstuck.worker.settle import Settler
from unstuck.worker.shutdown import Phase, Shutdown
from unstuck.worker.state import WorkerState
from unstuck.worker.view import FleetView

LOOK_EVERY = 0.05
#: While nothing is held and every executor is well; never longer than half of what is taken for an absence of ours.
CALM_LOOK_EVERY = 0.5
DESCRIBE_EVERY = 0.5
_REGISTER_EVERY = 1.0
#: While the store is away.
LAST_WORDS_EVERY = 0.1
#: After these the next look follows at once: a place is free, and a waiting job should not wait for a tick.
_FREEING = (Convict, Drain, Kill, Terminate, Promote)
_LOOKS = 4


class Incarnation:
    def __init__(self, parts: WorkerParts, shutdown: Shutdown) -> None:
        self.parts = parts
        self.shutdown = shutdown
        self.clock, self.times, self.fleet = parts.clock, parts.times, parts.fleet
        self.state = WorkerState(parts.times, parts.seats, parts.limits, Fence.after(self.clock.boot(), parts.times))
        self.nudge = Nudge(parts.fleet)
        self.mailbox = Mailbox(self.nudge)
        self._look_at = 0.0
        self._describe_at = 0.0
        self._described: tuple[str, Mapping[str, Any]] = ("active", {})
        self._shown: tuple[Any, ...] = ()
        self._loops: list[Loop] = []
        self._is_prepared = False

    # --- the whole life -----------------------------------------------------------------------------------------
    def run(self) -> End:
        self.parts.readiness.begin()
        try:
            heard = self._import()
            record = self._register(heard)
            if record is None:
                return End.LEFT
            self._start(record, heard)
            try:
                while not self._is_over():
                    self._main.turn()
                return End.FENCED if self.state.is_fenced else End.LEFT
            finally:
                self._leave(record)
        finally:
            self._close()

    def _import(self) -> list[FleetEvent]:
        """The app first: its version belongs into the worker's row. A failed import is shown there as well. While the
        zygote is about it, the database is looked at: its trouble is for the registration to tell."""
        self.fleet.start()
        with suppress(StoreError):
            self._prepare()
        heard: list[FleetEvent] = []
        while not self.shutdown.is_asked and not any(isinstance(e, Imported | ImportFailed) for e in heard):
            heard += self.fleet.hear(0.5)
            self.parts.readiness.tick("importing the app", self.clock.boot())
        return heard

    def _check_signing(self, heard: list[FleetEvent]) -> None:
        """Code that asks for signatures where there is no key could never run: said before anything is taken."""
        for event in heard:
            if isinstance(event, Imported):
                self.parts.keys.require(signed_only(event.workflows))

    def _prepare(self) -> None:
        if not self._is_prepared:
            self.parts.prepare()
            self._is_prepared = True

    def _register(self, heard: list[FleetEvent]) -> WorkerRecord | None:
        """Until it works: a database that is not there yet is no reason to die. None: asked to stop before."""
        parts = self.parts
        me = identify(parts.incarnation, parts.name, parts.queues, _version(heard), self.times.lease)
        while not self.shutdown.is_asked:
            sent_at = self.clock.boot()
            try:
                self._prepare()
                self._check_signing(heard)
                sent_at = self.clock.boot()
                record = parts.store.register_worker(me)
                self.state.fence = Fence.after(sent_at, self.times)
                return record
            except SchemaMismatch:
                raise
            except StoreError as error:
                emit("cannot_register", level=logging.WARNING, error=str(error))
                heard += self._hear_until(self.clock.boot() + _REGISTER_EVERY)
        return None

    def _hear_until(self, until: float) -> list[FleetEvent]:
        """A wait that a signal ends: its handler may take no lock, so there is no Event to wait for."""
        heard: list[FleetEvent] = []
        while not self.shutdown.is_asked and (left := until - self.clock.boot()) > 0:
            heard += self.fleet.hear(left)
        self.parts.readiness.tick("waiting for the database", self.clock.boot())
        return heard

    def _start(self, record: WorkerRecord, heard: list[FleetEvent]) -> None:
        duties = self._duties = self.parts.duties(record)
        self._record = record
        self._build(record, duties)
        self.fleet.lease(self.state.fence.kill_at)
        self._announce(record)
        now = self.clock.boot()
        for event in heard:
            self.fleet_events.hear(event, now)
        self._describe(now)
        self._start_loops(duties)

    def _build(self, record: WorkerRecord, duties: Duties) -> None:
        """The other threads' work, and what the main thread has to deal with it."""
        parts, state, mailbox = self.parts, self.state, self.mailbox
        number = record.number
        self.settler = Settler(parts.store, number, state.ledger, self.clock, settled=self._on_settled)
        self.claimer = parts.claimer(
            ClaimerNeeds(
                number,
                record.name,
                state.ledger,
                state.pace,
                before_first=lambda: duties.first_sweep(self._claim.stamp),
                landed=self.nudge,
                report=self.settler.report,
            )
        )
        self.requests = Requests(
            parts.store,
            number,
            self.times,
            self.clock,
            is_busy=lambda: state.ledger.held > 0,
            heard=mailbox.put,
            revoked=lambda ref: mailbox.put(Revoked(ref)),
            ordered=mailbox.put,
        )
        self.heartbeat = Heartbeat(
            parts.beat_store,
            number,
            state.ledger,
            self.times,
            self.clock,
            describe=lambda: self._described,
            renewed=lambda sent_at, beat: mailbox.put(Renewed(sent_at, beat)),
            fenced=lambda: mailbox.put(LeaseLost()),
        )
        self.feeding = Feeding(state, self.fleet)
        self.actions = ActionRunner(state, self.fleet, self.requests)
        self.flow_calls = FlowCallRunner(
            parts.store,
            state.ledger,
            self.clock,
            answered=self._answer,
            revoked=lambda ref: mailbox.put(Revoked(ref)),
            report=self.settler.report,
            sign=parts.sign,
        )
        self.fleet_events = FleetEventHandler(
            state, self.claimer, self.settler, self.flow_calls, parts.queues, parts.keys
        )
        self.orders = Orders(state, self.fleet, self.actions, self.shutdown, self.requests.answer)
        self.mail_reader = MailboxReader(mailbox, state, self.fleet, self.actions, self.orders)

    def _start_loops(self, duties: Duties) -> None:
        t = self.times
        call = t.store_call + t.slack
        self._main = Loop("main", self.tick, self.clock, silence=3.0 + call)
        self._beat = Loop("beat", self.heartbeat.tick, self.clock, silence=3 * t.beat + 2 * call)
        # Each duty has a share of a sweep, and stamps between its batches: each of them a few store calls at most.
        self._janitor = Loop(
            "janitor", lambda: duties.tick(self._janitor.stamp), self.clock, silence=3 * t.sweep + 8 * call
        )
        self._claim = Loop("claim", self.claimer.tick, self.clock, silence=3 * t.poll + 12 * call)
        self._others = [
            self._claim,
            Loop("settle", self.settler.tick, self.clock, silence=3.0 + 10 * call),
            Loop("flow_calls", self.flow_calls.tick, self.clock, silence=3.0 + 10 * call),
            Loop("requests", self.requests.tick, self.clock, silence=3 * t.cancel_poll + 10 * call),
            self._janitor,
        ]
        self._loops = [self._beat, *self._others]
        self.role_watch = RoleWatch(
            self._record,
            self.state,
            self.shutdown,
            self._loops,
            duties=duties.troubles,
            side_tasks=lambda: {**self.claimer.troubles, **self.parts.keys.troubles},
            ends=lambda: self.settler.troubles,
            tell=self.requests.tell,
        )
        watchdog = LoopWatchdog([self._main, *self._loops], self.clock, end=self._end)
        self._guard = Loop("watchdog", watchdog.tick, self.clock, silence=float("inf"))
        self.parts.when_refused(self._beat.wake)
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
        if self.state.is_fenced:
            return True
        if self.state.phase is Phase.WORKING:
            return False
        if self.state.ledger.is_empty and not self.state.unseated:
            return True
        bodies = any(post.load for post in self.state.roster.posts.values())
        # Only settles are left, and the store is away: they count for nothing once the lease is gone.
        now = self.clock.boot()
        is_late = self.state.phase is Phase.LEAVING or now >= self.state.fence.lease_ends_at
        is_vain = is_late or is_hopeless(self.state.troubles, self.times, now) or self._has_only_trouble()
        return is_vain and not bodies

    def _has_only_trouble(self) -> bool:
        """The time to drain is over, and all that is left are reports that the store cannot write although it
        answers. They would keep this worker for ever."""
        left = self.state.ledger.unsettled
        is_late = self.state.phase is Phase.HANDING_BACK and not self.state.ledger.held
        return is_late and 0 < left <= self.settler.set_aside

    def _end(self, reason: str) -> None:
        """By the watchdog, on its thread. The row says that we end ourselves, so that nobody's job is charged for it:
        best effort, no longer than a store call, and again while the store is away, for as long as our bodies may
        run. On a connection that what stands still cannot hold."""
        until = self.state.fence.kill_at
        try:
            while self._is_unheard(reason) and self.clock.boot() < until:
                self.clock.wait(threading.Event(), LAST_WORDS_EVERY)
        finally:
            end_process(reason)

    def _is_unheard(self, reason: str) -> bool:
        """The store is away. A call that does not even come back is not worth another one."""
        errors: list[StoreError] = []
        name = "unstuck-last-words"
        last_words = threading.Thread(target=self._fence, args=(reason, errors), name=name, daemon=True)
        last_words.start()
        last_words.join(self.times.store_call + self.times.slack)
        return bool(errors)

    def _fence(self, reason: str, errors: list[StoreError]) -> None:
        try:
            open_store = self.parts.last_store
            store = self.parts.beat_store if open_store is None else open_store()
            store.fence_worker(self._record.number, f"it ended itself: {reason}")
        except StoreError as error:
            errors.append(error)

    def _leave(self, record: WorkerRecord) -> None:
        """Bodies first, then what is left to write, the lease last."""
        if not self.state.is_fenced:
            self._retire_executors()
        self._close_fleet(self._main.stamp)
        self._flush_reports()
        self._wait_for_settles()
        for loop in (*self._others, self._guard, self._beat):
            loop.stop()
        self.claimer.close()  # nobody has told it yet if the lease was lost
        for part in (self.settler, self.flow_calls, self.requests):
            part.wake()
        limit = self.times.poll + 2 * self.times.store_call + self.times.slack
        joined = [loop.join(limit) for loop in (*self._others, self._beat)]
        # Also when the lease was lost: its bodies are gone for sure now, so what nobody took yet goes back uncharged.
        self._unregister(record)
        emit("worker_left", worker=record.name, fenced=self.state.is_fenced, clean=all(joined))

    def _close_fleet(self, stamp: Callable[[], None] = lambda: None) -> None:
        self.nudge.close()
        self.fleet.close(stamp)

    def _close(self) -> None:
        self._close_fleet()
        self.parts.store.close()
        self.parts.beat_store.close()

    def _retire_executors(self) -> None:
        """Idle executors run their stop hooks before they end; those that do not end are killed by close."""
        for post in self.state.roster.posts.values():
            if post.state == "active" and not post.killed:
                self.fleet.drain(post.number, HANDED_BACK)
        until = self.clock.boot() + self.times.kill_grace
        while self.state.roster.posts and self.clock.boot() < until:
            self._main.stamp()
            for event in self.fleet.hear(0.05):
                self.fleet_events.hear(event, self.clock.boot())

    def _wait_for_settles(self) -> None:
        until = self.clock.boot() + self.times.store_call + self.times.slack
        while (self.state.ledger.unsettled or self.requests.unanswered) and self.clock.boot() < until:
            self._main.stamp()
            self.clock.wait(threading.Event(), 0.01)

    def _unregister(self, record: WorkerRecord) -> None:
        """Whatever the reason: what is left behind is recovered when the lease ends."""
        try:
            self.parts.store.unregister_worker(record.number)
        except Exception as error:
            emit("cannot_unregister", level=logging.WARNING, error=str(error) or repr(error))

    # --- look, plan, act ----------------------------------------------------------------------------------------
    def tick(self) -> float:
        events = self.fleet.hear(max(0.0, self._look_at - self.clock.boot()))
        now = self.clock.boot()
        self._notice_shutdown(now)
        # Results first: they are said once, a message that came to nothing is said again.
        for event in events:
            self.fleet_events.hear(event, now)
        self.mail_reader.read(now)
        self.feeding.place(now)
        if events or not self._is_calm():
            self._look_at = min(self._look_at, now + LOOK_EVERY)
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._look(now)
            if self._is_calm():
                self._look_at = max(self._look_at, now + min(CALM_LOOK_EVERY, self.times.unresponsive / 2))
        self.feeding.publish(now)
        # Last: whoever is woken by it wants the interpreter.
        self._flush_reports()
        return 0.0

    def _look(self, now: float) -> None:
        """After a rest of ours the others get the time to show that they are alive, before anything is judged."""
        self.state.look(self.fleet.views(), now)
        was_away = self._view(now).was_away(now)
        for _ in range(1 if was_away else _LOOKS):
            actions = list(plan(self._view(now), now))
            self.state.looked_at = now
            for action in actions:
                self.actions.do(action, now)
            if not any(isinstance(action, _FREEING) for action in actions):
                break
        if was_away:
            self._look_at = now + 2 * self.times.pulse
        self.claimer.shun(self.state.unrunnable())
        self.role_watch.look(now)
        self.orders.look(now)
        self._show(now)

    def _is_calm(self) -> bool:
        """Nothing can need a look soon that no event tells of."""
        state = self.state
        is_working = state.phase is Phase.WORKING and not (state.unseated or state.ledger.held or state.troubles)
        posts = state.roster.posts.values()
        are_well = all(post.state == "active" and not (post.killed or post.is_barred) for post in posts)
        return is_working and bool(posts) and are_well and state.start_error is None

    def _view(self, now: float) -> FleetView:
        return self.state.view(now, is_impatient=self.shutdown.is_impatient)

    def _notice_shutdown(self, now: float) -> None:
        phase = self.shutdown.phase(now)
        if phase is self.state.phase:
            return
        self.state.phase = phase
        self.state.draining_since = self.state.draining_since or now
        emit("shutting_down", phase=phase.name.lower().replace("_", " "), running=self.state.ledger.held)
        self.claimer.close()
        self.parts.readiness.stopping()
        self._look_at = now
        self._describe(now)
        self._beat.wake()

    def _answer(self, call: FlowCall, answer: Reply) -> None:
        """On the thread of the flow calls: by way of the main thread it would cost the handler two hand-overs."""
        if not self.fleet.answer(call, answer):
            self.nudge()

    def _flush_reports(self) -> None:
        if self.state.reports:
            self.settler.report(self.state.reports)
            self.state.reports = []

    # --- what others see ----------------------------------------------------------------------------------------
    def _show(self, now: float) -> None:
        """A process that comes or goes is told with a beat of its own, so that people see it soon."""
        self.parts.readiness.show(self.state.is_ready(now))
        roles = failing(self.state.troubles, now)
        worst = f"; {roles[0].sentence(now)}" if roles else ""
        self.parts.readiness.tick(f"{self.state.ledger.held} jobs held{worst}", now)
        if now < self._describe_at:
            return
        self._describe_at = now + DESCRIBE_EVERY
        self._describe(now)
        state = self.state
        shown = (
            states(state.roster.posts.values()),
            state.import_error,
            state.start_error,
            state.is_ready(now),
            frozenset(role.name for role in roles),
        )
        if shown != self._shown:
            self._shown = shown
            self._beat.wake()

    def _describe(self, now: float) -> None:
        self._described = describe(self.state, self.fleet.pids(), now, is_impatient=self.shutdown.is_impatient)

    # --- other threads ------------------------------------------------------------------------------------------
    def _on_settled(self, answers: list[Settled]) -> None:
        if self.state.phase is not Phase.WORKING:
            self.nudge()
        # A short park must not wait for a sweep: nobody else knows of it yet.
        ends = [answer.wait_ends_in for answer in answers if answer.wait_ends_in is not None]
        if ends and self._duties.call("waits", min(ends)):
            self._janitor.wake()


def _version(heard: Iterable[FleetEvent]) -> str:
    return next((event.code_version for event in heard if isinstance(event, Imported)), "")
