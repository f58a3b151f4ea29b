"""Workers at a distance: the worker's port over HTTP, under `/api/v1/worker`.

What such a worker may do is what its key says: its role is `worker`, and tenant, queues and workflows are all that it
gets. Nothing that it says of itself is believed. Its incarnation begins with the id of the key by which it asks, and
its number must be that incarnation's; each attempt that it names must be one that was claimed for that number, which
the claim's id tells (`model/offers.py`); the store's fences do the rest. What is refused here changed nothing, and is
told to the log with the key and the address.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from unstuck.model.errors import InvalidInput, NotPermitted, UnstuckError
from unstuck.model.job import AttemptRef, WorkflowRecord
from unstuck.model.keys import ID_LENGTH
from unstuck.model.lifecycle import RequestKind
from unstuck.model.offers import NO_KEY, is_claim_of, key_of, offered
from unstuck.model.payload import check_name, clean_text
from unstuck.operations.routes import PREFIX
from unstuck.operations.table import INCLUDED, WORKER, Caller
from unstuck.server.control_desk import ControlDesk, ControlListener
from unstuck.server.endpoints import Endpoint
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.guests import Guest
from unstuck.server.lanes import Lane
from unstuck.server.problems import HttpProblem
from unstuck.server.work_desk import FoundJobs, Taker, WorkDesk
from unstuck.store.port import wire
from unstuck.telemetry import emit
from unstuck.version import __version__

B = TypeVar("B")

#: Seconds for which a worker at a distance may be silent, at the least and at the most.
SHORTEST_LEASE = 1.0
LONGEST_LEASE = 600.0
#: Bytes of what it tells of itself.
MOST_INFO = 256 << 10
#: Workers whose incarnation is remembered.
REMEMBERED = 10_000
#: What a worker itself may ask of its attempts.
_OWN_REQUESTS = (RequestKind.TIMEOUT, RequestKind.DRAIN)


class RemoteWorkers:
    """`lane`: where those who wait ask the database."""

    def __init__(self, desk: WorkDesk, control: ControlDesk, lane: Lane) -> None:
        self.desk = desk
        self.control = control
        self.lane = lane
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
            "acknowledge": self._acknowledge,
            "settle": self._settle,
            **{name: partial(self._verb, verb) for name, verb in wire.verbs().items()},
        }
        stays: dict[str, Callable[[Exchange], Any]] = {
            "take": lambda exchange: TakeStay(self, exchange),
            "control": lambda exchange: ControlStay(self, exchange),
        }
        return [
            Endpoint("GET", base, self._hello),
            *(Endpoint("POST", f"{base}/{name}", ask, most_bytes=wire.MOST_BYTES) for name, ask in asks.items()),
            *(Endpoint("POST", f"{base}/{name}", _never, stays=stay) for name, stay in stays.items()),
        ]

    # --- who asks -------------------------------------------------------------------------------------------------

    def body(self, kind: type[B], caller: Caller, exchange: Exchange) -> B:
        """What it says, if it is the worker that it says it is."""
        _check_role(caller)
        said: Any = wire.decoded(kind, exchange.body, "the body")
        self._check_worker(caller, said.worker, said.incarnation)
        return said  # type: ignore[no-any-return]

    def _check_worker(self, caller: Caller, worker: int, incarnation: str) -> None:
        if key_of(incarnation) != _ident(caller):
            raise _refused(caller, f"worker {worker} was registered by another key")
        with self._lock:
            known = self._known.get(worker)
        if known is None:
            known = caller.store.incarnation_of(worker) if 0 < worker < 1 << 62 else None
            if known is None:
                raise _refused(caller, f"there is no worker {worker}")
            with self._lock:
                self._known[worker] = known
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        if known != incarnation:
            raise _refused(caller, f"worker {worker} is another incarnation")

    # --- what it asks ---------------------------------------------------------------------------------------------

    def _hello(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        """Whether a worker with this key would be taken, and what is spoken here."""
        _check_role(caller)
        _ident(caller)
        return _answer(wire.HelloAnswer(wire.PROTOCOL, __version__))

    def _register(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        _check_role(caller)
        said = wire.decoded(wire.RegisterBody, exchange.body, "the registration")
        if abs(said.protocol - wire.PROTOCOL) > 1:
            raise InvalidInput(
                f"the worker speaks version {said.protocol} of the workers' protocol and this server, unstuck "
                f"{__version__}, version {wire.PROTOCOL}; they may be one apart: update the older one"
            )
        worker = said.worker
        if key_of(worker.incarnation) != _ident(caller):
            raise _refused(caller, "an incarnation begins with the id of the key by which it registers")
        if not SHORTEST_LEASE <= worker.lease <= LONGEST_LEASE:
            raise InvalidInput(f"lease={worker.lease:g} is not between {SHORTEST_LEASE:g} and {LONGEST_LEASE:g}")
        for queue in worker.queues:
            _check_granted(caller, queue=check_name(queue, "queue"))
        named = replace(
            worker,
            name=check_name(worker.name, "worker"),
            **{name: clean_text(getattr(worker, name), 200) for name in ("host", "boot_id", "pid_namespace")},
            code_version=clean_text(worker.code_version, 200),
            info=_info(caller, worker.info),
        )
        return _answer(wire.RegisterAnswer(wire.PROTOCOL, caller.store.register_remote_worker(named)))

    def _workflows(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        """Only what its key is granted. A workflow's row is everybody's: a tenant's worker makes new ones, under the
        names that its key gives, and changes none."""
        said = self.body(wire.WorkflowsBody, caller, exchange)
        for workflow in said.workflows:
            _check_granted(caller, workflow=check_name(workflow.name, "workflow"))
        for queue in said.queues:
            _check_granted(caller, queue=check_name(queue, "queue"))
        store = caller.store
        if caller.bound is None:
            held = store.register_workflows(said.workflows, worker=said.worker, queues=said.queues)
            return _answer(wire.WorkflowsAnswer(held))
        if caller.workflows is None:
            raise _refused(caller, "a worker of one tenant needs a key that names its workflows")
        held = store.register_workflows(_unknown(caller, said.workflows))
        version = said.workflows[0].code_version if said.workflows else None
        store.set_served(said.worker, said.queues, [workflow.name for workflow in said.workflows], version)
        return _answer(wire.WorkflowsAnswer(held))

    def _acknowledge(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(wire.AcknowledgeBody, caller, exchange)
        check_claim(caller, said.worker, said.claim)
        _check_count(said.offers)
        if any(ref.claim != offered(said.claim) for ref in said.offers):
            raise _refused(caller, "an acknowledgement is of what one claim was offered")
        verdicts = caller.store.acknowledge(said.worker, said.claim, said.offers)
        return _answer(wire.AcknowledgeAnswer(tuple(verdicts)))

    def _settle(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(wire.SettleBody, caller, exchange)
        _check_count(said.reports)
        reports = [each.report() for each in said.reports]
        _check_refs(caller, said.worker, (report.ref for report in reports))
        return _answer(wire.SettleAnswer(tuple(caller.store.settle(said.worker, reports))))

    def _verb(self, verb: wire.Verb, caller: Caller, exchange: Exchange) -> HttpAnswer:
        said = self.body(verb.body, caller, exchange)
        facts = {name: getattr(said, name) for name in said.__struct_fields__ if name != "incarnation"}
        worker: int = facts.pop("worker")
        if (check := _CHECKS.get(verb.name)) is not None:
            check(caller, worker, facts)
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
        said = self._remote.body(wire.TakeBody, caller, self._exchange)
        check_claim(caller, said.worker, said.claim)
        wanted = said.wanted
        if min(wanted.slots, wanted.ahead, wanted.solo) < 0 or wanted.slots + wanted.ahead + wanted.solo < 1:
            raise InvalidInput("there is no room in what the worker wants")
        self._taker = Taker(
            said.worker,
            said.claim,
            wanted,
            tenant=caller.bound,
            queues=caller.queues,
            workflows=caller.workflows,
            again=said.again,
        )

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
                return _answer(wire.TakeAnswer(found.jobs))
            await guest.wait(left if found.again_in is None else min(left, found.again_in))


class ControlStay:
    """What is asked of a worker, once it differs from what it has seen, or when its time is over."""

    def __init__(self, remote: RemoteWorkers, exchange: Exchange) -> None:
        self._remote = remote
        self._exchange = exchange

    def open(self, caller: Caller) -> None:
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


# --- what is refused ----------------------------------------------------------------------------------------------


def _check_role(caller: Caller) -> None:
    if WORKER not in INCLUDED[caller.role]:
        raise _refused(caller, f"running jobs needs the role {WORKER}; {caller.by} is {caller.role}")


def _ident(caller: Caller) -> str:
    """What an incarnation of this caller's begins with."""
    if caller.key is None:
        return NO_KEY
    if len(caller.key) != ID_LENGTH:
        raise _refused(caller, "a worker at a distance shows an API key")
    return caller.key


def _check_granted(caller: Caller, *, queue: str | None = None, workflow: str | None = None) -> None:
    try:
        caller.check_within(queue=queue, workflow=workflow)
    except NotPermitted as error:
        raise _refused(caller, str(error)) from None


def check_claim(caller: Caller, worker: int, claim: str) -> None:
    if not is_claim_of(worker, claim):
        raise _refused(caller, f"a claim of worker {worker} is called w{worker}- and 32 hexadecimal digits")


def _check_refs(caller: Caller, worker: int, refs: Iterable[AttemptRef]) -> None:
    """Each was claimed for this worker. That it is still open, the store's fence says."""
    for ref in refs:
        if not is_claim_of(worker, ref.claim) or not (0 < ref.job < 1 << 62 and 0 < ref.token < 1 << 62):
            raise _refused(caller, f"the attempt of job number {ref.job} is none of worker {worker}")


def _check_count(several: Sequence[object]) -> None:
    if len(several) > wire.MOST_AT_ONCE:
        raise InvalidInput(f"there are {len(several):,} in one body; the limit is {wire.MOST_AT_ONCE:,}")


def _check_lease(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    if not SHORTEST_LEASE <= facts["lease"] <= LONGEST_LEASE:
        raise InvalidInput(f"lease={facts['lease']:g} is not between {SHORTEST_LEASE:g} and {LONGEST_LEASE:g}")
    if facts["state"] not in ("active", "draining"):
        raise InvalidInput("a worker that beats is active or draining")
    if facts["info"] is not None:
        facts["info"] = _info(caller, facts["info"])


def _check_holdings(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    """What it names and is not its own is ignored by the store: it looks at this worker's rows alone. A claim under
    way may be an offer still."""
    for several in ("held", "settling", "pending_claims"):
        _check_count(facts[several])
    facts["pending_claims"] = [each for claim in facts["pending_claims"] for each in (claim, offered(claim))]


def _check_ref(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    _check_refs(caller, worker, [facts["ref"]])


def _check_ask(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    _check_ref(caller, worker, facts)
    if facts["kind"] not in _OWN_REQUESTS:
        raise _refused(caller, f"a worker asks its attempts to end by {' or '.join(_OWN_REQUESTS)} alone")


def _check_each(name: str) -> Callable[[Caller, int, dict[str, Any]], None]:
    def check(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
        _check_count(facts[name])
        _check_refs(caller, worker, (each.ref for each in facts[name]))

    return check


def _check_child(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    child = facts["child"]
    _check_refs(caller, worker, [child.ref])
    if caller.bound is not None and child.job.tenant != caller.bound:
        raise _refused(caller, f"a child of tenant {caller.bound}'s job is of that tenant")
    _check_granted(caller, queue=child.job.queue, workflow=child.job.workflow)


def _check_gather(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    """The only question that no fence guards: it reads."""
    _check_ref(caller, worker, facts)
    if not caller.store.is_held(worker, facts["ref"]):
        raise _refused(caller, f"the attempt of job number {facts['ref'].job} is none of worker {worker}")


_CHECKS: dict[str, Callable[[Caller, int, dict[str, Any]], None]] = {
    "renew": _check_lease,
    "reconcile": _check_holdings,
    "ask": _check_ask,
    "keep_output": _check_each("outputs"),
    "record_steps": _check_each("steps"),
    "spawn": _check_child,
    "gather": _check_gather,
    **dict.fromkeys(("journal", "spend", "keep_part", "publish_from"), _check_ref),
}


def _is_order_of(caller: Caller, worker: int, number: int) -> bool:
    """One that is open; others have their answer."""
    return any(order.number == number for order in caller.store.orders(worker))


def _unknown(caller: Caller, workflows: Sequence[WorkflowRecord]) -> list[WorkflowRecord]:
    known = {workflow.name for workflow in caller.store.workflows()}
    return [workflow for workflow in workflows if workflow.name not in known]


def _info(caller: Caller, info: Any) -> dict[str, Any]:
    """What it tells of itself, and what is known of it: by which key it works, and from where."""
    if len(wire.encoded(info)) > MOST_INFO:
        raise InvalidInput(f"what a worker tells of itself is more than {MOST_INFO:,} bytes")
    return {**info, "remote": {"key": caller.by, "address": caller.address}}


def _refused(caller: Caller, reason: str) -> UnstuckError:
    emit("remote_worker_refused", level=logging.WARNING, key=caller.by, address=caller.address, reason=reason)
    return NotPermitted(reason)


def _answer(value: Any) -> HttpAnswer:
    return HttpAnswer(200, wire.encoded(value))
