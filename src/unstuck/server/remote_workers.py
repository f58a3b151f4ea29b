"""Workers at a distance: the worker's port over HTTP, under `/api/v1/worker`.

What such a worker may do is what its key says: its role is `worker`, and tenant, queues and workflows are all that it
gets. Nothing that it says of itself is believed. Its incarnation begins with the id of the key by which it asks, and
its number must be that incarnation's; each attempt that it names must be one that was claimed for that number, which
the claim's id tells (`model/offers.py`); the store's fences do the rest. What is refused here changed nothing, and is
told to the audit and the log (`refusals.py`) with the key and the address.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from socket import gethostname
from typing import Any, TypeVar

from unstuck.clock import Clock
from unstuck.model.errors import InvalidInput, NotPermitted
from unstuck.model.job import ClaimedJob
from unstuck.model.offers import key_of, left_out, offered
from unstuck.model.payload import check_name
from unstuck.operations.routes import PREFIX
from unstuck.operations.table import Caller
from unstuck.server.control_desk import ControlDesk, ControlListener
from unstuck.server.endpoints import Endpoint
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.guests import Guest
from unstuck.server.lanes import Lane
from unstuck.server.problems import HttpProblem
from unstuck.server.refusals import Refusals
from unstuck.server.remote_checks import (
    CHECKS,
    app_of,
    check_claim,
    check_count,
    check_granted,
    check_lease,
    check_numbers,
    check_reads_platform,
    check_refs,
    check_reports,
    check_role,
    check_schedule,
    check_verifies,
    check_workflow,
    grant_of,
    ident_of,
    info_of,
    plain,
)
from unstuck.server.work_desk import FoundJobs, Taker, WorkDesk
from unstuck.store.port import wire
from unstuck.version import __version__

B = TypeVar("B")

#: Workers whose incarnation is remembered.
REMEMBERED = 10_000
#: Bytes of what is said by those who wait: two thousand of one key may.
_MOST_OF_STAYS = {"take": 1 << 20, "control": 4 << 10}
#: Workers of one key that have not ended.
MOST_OF_KEY = 2000
_SAID_OF_ITSELF = ("host", "boot_id", "pid_namespace", "code_version")


class RemoteWorkers:
    """`lane`: where those who wait ask the database."""

    def __init__(self, desk: WorkDesk, control: ControlDesk, lane: Lane, clock: Clock) -> None:
        self.desk = desk
        self.control = control
        self.lane = lane
        #: Called with the seconds after which a wait ends that was just begun.
        self.parked: Callable[[float], None] = lambda seconds: None
        self.refusals = Refusals(clock)
        self._lock = threading.Lock()
        self._known: OrderedDict[int, str] = OrderedDict()

    def close(self) -> None:
        self.desk.close()
        self.control.close()

    def endpoints(self) -> list[Endpoint]:
        base = PREFIX + wire.PATH
        asks: dict[str, Callable[[Caller, Exchange], HttpAnswer]] = {
            "register": self._register,
            "workflows": self._workflows,
            "declare": self._declare,
            "acknowledge": self._acknowledge,
            "payloads": self._payloads,
            "settle": self._settle,
            **{name: partial(self._verb, verb) for name, verb in wire.verbs().items()},
        }
        stays: dict[str, Callable[[Exchange], Any]] = {
            "take": lambda exchange: TakeStay(self, exchange),
            "control": lambda exchange: ControlStay(self, exchange),
        }
        return [
            Endpoint("GET", base, partial(self._watched, self._hello)),
            Endpoint("GET", f"{base}/{wire.READER}", _reader),
            *(
                Endpoint("POST", f"{base}/{name}", partial(self._watched, ask), most_bytes=wire.MOST_BYTES)
                for name, ask in asks.items()
            ),
            *(
                Endpoint("POST", f"{base}/{name}", _never, stays=stay, most_bytes=_MOST_OF_STAYS[name])
                for name, stay in stays.items()
            ),
        ]

    def _watched(
        self, ask: Callable[[Caller, Exchange], HttpAnswer], caller: Caller, exchange: Exchange
    ) -> HttpAnswer:
        with self.refusals.told(caller):
            return ask(caller, exchange)

    def tell_refused(self, caller: Caller, exchange: Exchange, problem: HttpProblem) -> None:
        """What HTTP itself refuses whoever asks here: a flood, a body without end."""
        if self.is_asked(exchange):
            self.refusals.tell(caller, str(problem))

    def is_asked(self, exchange: Exchange) -> bool:
        path = PREFIX + wire.PATH
        return exchange.own_path == path or exchange.own_path.startswith(f"{path}/")

    def check_sends(self, caller: Caller) -> None:
        """Before a large body is read: whoever runs no jobs has none to send."""
        with self.refusals.told(caller):
            check_role(caller)

    # --- who asks -------------------------------------------------------------------------------------------------

    def body(self, kind: type[B], caller: Caller, exchange: Exchange) -> B:
        """What it says, if it is the worker that it says it is."""
        check_role(caller)
        said: Any = wire.decoded(kind, exchange.body, "the body")
        self._check_worker(caller, said.worker, said.incarnation)
        return said  # type: ignore[no-any-return]

    def _check_worker(self, caller: Caller, worker: int, incarnation: str) -> None:
        if key_of(incarnation) != ident_of(caller):
            raise NotPermitted(f"worker {worker} was registered by another key")
        with self._lock:
            known = self._known.get(worker)
        if known is None:
            known = caller.store.incarnation_of(worker) if 0 < worker < 1 << 62 else None
            if known is None:
                raise NotPermitted(f"there is no worker {worker}")
            with self._lock:
                self._known[worker] = known
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        if known != incarnation:
            raise NotPermitted(f"worker {worker} is another incarnation")

    # --- what it asks ---------------------------------------------------------------------------------------------

    def _hello(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        """Whether a worker with this key would be taken, and what is spoken here."""
        check_role(caller)
        ident_of(caller)
        return _answer(wire.HelloAnswer(wire.PROTOCOL, __version__, verifies=len(caller.signing()) > 0))

    def _register(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        check_role(caller)
        said = wire.decoded(wire.RegisterBody, exchange.body, "the registration")
        if abs(said.protocol - wire.PROTOCOL) > 1:
            raise InvalidInput(
                f"the worker speaks version {said.protocol} of the workers' protocol and this server, unstuck "
                f"{__version__}, version {wire.PROTOCOL}; they may be one apart: update the older one"
            )
        worker = said.worker
        if key_of(worker.incarnation) != ident_of(caller):
            raise NotPermitted("an incarnation begins with the id of the key by which it registers")
        self._check_room(caller, worker.incarnation)
        check_lease(worker.lease)
        check_numbers(pid=worker.pid, pid_start=worker.pid_start)
        for queue in worker.queues:
            check_granted(caller, queue=check_name(queue, "queue"))
        named = replace(
            worker,
            name=check_name(worker.name, "worker"),
            **{name: plain(getattr(worker, name))[:200] for name in _SAID_OF_ITSELF},
            info=info_of(caller, worker.info, _here(exchange)),
        )
        registered = caller.store.register_remote_worker(named)
        return _answer(wire.RegisterAnswer(wire.PROTOCOL, registered, grant_of(caller)))

    def _check_room(self, caller: Caller, incarnation: str) -> None:
        """People look through all there are. It comes again: others may have ended by then."""
        if caller.store.standing_of_key(incarnation, MOST_OF_KEY) >= MOST_OF_KEY:
            text = f"{MOST_OF_KEY:,} workers live by this key already: make a key for each host"
            self.refusals.tell(caller, text)
            raise HttpProblem("TooManyRequests", text, Retry_After="30")

    def _workflows(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        """Only what its key is granted; the rows of a tenant's worker are that tenant's."""
        said = self.body(wire.WorkflowsBody, caller, exchange)
        check_count(said.workflows)
        check_count(said.queues)
        for workflow in said.workflows:
            check_workflow(caller, workflow)
        for queue in said.queues:
            check_granted(caller, queue=check_name(queue, "queue"))
        held = caller.store.register_workflows(
            said.workflows,
            worker=said.worker,
            queues=said.queues,
            app=None if said.app is None else app_of(caller, said.app),
            tenant=caller.bound,
        )
        return _answer(wire.WorkflowsAnswer(held))

    def _declare(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(wire.DeclareBody, caller, exchange)
        check_count(said.declared)
        for each in said.declared:
            check_schedule(caller, each)
        app, origin = app_of(caller, said.app), check_name(said.origin, "origin")
        version = check_name(said.code_version, "code version")
        refused = caller.store.declare_schedules(app, origin, version, said.declared)
        return _answer(wire.DeclareAnswer(tuple(refused)))

    def _acknowledge(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(wire.AcknowledgeBody, caller, exchange)
        check_claim(caller, said.worker, said.claim)
        check_count(said.offers)
        for ref in said.offers:
            check_numbers(job=ref.job, token=ref.token)
            if ref.claim != offered(said.claim):
                raise NotPermitted("an acknowledgement is of what one claim was offered")
        verdicts = caller.store.acknowledge(said.worker, said.claim, said.offers)
        return _answer(wire.AcknowledgeAnswer(tuple(verdicts)))

    def _payloads(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(wire.PayloadsBody, caller, exchange)
        check_count(said.refs)
        check_refs(caller, said.worker, said.refs)
        found: list[str | None] = []
        room = wire.MOST_PAYLOADS
        for ref in said.refs:
            found.append(caller.store.payload_of(ref))
            room -= len(found[-1] or "")
            if room <= 0:
                break
        return _answer(wire.PayloadsAnswer(tuple(found)))

    def _settle(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(wire.SettleBody, caller, exchange)
        reports = [each.report() for each in said.reports]
        check_reports(caller, said.worker, reports)
        settled = tuple(caller.store.settle(said.worker, reports))
        if ends := [each.wait_ends_in for each in settled if each.wait_ends_in is not None]:
            self.parked(min(ends))
        return _answer(wire.SettleAnswer(settled))

    def _verb(self, verb: wire.Verb, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(verb.body, caller, exchange)
        facts = {name: getattr(said, name) for name in said.__struct_fields__ if name != "incarnation"}
        worker: int = facts.pop("worker")
        check_numbers(**facts)
        if (check := CHECKS.get(verb.name)) is not None:
            check(caller, worker, facts)
        if facts.get("info") is not None:
            facts["info"] = info_of(caller, facts["info"], _here(exchange))
        if verb.name == "answer_order" and not _is_order_of(caller, worker, facts["number"]):
            return _answer(None)
        if verb.name == "notify" and (caller.bound is not None or caller.within is not None):
            return _answer(False)  # news for the platform are for those who may see it
        if verb.name == "unregister_worker":
            caller.store.return_offers(0.0, worker=worker)
        given = {"worker": worker, **facts} if verb.takes_worker else facts
        return _answer(getattr(caller.store, verb.name)(**given))


# --- those who wait -----------------------------------------------------------------------------------------------


class TakeStay:
    """Jobs for a worker that has room: now, or when there are some, or none when its time is over."""

    def __init__(self, remote: RemoteWorkers, exchange: Exchange) -> None:
        self._remote = remote
        self._exchange = exchange

    def open(self, caller: Caller) -> None:
        with self._remote.refusals.told(caller):
            self._open(caller)

    def _open(self, caller: Caller) -> None:
        said = self._remote.body(wire.TakeBody, caller, self._exchange)
        check_claim(caller, said.worker, said.claim)
        wanted = said.wanted
        if min(wanted.slots, wanted.ahead, wanted.solo) < 0 or wanted.slots + wanted.ahead + wanted.solo < 1:
            raise InvalidInput("there is no room in what the worker wants")
        for names in (wanted.workflows, wanted.queues, wanted.quick, wanted.alone):
            check_count(names)
        check_verifies(caller, wanted.signed)
        self._taker = Taker.of(said.worker, said.claim, wanted, grant_of(caller), again=said.again)
        self._fetches = said.fetches

    async def serve(self, guest: Guest) -> HttpAnswer:
        loop, desk, taker = asyncio.get_running_loop(), self._remote.desk, self._taker
        until = loop.time() + _patience(taker.wanted.wait)
        desk.join(taker, lambda: _set(loop, guest))
        guest.at_end.append(lambda: desk.leave(taker))
        while True:
            guest.wake.clear()
            # Whoever has left would never hear of it, and one whose key was revoked may not.
            found = (
                FoundJobs() if guest.reason is not None else await self._remote.lane.run(partial(desk.find, taker))
            )
            left = until - loop.time()
            if found.jobs or guest.reason is not None or left <= 0:
                guest.check()
                return _answer(wire.TakeAnswer(_light(found.jobs) if self._fetches else found.jobs))
            await guest.wait(left if found.again_in is None else min(left, found.again_in))


class ControlStay:
    """What is asked of a worker, once it differs from what it has seen, or when its time is over."""

    def __init__(self, remote: RemoteWorkers, exchange: Exchange) -> None:
        self._remote = remote
        self._exchange = exchange

    def open(self, caller: Caller) -> None:
        with self._remote.refusals.told(caller):
            self._said = self._remote.body(wire.ControlBody, caller, self._exchange)

    async def serve(self, guest: Guest) -> HttpAnswer:
        loop, said = asyncio.get_running_loop(), self._said
        listener = ControlListener(said.worker, said.seen, lambda: _set(loop, guest))
        self._remote.control.join(listener)
        guest.at_end.append(lambda: self._remote.control.leave(listener))
        await guest.wait(_patience(said.wait))
        guest.check()
        if listener.news is None:
            raise HttpProblem("Overloaded", "nobody could look up in that time what is asked of it")
        return _answer(wire.ControlAnswer(listener.name, listener.news))


def _light(jobs: Sequence[ClaimedJob]) -> tuple[ClaimedJob, ...]:
    """Without the payloads that do not fit: the worker asks for them once it has said that it heard of the offer."""
    found, room = list[ClaimedJob](), wire.MOST_PAYLOADS
    for job in jobs:
        fits = len(job.payload) <= room
        room -= len(job.payload) if fits else 0
        found.append(job if fits else job._replace(payload=left_out(job.payload)))
    return tuple(found)


def _set(loop: asyncio.AbstractEventLoop, guest: Guest) -> None:
    try:
        loop.call_soon_threadsafe(guest.wake.set)
    except RuntimeError:
        pass  # it has ended, and all who were on it


def _patience(seconds: float) -> float:
    if not 0 <= seconds <= wire.LONGEST_WAIT:
        raise InvalidInput(f"wait={seconds:g} is not between 0 and {wire.LONGEST_WAIT:g} seconds")
    return seconds


def _never(caller: Caller, exchange: Exchange) -> HttpAnswer:
    raise AssertionError("this is answered by a stay")


def _is_order_of(caller: Caller, worker: int, number: int) -> bool:
    """One that is open; others have their answer."""
    return any(order.number == number for order in caller.store.orders(worker))


def _reader(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """For a worker that is asked for its metrics from afar, and cannot look up a key itself."""
    check_reads_platform(caller)
    return _answer(None)


def _here(exchange: Exchange) -> str:
    """This server, as people tell several apart: its host, and the port that was asked."""
    _, port = exchange.scope.get("server") or (None, None)
    return gethostname() if port is None else f"{gethostname()}:{port}"


def _answer(value: Any) -> HttpAnswer:
    return HttpAnswer(200, wire.encoded(value))
