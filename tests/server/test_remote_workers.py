"""Workers at a distance: the worker's port over HTTP, for those who behave and for those who do not."""

from __future__ import annotations

import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from socket import gethostname
from typing import Any

import httpx2
import pytest

from tests.server.conftest import JSON, Raw, Site, problem, running
from tests.support.builders import a_worker, chance, record, submitted
from tests.support.cut_link import CutLink
from tests.support.eventually import eventually
from tests.support.signing import a_key, attach, envelope_of, write_keys
from tests.support.tables import ask
from tests.support.troubles import execute
from tests.tiers import slow
from unstuck.assembly.server import ServerOptions
from unstuck.client.address import ApiKey
from unstuck.client.transport import Transport
from unstuck.client.worker_port import RemoteWorkerPort
from unstuck.clock import Clock, FakeClock, MachineClock, boot
from unstuck.model.errors import (
    InvalidInput,
    NotPermitted,
    StoreError,
    StoreUnavailable,
    TooManyAttempts,
    Unauthenticated,
)
from unstuck.model.job import AttemptRef, ClaimedJob, WorkflowRecord
from unstuck.model.keys import Within, id_in
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.offers import claim_id, is_left_out, left_out, remote_incarnation
from unstuck.model.policy import Policy
from unstuck.model.schedules import DeclaredSchedule, ScheduleSpec
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.operations import health, keyring, keys, workers
from unstuck.operations.metrics import MetricsMemory, measure
from unstuck.operations.table import Caller
from unstuck.server import guests
from unstuck.server.control_desk import name_of
from unstuck.server.refusals import Refusals
from unstuck.signing import SignatureRule, SigningKeys
from unstuck.store.order import gates
from unstuck.store.port import (
    AttemptOutput,
    ControlNews,
    Grant,
    NewChild,
    NewStep,
    NewWorker,
    Report,
    Verdict,
    Wanted,
    wire,
)
from unstuck.store.sql_store import SqlStore
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.parts import ClaimerNeeds
from unstuck.worker.remote_claim import RemoteClaimer
from unstuck.worker.served import Served
from unstuck.worker.shares import FreeRoom

#: Workers that wait for jobs, each by two polls.
IDLE = 150
GREET = WorkflowRecord("greet", "v1", "default", Policy(), {})


def a_far_worker(incarnation: str, /, **more: Any) -> NewWorker:
    base: dict[str, Any] = {"boot_id": "b", "pid_namespace": "1", "pid": 7, "pid_start": 1, "queues": ()}
    own = {"incarnation": incarnation, "name": "far", "host": "h", "code_version": "v1", "lease": 60.0}
    return NewWorker(**{**own, **base, **more})


@dataclass
class FarWorker:
    """A worker at a distance, by hand: it does what its port lets it do."""

    port: RemoteWorkerPort
    number: int
    incarnation: str
    key: str

    def wanted(self, **more: Any) -> Wanted:
        return replace(Wanted(slots=4, workflows=("greet",), queues=("default",), wait=0.0), **more)

    def take(self, **more: Any) -> list[ClaimedJob]:
        """Acknowledged."""
        claim = claim_id(self.number, chance.nonce())
        given = self.port.take(self.number, claim, self.wanted(**more))
        verdicts = self.port.acknowledge(self.number, claim, [job.ref for job in given]) if given else []
        assert verdicts == [Verdict.DONE] * len(given)
        ours = [job._replace(ref=job.ref._replace(claim=claim)) for job in given]
        apart = [job.ref for job in ours if is_left_out(job.payload)]
        payloads: dict[AttemptRef, str | None] = {}
        while left := apart[len(payloads) :]:
            payloads |= zip(left, self.port.payloads(self.number, left), strict=False)
        return [job._replace(payload=payloads.get(job.ref) or job.payload) for job in ours]

    def settle(self, ref: AttemptRef) -> Verdict:
        (answer,) = self.port.settle(self.number, [Report(ref, Returned('"hi"'), 5)])
        return answer.verdict


Enter = Callable[..., FarWorker]


@pytest.fixture
def enter(site: Site, store: SqlStore) -> Iterator[Enter]:
    """Makes a key of these grants, and a worker that has registered by it."""
    opened: list[FarWorker] = []

    def entered(**grants: Any) -> FarWorker:
        opened.append(enter_at(site, store, f"host-{len(opened)}", **grants))
        return opened[-1]

    yield entered
    for worker in opened:
        worker.port.close()


def enter_at(
    site: Site,
    store: SqlStore,
    name: str,
    *,
    tenant: str | None = None,
    role: str = "worker",
    clock: Clock | None = None,
    **grants: Any,
) -> FarWorker:
    key = keys.create(Caller(store, "ada", tenant), name, role=role, **grants).key
    incarnation = remote_incarnation(id_in(key), chance.nonce())
    port = port_of(site, key, incarnation, clock)
    number = port.register_worker(a_far_worker(incarnation)).number
    port.register_workflows([GREET], worker=number, queues=["default"])
    return FarWorker(port, number, incarnation, key)


def port_of(site: Site, key: str, incarnation: str, clock: Clock | None = None) -> RemoteWorkerPort:
    transport = Transport(site.url, ApiKey(key, "the test"))
    return RemoteWorkerPort(transport, site.url, incarnation, patience=10.0, clock=clock or MachineClock())


def told(site: Site, worker: FarWorker, verb: str, **body: Any) -> httpx2.Response:
    """By bytes of its own, not by a port that behaves."""
    who = {"worker": worker.number, "incarnation": worker.incarnation}
    headers = {**JSON, "authorization": f"Bearer {worker.key}"}
    return site.client.post(f"/api/v1/worker/{verb}", content=wire.encoded(who | body), headers=headers)


# --- those who behave ---------------------------------------------------------------------------------------------


def test_a_job_is_offered_acknowledged_run_and_settled(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    job = submitted(store, payload='{"args": [1]}')
    (given,) = worker.take()
    assert (given.id, given.payload, given.workflow, given.tenant) == (job.id, job.payload, "greet", "default")
    assert (given.route, given.rank) == (0, 0)
    port, ref = worker.port, given.ref
    assert port.renew(worker.number, 60.0, info={"slots": 4}).alive
    assert port.reconcile(worker.number, port.renew(worker.number, 60.0), [ref]).gone == ()
    assert port.record_steps([NewStep(ref, "s", 1, "1", 3)]) == [Verdict.DONE]
    assert port.keep_output([AttemptOutput(ref, "hello", '{"done": 1}')]) == [Verdict.DONE]
    journal = port.journal(ref)
    assert journal is not None
    assert [step.name for step in journal.steps] == ["s"]
    assert port.keep_part(ref, 1, "part", "1") is Verdict.DONE
    spent = port.spend(ref, 2, {"tokens": 2.0})
    assert spent is not None
    assert spent.used == {"tokens": 2.0}
    assert port.ask(ref, RequestKind.TIMEOUT, "too long") is Verdict.DONE
    assert worker.settle(ref) is Verdict.DONE
    assert worker.settle(ref) is Verdict.DONE  # a repeat
    found = record(store, job.id)
    assert (found.state, found.result, found.late) == (JobState.COMPLETED, '"hi"', True)


def test_a_child_is_spawned_and_gathered(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    submitted(store)
    (given,) = worker.take()
    child = worker.port.spawn(NewChild(given.ref, "c", 1, replace_job(store, given)))
    assert child is not None
    assert worker.port.gather(given.ref, [child.id]) is None
    (born,) = worker.take()
    worker.settle(born.ref)
    ended = worker.port.gather(given.ref, [child.id])
    assert ended is not None
    assert "COMPLETED" in ended


def replace_job(store: SqlStore, parent: ClaimedJob) -> Any:
    from tests.support.builders import a_job

    return a_job(tenant=parent.tenant)


def test_a42_the_server_verifies_what_it_hands_out_and_signs_what_is_spawned(store: SqlStore, store_url: str) -> None:
    signing = SigningKeys([a_key(), a_key("spawner", purposes=("spawn",))], [SignatureRule("*")])
    with running(ServerOptions(store_url, port=0, signing=signing)) as site:
        worker = enter_at(site, store, "host")
        good, altered, bare = (submitted(store) for _ in range(3))
        attach(
            store_url, (good, envelope_of(store, good)), (altered, envelope_of(store, replace(altered, priority=7)))
        )
        (given,) = worker.take()
        assert given.id == good.id
        for job, problem in ((altered, "altered"), (bare, "missing")):
            assert record(store, job.id).state is JobState.DEAD
            assert [
                line.detail["problem"] for line in store.audit(verb="signing.refuse") if line.subject == job.id
            ] == [problem]
        # What a worker says of a signature counts for nothing: the child is signed by the server.
        forged = replace(replace_job(store, given), signature="{}", signed_until=1)
        child = worker.port.spawn(NewChild(given.ref, "c", 1, forged))
        assert child is not None
        assert [born.id for born in worker.take()] == [child.id]
        refused = told(site, worker, "settle", reports=[{"ref": given.ref, "outcome": {"type": "Refused"}}])
        assert refused.status_code in (400, 422)
        assert record(store, good.id).state is JobState.RUNNING
        worker.port.close()


def test_a42_a_large_payload_that_is_changed_behind_its_offer_does_not_run(store: SqlStore, store_url: str) -> None:
    """It comes by a request of its own, when nobody looks at signatures any more."""
    signing = SigningKeys([a_key()], [SignatureRule("*")])
    with running(ServerOptions(store_url, port=0, signing=signing)) as site:
        worker = enter_at(site, store, "host")
        good, changed = (submitted(store, payload=f'{{"args": ["{"x" * wire.MOST_PAYLOADS}"]}}') for _ in range(2))
        attach(store_url, (good, envelope_of(store, good)), (changed, envelope_of(store, changed)))
        meddled = f"UPDATE unstuck_jobs SET payload = '{{}}' WHERE uid = '{changed.id}'"
        port, ledger = Between(worker.port, lambda: execute(store_url, meddled)), Ledger()
        reports: list[Report] = []
        needs = ClaimerNeeds(
            worker.number,
            "host",
            ledger,
            Pace(),
            before_first=lambda: None,
            landed=lambda: None,
            report=reports.extend,
        )
        claimer = RemoteClaimer(port, needs, replace(Times(), poll=0.01), MachineClock(), chance, poll=0.1)
        claimer.serve(Served.of([GREET], []))
        ledger.publish(FreeRoom(4))

        def is_buried() -> bool:
            with suppress(StoreError):  # a database that is held for a moment: loops come again, too
                claimer.tick()
                if reports:
                    worker.port.settle(worker.number, reports)
                    reports.clear()
            return record(store, changed.id).state is JobState.DEAD

        eventually(is_buried, timeout=20)
        claimer.close()
        assert [holding.job.id for holding in ledger.holdings()] == [good.id]
        (line,) = store.audit(verb="signing.refuse")
        assert (line.subject, line.detail["problem"]) == (changed.id, "altered")
        worker.port.close()


class Between:
    """A server's port, and somebody who comes between an offer and its payloads."""

    def __init__(self, port: RemoteWorkerPort, meddle: Callable[[], object]) -> None:
        self._port, self._meddle = port, meddle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def payloads(self, worker: int, refs: Sequence[AttemptRef]) -> list[str | None]:
        self._meddle()
        return self._port.payloads(worker, refs)


def test_a44_a_server_goes_by_what_its_file_of_keys_says_by_now(
    store: SqlStore, store_url: str, tmp_path: Path
) -> None:
    """A key that is added there is known as soon as somebody signs with it, one that is revoked a beat later"""
    file, new = write_keys(tmp_path / "keys.toml", a_key()), a_key("new")
    signing = SigningKeys([a_key()], [SignatureRule("*")])
    times = replace(Times(), beat=0.1)
    with running(ServerOptions(store_url, port=0, times=times, signing=signing, signing_file=str(file))) as site:
        worker = enter_at(site, store, "host")
        write_keys(file, a_key(), new)
        early = submitted(store)
        attach(store_url, (early, envelope_of(store, early, new)))
        assert [given.id for given in worker.take()] == [early.id]
        write_keys(file, a_key(), replace(new, is_revoked=True))

        def is_refused() -> None:
            late = submitted(store)
            attach(store_url, (late, envelope_of(store, late, new)))
            assert worker.take() == []
            assert record(store, late.id).state is JobState.DEAD

        eventually(is_refused, timeout=20)
        worker.port.close()


def test_a44_code_that_takes_signed_jobs_alone_gets_no_others_from_any_server(
    store: SqlStore, store_url: str
) -> None:
    """The server that has keys verifies for it; of two servers the one that has none hands it nothing"""
    keyless = ServerOptions(store_url, port=0)
    with running(replace(keyless, signing=SigningKeys([a_key()]))) as site, running(keyless) as bare:
        worker = enter_at(site, store, "host")
        elsewhere = port_of(bare, worker.key, worker.incarnation)
        assert (worker.port.hello().verifies, elsewhere.hello().verifies) == (True, False)
        good, unsigned = submitted(store), submitted(store)
        attach(store_url, (good, envelope_of(store, good)))

        claim, wanted = claim_id(worker.number, chance.nonce()), worker.wanted(signed=("greet",))
        refused = told(bare, worker, "take", claim=claim, wanted=wanted, again=False)
        assert refused.status_code == 422
        assert "this server has no signing key: set signing_keys on every server" in refused.text
        assert {record(store, job.id).token for job in (good, unsigned)} == {0}

        assert [given.id for given in worker.take(signed=("greet",))] == [good.id]
        assert record(store, unsigned.id).state is JobState.DEAD
        for port in (worker.port, elsewhere):
            port.close()


def test_a_poll_ends_when_a_job_comes(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    found: list[ClaimedJob] = []
    poll = threading.Thread(target=lambda: found.extend(worker.take(wait=30.0)))
    poll.start()
    job = submitted(store)
    poll.join(30)
    assert [each.id for each in found] == [job.id]


def test_polls_of_idle_workers_hold_no_thread_and_no_connection_to_the_database(
    enter: Enter, site: Site, store: SqlStore, store_url: str
) -> None:
    worker = enter()
    host, port = site.url.removeprefix("http://").split(":")

    def asked(verb: str, **said: Any) -> bytes:
        body = wire.encoded({"worker": worker.number, "incarnation": worker.incarnation} | said)
        lines = [
            f"POST /api/v1/worker/{verb} HTTP/1.1", f"host: {host}:{port}", f"authorization: Bearer {worker.key}",
            "content-type: application/json", f"content-length: {len(body)}", "", "",
        ]  # fmt: skip
        return "\r\n".join(lines).encode() + body

    with ExitStack() as begun:
        polls: list[socket.socket] = []
        for _ in range(IDLE):
            claim = claim_id(worker.number, chance.nonce())
            for said in (
                asked("take", claim=claim, wanted=worker.wanted(wait=30.0)),
                asked("control", seen=name_of(ControlNews()), wait=25.0),
            ):
                polls.append(begun.enter_context(socket.create_connection((host, int(port)), timeout=20)))
                polls[-1].sendall(said)
        eventually(lambda: len(site.server._api._guests) >= 2 * IDLE, timeout=20)
        threads = Counter(thread.name for thread in threading.enumerate())
        assert threads["unstuck-work"] == 1
        assert threads["unstuck-control"] == 2  # one of them is our worker's own
        assert sum(count for name, count in threads.items() if name.startswith("unstuck-http")) <= 12
        if store_url.startswith("postgres"):
            [(sessions,)] = ask(
                store_url, "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name LIKE 'unstuck server%'"
            )
            assert sessions <= 20
        job = submitted(store)
        waiting = select.poll()  # select() refuses descriptors above 1023
        for poll in polls:
            waiting.register(poll, select.POLLIN)
        ((heard, _), *_) = waiting.poll(20_000)
        (answered,) = [poll for poll in polls if poll.fileno() == heard]
        assert job.id.encode() in Raw.read(answered).body


def test_a_cancel_is_heard_by_the_control_poll(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    job = submitted(store)
    (given,) = worker.take()
    store.cancel("default", job.id, "ada", "enough")

    def is_heard() -> None:
        heard = [(asked.ref, asked.kind, asked.reason) for asked in worker.port.asked(worker.number)]
        assert heard == [(given.ref, RequestKind.CANCEL, "enough")]

    eventually(is_heard, timeout=20)


@slow
def test_a_control_poll_that_was_cut_is_soon_followed_by_one_that_is_answered(site: Site, store: SqlStore) -> None:
    """A poll waits long where nothing is asked: for that long a worker would not know whether it is told anything."""
    key = keys.create(Caller(store, "ada"), "host", role="worker").key
    incarnation = remote_incarnation(id_in(key), chance.nonce())
    with CutLink(int(site.url.rpartition(":")[2])) as link:
        port = RemoteWorkerPort(
            Transport(link.url, ApiKey(key, "the test")), link.url, incarnation, patience=10.0, clock=MachineClock()
        )
        port.register_worker(a_far_worker(incarnation))
        eventually(lambda: port._polls["polled_ago"] > 2.0, timeout=20)
        link.cut()
        eventually(lambda: port._polls["polled_ago"] < 2.0, timeout=15)
        port.close()


def test_an_order_is_heard_and_answered_by_its_own_worker_alone(enter: Enter, store: SqlStore) -> None:
    worker, other = enter(), enter()
    order = store.give_order(worker.number, "drain", "", "ada")
    eventually(lambda: [o.number for o in worker.port.orders(worker.number)] == [order.number], timeout=20)
    other.port.answer_order(order.number, "mine")
    assert [o.number for o in store.orders(worker.number)] == [order.number]
    worker.port.answer_order(order.number, "done")
    assert store.orders(worker.number) == []


def test_what_it_leaves_unacknowledged_goes_back_when_it_leaves(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    job = submitted(store, on_lost="fail")
    claim = claim_id(worker.number, chance.nonce())
    assert len(worker.port.take(worker.number, claim, worker.wanted())) == 1
    worker.port.unregister_worker(worker.number)
    found = record(store, job.id)
    assert (found.state, found.losses) == (JobState.QUEUED, 0)


def test_a_lost_answer_is_told_again_under_the_same_claim_id(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    submitted(store)
    claim = claim_id(worker.number, chance.nonce())
    first = worker.port.take(worker.number, claim, worker.wanted())
    submitted(store)
    assert worker.port.take(worker.number, claim, worker.wanted(), again=True) == first
    assert len(first) == 1


def test_without_keys_a_server_on_this_machine_takes_workers_of_this_machine(site: Site, store: SqlStore) -> None:
    incarnation = remote_incarnation(None, chance.nonce())
    port = RemoteWorkerPort(Transport(site.url, None), site.url, incarnation, patience=10.0, clock=MachineClock())
    assert port.hello().protocol == wire.PROTOCOL
    record = port.register_worker(a_far_worker(incarnation))
    assert record.info["remote"]["address"] == "127.0.0.1"
    port.unregister_worker(record.number)
    port.close()


# --- what a key is granted ----------------------------------------------------------------------------------------


def test_it_gets_nothing_of_other_tenants_queues_and_workflows(enter: Enter, store: SqlStore) -> None:
    store.register_workflows([replace(GREET, name="secret")])
    submitted(store, tenant="beta")
    submitted(store, queue="other")
    submitted(store, workflow="secret")
    mine = submitted(store, tenant="acme")
    worker = enter(tenant="acme", queues=["default"], workflows=["greet"])
    taken = worker.take(workflows=("greet", "secret"), queues=("default", "other"))
    assert [job.id for job in taken] == [mine.id]


def test_a_tenants_worker_registers_for_its_tenant_alone(enter: Enter, store: SqlStore) -> None:
    store.register_workflows([GREET])
    waits = submitted(store, tenant="beta", workflow="fresh", said="{}")
    worker = enter(tenant="acme", workflows=["greet", "fresh"])
    own = replace(GREET, policy=Policy(retries=0), redact=("card",), concurrency=1)
    worker.port.register_workflows([own, replace(own, name="fresh")], worker=worker.number, queues=["default"])
    seen = {tenant: store.workflow("greet", tenant) for tenant in ("acme", "beta", "*")}
    assert {tenant: found and found.policy.retries for tenant, found in seen.items()} == {
        "acme": 0,
        "beta": Policy().retries,
        "*": Policy().retries,
    }
    assert [found.name for found in store.workflows("beta")] == ["greet"]
    assert [(found.name, found.tenant) for found in store.workflows("acme")] == [("fresh", "acme"), ("greet", "acme")]
    assert store.redactions("acme")["greet"]
    assert not store.redactions("beta")["greet"]
    assert {(limit.name, limit.tenant) for limit in store.limits(None)} == {("greet", "acme"), ("fresh", "acme")}
    theirs, ours = (submitted(store, tenant=tenant, said="{}") for tenant in ("beta", "acme"))
    assert record(store, theirs.id, "beta").policy.retries == Policy().retries
    assert record(store, ours.id, "acme").policy.retries == 0
    # Beta's job of a workflow that nobody registered for it still goes by what the first such row will say.
    store.register_workflows([replace(GREET, name="fresh", policy=Policy(retries=7))])
    assert record(store, waits.id, "beta").policy.retries == 7


def test_what_is_not_granted_is_not_registered(enter: Enter, store: SqlStore) -> None:
    worker = enter(tenant="acme", workflows=["greet"])
    with pytest.raises(NotPermitted):
        worker.port.register_workflows([replace(GREET, name="other")], worker=worker.number, queues=["default"])
    forged = replace(GREET, policy=Policy(retries=0), tenant="*")
    worker.port.register_workflows([forged], worker=worker.number, queues=["default"])
    assert store.workflow("other", "acme") is None
    assert store.workflow("greet") is None


def test_the_rows_of_a_tenant_are_bounded(enter: Enter, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MOST_OF_TENANT", 3)
    worker = enter(tenant="acme")
    for version in ("v2", "v3"):
        worker.port.register_workflows([replace(GREET, code_version=version)], worker=worker.number)
    with pytest.raises(InvalidInput, match="3 versions of workflows"):
        worker.port.register_workflows([replace(GREET, code_version="v4")], worker=worker.number)


def test_it_hears_what_its_key_grants(enter: Enter) -> None:
    grant = enter(tenant="acme", queues=["default"]).port.grant
    assert grant == Grant("acme", Within(queues=frozenset({"default"})))
    assert enter().port.grant == Grant()


NIGHTLY = ScheduleSpec("greet", cron="0 3 * * *").to_json()


def test_its_schedules_are_declared_for_its_tenant_and_workflows(enter: Enter, store: SqlStore) -> None:
    store.set_tenant("acme", 1, "ada")
    worker = enter(tenant="acme", workflows=["greet"])
    port = worker.port
    port.register_workflows([GREET], worker=worker.number, queues=["default"], app="shop")
    assert port.declare_schedules("shop", "shop:app", "v1", [DeclaredSchedule("acme", "nightly", NIGHTLY)]) == []
    found = store.schedule("acme", "nightly")
    assert found is not None
    assert found.owner == "shop@acme:greet"
    other = ScheduleSpec("other", cron="0 3 * * *").to_json()
    elsewhere = ScheduleSpec("greet", cron="0 3 * * *", queue="gpu").to_json()
    limited = enter(workflows=["greet"], queues=["default"])
    for who, tenant, body in (
        (worker, "beta", NIGHTLY),
        (worker, "acme", other),
        (limited, "default", elsewhere),
    ):
        with pytest.raises(NotPermitted):
            who.port.declare_schedules("shop", "shop:app", "v1", [DeclaredSchedule(tenant, "hostile", body)])
        assert store.schedule(tenant, "hostile") is None
    with pytest.raises(InvalidInput):
        port.declare_schedules("shop", "shop:app", "v1", [DeclaredSchedule("acme", "hostile", "[]")])


def test_a_worker_of_a_part_removes_nothing_that_the_app_declares_as_a_whole(enter: Enter, store: SqlStore) -> None:
    whole, part = enter(), enter(workflows=["greet"])
    both = [DeclaredSchedule("default", name, NIGHTLY) for name in ("nightly", "weekly")]
    for worker, declared in ((whole, both), (part, both[:1])):
        worker.port.register_workflows([GREET], worker=worker.number, queues=["default"], app="shop")
        assert worker.port.declare_schedules("shop", "shop:app", "v1", declared) == []
    store.reconcile_schedules()
    assert {(s.name, s.owner, s.removed_at) for s in store.schedules("default")} == {
        ("nightly", "shop", None),
        ("weekly", "shop", None),
    }


def test_one_version_apart_it_works_without_what_is_new(enter: Enter) -> None:
    worker = enter()
    worker.port._protocol = wire.DECLARES - 1
    worker.port.register_workflows([GREET], worker=worker.number, queues=["default"], app="shop")
    (refused,) = worker.port.declare_schedules("shop", "o", "v1", [DeclaredSchedule("default", "n", NIGHTLY)])
    assert "older" in refused


def test_a_child_is_spawned_within_the_grant_alone(enter: Enter, store: SqlStore, site: Site) -> None:
    worker = enter(queues=["default"])
    submitted(store)
    (given,) = worker.take()
    elsewhere = replace(replace_job(store, given), queue="other")
    body = told(site, worker, "spawn", child=NewChild(given.ref, "c", 1, elsewhere))
    problem(body, 403, "NotPermitted")


# --- those who do not behave --------------------------------------------------------------------------------------


def test_a_key_of_another_role_is_no_workers(enter: Enter, site: Site, store: SqlStore) -> None:
    with pytest.raises(NotPermitted, match="role worker"):
        enter(role="operator")


def test_a_workers_key_asks_nothing_else(enter: Enter, site: Site) -> None:
    headers = {"authorization": f"Bearer {enter().key}"}
    problem(site.get("/api/v1/jobs", headers=headers), 403, "NotPermitted")


@slow
def test_a_revoked_key_is_told_by_the_control_poll_within_5_seconds(enter: Enter, store: SqlStore) -> None:
    worker, other = enter(), enter()
    told = threading.Event()
    worker.port.when_refused(told.set)
    assert worker.port.renew(worker.number, 60.0).alive
    began = boot()
    keys.revoke(Caller(store, "ada"), id_in(worker.key) or "")
    assert told.wait(20)
    assert boot() - began < 5.5
    assert not worker.port.renew(worker.number, 60.0).alive
    with pytest.raises(StoreUnavailable, match="refuses"):
        worker.take()
    with pytest.raises(Unauthenticated):
        worker.port.hello()
    assert other.port.renew(other.number, 60.0).alive


@slow
def test_a_revoked_key_is_told_although_its_roles_have_used_up_every_try(enter: Enter, store: SqlStore) -> None:
    """They ask on, each for itself: soon the server says of their address that it has tried too often."""
    worker = enter()
    told, is_over = threading.Event(), threading.Event()
    worker.port.when_refused(told.set)

    def ask_on() -> None:
        while not is_over.is_set():
            with suppress(StoreUnavailable):
                worker.port.probe()

    with ThreadPoolExecutor(4) as roles:
        asked = [roles.submit(ask_on) for _ in range(4)]
        keys.revoke(Caller(store, "ada"), id_in(worker.key) or "")
        try:
            assert told.wait(8)
        finally:
            is_over.set()
        for role in asked:
            role.result()
    with pytest.raises(TooManyAttempts):
        worker.port.hello()
    assert not worker.port.renew(worker.number, 60.0).alive


@slow
def test_a_database_that_is_away_is_no_refusal(enter: Enter, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls end when nobody can say any more whether a key works; the worker asks once more what that means."""
    worker = enter()
    told = threading.Event()
    worker.port.when_refused(told.set)

    def away(*_: object) -> None:
        raise StoreUnavailable("gone for a while")

    with monkeypatch.context() as patch:
        patch.setattr(keyring.Keyring, "_look_up", away)
        assert not told.wait(keyring.FRESH + guests.LONGEST_UNSURE + 2 * guests.RECHECK + 3)
    eventually(lambda: worker.port.renew(worker.number, 60.0).alive, timeout=20)
    eventually(lambda: worker.port.orders(worker.number) == [], timeout=20)


def test_what_a_hostile_worker_is_refused_stands_in_the_audit_once_a_minute(
    enter: Enter, store: SqlStore, site: Site
) -> None:
    worker, victim = enter(tenant="acme", workflows=["greet"]), enter()
    submitted(store)
    (given,) = victim.take()
    for _ in range(20):
        problem(told(site, worker, "journal", ref=given.ref), 403, "NotPermitted")
    problem(told(site, victim, "renew", lease=1e9), 422, "InvalidInput")
    found = store.audit(None, verb="workers.refuse", limit=100)
    assert [(each.by, each.tenant, each.key) for each in found] == [
        ("host-1", "*", id_in(victim.key)),
        ("host-0", "acme", id_in(worker.key)),
    ]
    assert found[1].address == "127.0.0.1"
    assert f"none of worker {worker.number}" in found[1].detail["reason"]


def test_of_a_flood_the_next_line_tells_how_many_came(store: SqlStore) -> None:
    clock = FakeClock()
    refusals, caller = Refusals(clock), Caller(store, "host", key="abcdefgh", address="10.0.0.7")
    for seconds in (0, 1, 1, 60):
        clock.advance(seconds)
        with pytest.raises(NotPermitted), refusals.told(caller):
            raise NotPermitted("not yours")
    found = store.audit(None, verb="workers.refuse", limit=10)
    assert [each.detail for each in found] == [{"reason": "not yours", "repeated": 2}, {"reason": "not yours"}]


def test_it_settles_nothing_of_another_worker(enter: Enter, store: SqlStore, site: Site) -> None:
    worker, other = enter(), enter()
    job = submitted(store)
    (given,) = worker.take()
    near = a_worker(store)
    report = wire.ReportWire.of(Report(given.ref, Returned("1"), 5))
    problem(told(site, other, "settle", reports=[report]), 403, "NotPermitted")
    forged = given.ref._replace(claim=claim_id(other.number, chance.nonce()))
    answer = told(site, other, "settle", reports=[wire.ReportWire.of(Report(forged, Returned("1"), 5))])
    assert answer.json()["settled"][0]["verdict"] == "fenced"
    for number, incarnation in (
        (worker.number, other.incarnation),
        (near.number, other.incarnation),
        (near.number, near.incarnation),
        (worker.number, worker.incarnation),
    ):
        thief = replace(other, number=number, incarnation=incarnation)
        problem(told(site, thief, "settle", reports=[report]), 403, "NotPermitted")
    assert record(store, job.id).state is JobState.RUNNING
    assert worker.settle(given.ref) is Verdict.DONE


def test_of_anothers_attempt_nothing_is_read_or_written(enter: Enter, store: SqlStore, site: Site) -> None:
    worker, other = enter(), enter()
    job = submitted(store)
    (given,) = worker.take()
    forged = given.ref._replace(claim=claim_id(other.number, chance.nonce()))
    for ref in (given.ref, forged):
        is_forged = ref is forged
        answers = [
            told(site, other, "journal", ref=ref),
            told(site, other, "keep_part", ref=ref, serial=1, name="p", value="1"),
            told(site, other, "record_steps", steps=[NewStep(ref, "s", 1, "1", 3)]),
            told(site, other, "keep_output", outputs=[AttemptOutput(ref, "x")]),
            told(site, other, "spend", ref=ref, serial=1, amounts={"tokens": 1.0}),
            told(site, other, "ask", ref=ref, kind="drain", reason="x"),
            told(site, other, "gather", ref=ref, children=[job.id]),
            told(site, other, "payloads", refs=[ref]),
        ]
        for answer in answers:
            if is_forged:
                assert answer.json() in (None, "fenced", ["fenced"], {"payloads": [None]}), answer.text
            else:
                problem(answer, 403, "NotPermitted")
    history = [event.kind for event in store.history("default", job.id)]
    assert history == ["submitted", "claimed"]


def test_it_cancels_none_of_its_own_attempts_in_a_persons_name(enter: Enter, store: SqlStore, site: Site) -> None:
    worker = enter()
    submitted(store)
    (given,) = worker.take()
    problem(told(site, worker, "ask", ref=given.ref, kind="cancel", reason="x"), 403, "NotPermitted")


def test_a_claim_that_is_not_its_own_is_refused(enter: Enter, site: Site) -> None:
    worker = enter()
    for claim in ("abc", f"w{worker.number}-" + "a" * 31, "a" * 32, f"w{worker.number + 1}-" + "a" * 32):
        problem(told(site, worker, "take", claim=claim, wanted=worker.wanted()), 403, "NotPermitted")
        problem(told(site, worker, "acknowledge", claim=claim, offers=[]), 403, "NotPermitted")


def test_another_protocol_or_a_lease_without_end_is_refused(enter: Enter, site: Site) -> None:
    worker = enter()
    headers = {**JSON, "authorization": f"Bearer {worker.key}"}

    def register(protocol: int, **more: Any) -> httpx2.Response:
        body = wire.RegisterBody(protocol, a_far_worker(worker.incarnation, **more))
        return site.client.post("/api/v1/worker/register", content=wire.encoded(body), headers=headers)

    assert register(wire.PROTOCOL + 1).status_code == 200
    told = problem(register(wire.PROTOCOL + 2), 422, "InvalidInput")["detail"]
    assert f"version {wire.PROTOCOL + 2}" in told
    assert f"version {wire.PROTOCOL};" in told
    problem(register(wire.PROTOCOL, lease=1e9), 422, "InvalidInput")
    problem(register(wire.PROTOCOL, incarnation=remote_incarnation("otherkey", chance.nonce())), 403, "NotPermitted")


def test_what_cannot_be_read_is_refused(enter: Enter, site: Site) -> None:
    headers = {**JSON, "authorization": f"Bearer {enter().key}"}
    bodies = (b"", b"[]", b"{", b'{"worker": 1}', b"\xff\xfe", b'{"worker": -1, "incarnation": ""}')
    for verb in ("register", "workflows", "take", "acknowledge", "settle", "renew", "control", "spawn"):
        for body in bodies:
            answer = site.client.post(f"/api/v1/worker/{verb}", content=body, headers=headers)
            assert answer.status_code in (403, 422), (verb, body, answer.text)


def test_too_much_at_once_is_refused(enter: Enter, site: Site) -> None:
    worker = enter()
    ref = AttemptRef(1, 1, claim_id(worker.number, chance.nonce()))
    many = [AttemptOutput(ref, "x")] * (wire.MOST_AT_ONCE + 1)
    problem(told(site, worker, "keep_output", outputs=many), 422, "InvalidInput")


def test_two_servers_serve_one_worker(enter: Enter, store: SqlStore, store_url: str) -> None:
    worker = enter()
    job = submitted(store)
    with running(ServerOptions(store_url, port=0)) as second:
        (given,) = worker.take()
        port = port_of(second, worker.key, worker.incarnation)
        port._number = worker.number
        assert port.renew(worker.number, 60.0).alive
        (answer,) = port.settle(worker.number, [Report(given.ref, Returned("1"), 5)])
        assert answer.verdict is Verdict.DONE
        port.close()
    assert record(store, job.id).state is JobState.COMPLETED


DEEP = "[" * 500 + "]" * 500


_HOSTILE_ENDS: list[tuple[str, dict[str, Any]]] = [
    ("Returned", {"result": "no JSON"}),
    ("Returned", {"result": DEEP}),
    ("Parked", {"wait": {"kind": "time", "key": "k", "timeout": -5}}),
    ("Parked", {"wait": {"kind": "event", "key": "k" * 1000}}),
    ("Raised", {"error": {"type": "E", "message": "m"}, "after": -1}),
]


def test_an_end_that_no_worker_of_ours_tells_is_refused_and_its_attempt_stays(
    enter: Enter, store: SqlStore, site: Site
) -> None:
    worker = enter()
    job = submitted(store)
    (given,) = worker.take()
    for kind, facts in _HOSTILE_ENDS:
        report = wire.ReportWire(given.ref, kind, facts)
        problem(told(site, worker, "settle", reports=[report]), 422, "InvalidInput")
    assert record(store, job.id).state is JobState.RUNNING


def test_a_hostile_child_workflow_or_progress_is_refused(enter: Enter, store: SqlStore, site: Site) -> None:
    worker = enter()
    submitted(store)
    (given,) = worker.take()
    job = replace_job(store, given)
    for hostile in (
        replace(job, policy=Policy(retries=-1)),
        replace(job, payload="no JSON"),
        replace(job, queue="q" * 500),
        replace(job, delay=-1.0),
    ):
        body = told(site, worker, "spawn", child=NewChild(given.ref, "c", 1, hostile))
        problem(body, 422, "InvalidInput")
    for workflow in (
        replace(GREET, policy=Policy(timeout=-1.0)),
        replace(GREET, concurrency=0),
        replace(GREET, rate="often"),
        replace(GREET, name="x\x1b[31m"),
        replace(GREET, code_version="v" * 500),
    ):
        problem(told(site, worker, "workflows", workflows=[workflow], queues=["default"]), 422, "InvalidInput")
    problem(told(site, worker, "keep_output", outputs=[AttemptOutput(given.ref, None, "no")]), 422, "InvalidInput")
    problem(told(site, worker, "renew", lease=60.0, state="gone"), 422, "InvalidInput")
    known = store.workflow("greet")
    assert known is not None
    assert known.policy == Policy()


def test_what_it_tells_of_itself_cannot_speak_to_a_terminal(enter: Enter, store: SqlStore, site: Site) -> None:
    worker = enter()
    worker.port.renew(worker.number, 60.0, info={"mode": "\x1b[31mfork", "remote": {"key": "forged"}})
    (seen,) = store.workers()
    assert seen.info["mode"] == "?[31mfork"
    assert seen.info["remote"] == {"key": "host-0", "address": "127.0.0.1", "server": here_of(site)}


def test_it_is_seen_through_which_server_it_asks_and_when_it_last_heard(
    enter: Enter, store: SqlStore, site: Site
) -> None:
    worker = enter()
    worker.port.renew(worker.number, 60.0, info={"slots": 4})
    seen = workers.list_(Caller(store, "ada")).items[0]
    assert (seen.key, seen.server) == ("host-0", here_of(site))
    assert seen.polled_at is not None
    assert abs((seen.heartbeat_at - seen.polled_at).total_seconds()) < 30
    told = {check.name: check for check in health.check(Caller(store, "ada")).checks}
    assert "1 at a distance" in told["workers"].detail
    assert "polls" not in told
    found = measure(Caller(store, "ada"), MetricsMemory())
    assert found.get("unstuck_remote_workers", here_of(site)) == 1
    assert found.get("unstuck_worker_last_poll_timestamp_seconds", "far") == seen.polled_at.timestamp()


def test_one_that_beats_but_hears_no_poll_is_told_by_health(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    worker.port._heard_at -= 150.0
    worker.port.renew(worker.number, 60.0, info={"slots": 4})
    told = {check.name: check.detail for check in health.check(Caller(store, "ada")).checks}
    assert "far beat, but the polls" in told["polls"]


def here_of(site: Site) -> str:
    return f"{gethostname()}:{site.url.rpartition(':')[2]}"


def test_a_claim_of_twenty_megabytes_goes_through_the_server(enter: Enter, store: SqlStore) -> None:
    worker = enter()
    payloads = {submitted(store, payload=f'{{"args": ["{number:02}{"x" * (1 << 20)}"]}}').id for number in range(20)}
    taken = worker.take(slots=20)
    while len(taken) < 20:
        more = worker.take(slots=20)
        assert more
        taken += more
    assert {job.id for job in taken} == payloads
    assert {len(job.payload) for job in taken} == {len('{"args": ["00"]}') + (1 << 20)}
    assert all(worker.settle(job.ref) is Verdict.DONE for job in taken)


def test_an_answer_with_jobs_carries_no_more_payloads_than_arrive_while_the_offer_stands(
    enter: Enter, store: SqlStore
) -> None:
    worker = enter()
    sizes = [10, wire.MOST_PAYLOADS - 100, 200, 60]
    for size in sizes:
        submitted(store, payload="x" * size)
    claim = claim_id(worker.number, chance.nonce())
    given = worker.port.take(worker.number, claim, worker.wanted())
    assert [len(job.payload) for job in given if job is not given[2]] == [10, wire.MOST_PAYLOADS - 100, 60]
    assert given[2].payload == left_out("x" * 200)
    own = [job.ref._replace(claim=claim) for job in given]
    assert worker.port.payloads(worker.number, own) == [None] * 4  # nobody has heard of the offer
    worker.port.acknowledge(worker.number, claim, [job.ref for job in given])
    assert [len(text or "") for text in worker.port.payloads(worker.number, own)] == sizes[:3]
    # A worker of the version before asks for nothing apart.
    for ref in own:
        worker.settle(ref)
    submitted(store, payload="x" * 2 * wire.MOST_PAYLOADS)
    worker.port._protocol = wire.FETCHES - 1
    claim = claim_id(worker.number, chance.nonce())
    (whole,) = worker.port.take(worker.number, claim, worker.wanted())
    assert len(whole.payload) == 2 * wire.MOST_PAYLOADS


def test_only_workers_may_send_much(site: Site, store: SqlStore) -> None:
    """Who else sends it takes no place among those who may: it is refused before any of it is read."""
    large = b"x" * (3 << 20)
    ann = keys.create(Caller(store, "ada"), "ann", role="operator").key
    answer = site.client.post("/api/v1/worker/settle", content=large, headers=JSON)
    problem(answer, 401, "Unauthenticated")
    lines = [
        "POST /api/v1/worker/settle HTTP/1.1", f"host: {site.url.removeprefix('http://')}",
        f"authorization: Bearer {ann}", "content-type: application/json", f"content-length: {len(large)}", "", "",
    ]  # fmt: skip
    refused = site.raw("\r\n".join(lines).encode()).problem
    assert (refused["status"], refused["code"]) == (403, "NotPermitted")
    (line,) = store.audit(None, verb="workers.refuse", limit=10)
    assert (line.by, line.key) == ("ann", id_in(ann))
    assert "needs the role worker" in line.detail["reason"]
