"""A worker: what it is started with, and what it is made of."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from unstuck.assembly.janitor import build_janitor
from unstuck.assembly.store import open_store
from unstuck.assembly.webhooks import webhook_sender
from unstuck.model.errors import InvalidInput, InvalidSettings, StoreError
from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.sealing import NO_SEALER, Sealer
from unstuck.signing import SigningKeys

if TYPE_CHECKING:
    from unstuck.chance import Chance
    from unstuck.client.readers import ServerReaders
    from unstuck.client.transport import Transport
    from unstuck.client.worker_port import RemoteWorkerPort
    from unstuck.clock import Clock
    from unstuck.model.job import NewJob, WorkerRecord
    from unstuck.model.policy import Policy
    from unstuck.store.port import Store, WorkerPort
    from unstuck.worker.held_keys import HeldKeys
    from unstuck.worker.incarnation import Incarnation
    from unstuck.worker.parts import ClaimerNeeds, ClaimerPort, Duties
    from unstuck.worker.readiness import Readiness
    from unstuck.worker.shutdown import Shutdown
    from unstuck.worker.supervisor import Beside, Supervisor
    from unstuck.worker.zygote_process import ZygoteProcess


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker is started with. No queues: every queue that its workflows name. `concurrency` is the whole
    worker's number of slots, shared out among its processes. A process above `max_memory` is replaced, one above
    `memory_limit` is killed. `ready_file` exists exactly while the worker takes jobs."""

    app: str
    database: str
    queues: tuple[str, ...] = ()
    concurrency: int = 10
    processes: int = 1
    max_jobs_per_process: int | None = None
    max_memory: int | None = None
    memory_limit: int | None = None
    ready_file: str | None = None
    #: Where it answers probes and Prometheus; None: nowhere.
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    name: str | None = None
    times: Times = field(default_factory=Times)
    fork: bool | None = None
    #: What jobs get that say nothing themselves; None: what the app's own settings have.
    policy: Policy | None = None
    #: What processes say past everybody is passed on as JSON too.
    log_json: bool = False
    #: By which it verifies what it claims, and signs what its jobs spawn. `signing_file`: where they were read from;
    #: read again when it changes.
    signing: SigningKeys = field(default_factory=SigningKeys)
    signing_file: str | None = None
    #: Opens the secrets of webhooks.
    sealer: Sealer = NO_SEALER
    #: The address of a server: then nothing is asked of a database. `key`: the secret by which it is asked; `ca`: a
    #: file of certificates to trust; `allow_http`: whoever is on the way may read the key.
    server: str | None = None
    key: str | None = field(default=None, repr=False)
    ca: str | None = None
    allow_http: bool = False
    #: Has imported the app already, to be asked for its settings; of the first incarnation.
    zygote: ZygoteProcess | None = field(default=None, repr=False, compare=False)


def build_worker(options: WorkerOptions, *, prepare: bool = True) -> Supervisor:
    """A worker that is ready to run; its `run()` does everything else. Refuses settings that cannot hold. `prepare`:
    the database, unless the caller sees to it."""
    _check(options)
    if prepare and options.server is None:
        _prepare(options)
    from unstuck.janitor.budget import nobody_asks
    from unstuck.telemetry import emit
    from unstuck.worker.notify import Notifier
    from unstuck.worker.readiness import Readiness
    from unstuck.worker.secrecy import hide_memory
    from unstuck.worker.supervisor import Supervisor

    if (options.signing or options.sealer) and not hide_memory():
        emit("memory_not_hidden", level=logging.WARNING, why="this system cannot close it to other processes")
    # The service manager and the probe know one worker, however many lives it has.
    readiness = Readiness(options.ready_file, Notifier.of(os.environ, os.getpid()))
    beside: list[Beside] = []
    wake: Callable[[], None] = nobody_asks
    if options.server is None:  # else its server sends
        sender = webhook_sender(options.database, options.times, options.sealer)
        beside.append(sender)
        wake = sender.wake
    supervisor = Supervisor(life_of(options, readiness, wake), options.times, beside)
    if options.health_port is not None:
        beside += _health_parts(options, readiness, supervisor)
    return supervisor


def _health_parts(options: WorkerOptions, readiness: Readiness, supervisor: Supervisor) -> list[Beside]:
    """What counts this worker's doings, the port that tells them, and the keys by which it is asked from afar."""
    from unstuck.clock import MachineClock
    from unstuck.model.metrics import Measures
    from unstuck.observe import exposition
    from unstuck.observe.recorder import Recorder
    from unstuck.operations.keyring import PlatformReaders
    from unstuck.worker.health_port import HealthAnswers, HealthPort

    clock, recorder = MachineClock(), Recorder(of_worker=True)
    readers: PlatformReaders | ServerReaders
    if options.server is not None:
        _transport(options, options.key)  # what it needs may not be installed, or the address be wrong
        from unstuck.client.readers import ServerReaders

        readers = ServerReaders(partial(_transport, options), clock)
    else:
        readers = PlatformReaders(open_store(options.database, options.times, application="unstuck health"), clock)

    def measures() -> Measures:
        found = recorder.measures()
        found.put("unstuck_worker_ready", float(readiness.is_ready))
        found.put("unstuck_worker_held", supervisor.held)
        found.put("unstuck_worker_slots", options.concurrency)
        return found

    def metrics() -> tuple[str, str]:
        return exposition.text_of(measures()), exposition.MEDIA_TYPE

    answers = HealthAnswers(lambda: readiness.is_ready, metrics, readers.refusal)
    return [recorder, readers, HealthPort(options.health_host, options.health_port or 0, answers, clock)]


def start_zygote(app: str, environ: Mapping[str, str], server: str | None, key: str | None) -> ZygoteProcess:
    """Of a worker whose settings are not known yet."""
    from unstuck.worker.zygote_process import ZygoteProcess

    return ZygoteProcess(app, _new_incarnation(server, key), environ)


def _new_incarnation(server: str | None, key: str | None) -> str:
    from unstuck.chance import SystemChance

    nonce = SystemChance().nonce()
    if server is None:
        return nonce
    from unstuck.model.keys import id_in
    from unstuck.model.offers import remote_incarnation

    return remote_incarnation(None if key is None else id_in(key), nonce)


def import_parts() -> None:
    """What a worker is made of, which takes longest to import; for who has to wait for something else anyway. What
    cannot be imported is told by who needs it."""
    with suppress(ImportError):
        import unstuck.janitor.janitor
        import unstuck.store.drivers.postgres
        import unstuck.store.sql_store
        import unstuck.worker.supervisor  # noqa: F401


def _prepare(options: WorkerOptions) -> None:
    """What cannot be used is told at once; what is not there yet, or busy, the worker waits for, and says so."""
    from unstuck.model.errors import SchemaMismatch

    store = open_store(options.database, options.times)
    try:
        store.prepare_schema()
    except SchemaMismatch:
        raise
    except StoreError:
        pass
    finally:
        store.close()


def _check(options: WorkerOptions) -> None:
    from unstuck.config import process_problems

    problems = options.times.problems() + process_problems(options)
    if problems:
        raise InvalidSettings(problems)
    if options.server is not None and options.signing:
        raise InvalidInput(
            "a worker of a server verifies and signs nothing itself, its server does: set signing_keys and "
            "require_signature there, and not here"
        )
    if ":" not in options.app:
        raise InvalidInput(f"app {options.app!r} must name a module and an attribute, like shop.jobs:app")


@dataclass(frozen=True, slots=True)
class _Ties:
    """How one incarnation asks: the database itself, or a server."""

    store: WorkerPort
    beat_store: WorkerPort
    last_store: Callable[[], WorkerPort]
    claimer: Callable[[ClaimerNeeds], ClaimerPort]
    duties: Callable[[WorkerRecord], Duties]
    prepare: Callable[[], object]
    sign: Callable[[NewJob], NewJob]
    keys: HeldKeys
    when_refused: Callable[[Callable[[], None]], None] = lambda wake: None


def _ties_of(
    options: WorkerOptions, clock: Clock, chance: Chance, wake: Callable[[], None]
) -> Callable[[str, HeldKeys], _Ties]:
    """Makes new ones for every incarnation."""
    if options.server:
        return _ties_to_server(options, clock, chance)
    return _ties_to_database(options, clock, chance, wake)


def _ties_to_database(
    options: WorkerOptions, clock: Clock, chance: Chance, wake: Callable[[], None]
) -> Callable[[str, HeldKeys], _Ties]:
    from unstuck.store.drivers.leaps import Witness
    from unstuck.worker.claim import Claimer
    from unstuck.worker.verifier import Verifier

    times, witness = options.times, Witness()

    def tie(incarnation: str, keys: HeldKeys) -> _Ties:
        name = incarnation[:8]
        opened = partial(open_store, options.database, times)
        store = opened(application=f"unstuck {name}", witness=witness)

        def claimer(needs: ClaimerNeeds) -> Claimer:
            return Claimer(
                store,
                needs.worker,
                needs.ledger,
                needs.pace,
                times,
                clock,
                chance,
                name=needs.name,
                before_first=needs.before_first,
                landed=needs.landed,
                verifier=Verifier(store, needs.worker, needs.ledger, keys, clock, report=needs.report),
            )

        return _Ties(
            store,
            beat_store=opened(application=f"unstuck beat {name}", witness=witness),
            last_store=lambda: opened(application=f"unstuck end {name}"),
            claimer=claimer,
            duties=lambda me: build_janitor(store, times, me, lambda: keys.at(clock.boot()), wake),
            prepare=store.prepare_schema,
            sign=child_signer(keys, store, clock),
            keys=keys,
        )

    return tie


def _ties_to_server(options: WorkerOptions, clock: Clock, chance: Chance) -> Callable[[str, HeldKeys], _Ties]:
    from unstuck.worker.flow_calls import unsigned
    from unstuck.worker.held_keys import KeysOfServer
    from unstuck.worker.remote_claim import NoDuties, RemoteClaimer

    times = options.times

    def tie(incarnation: str, _: HeldKeys) -> _Ties:
        port = server_port(options, incarnation)
        return _Ties(
            port,
            beat_store=port,
            last_store=lambda: port,
            claimer=lambda needs: RemoteClaimer(port, needs, times, clock, chance),
            duties=lambda me: NoDuties(times.sweep),
            prepare=port.hello,
            sign=unsigned,
            keys=KeysOfServer(options.server or "", lambda: port.verifies),
            when_refused=port.when_refused,
        )

    return tie


def child_signer(keys: HeldKeys, store: Store, clock: Clock) -> Callable[[NewJob], NewJob]:
    """Signs what its jobs spawn, if there is a key for what the engine makes."""
    from unstuck.intake.signing import SigningDoor

    return lambda job: SigningDoor(keys.at(clock.boot()), store).made(job, "parent")


def _transport(options: WorkerOptions, secret: str | None) -> Transport:
    try:
        from unstuck.client.transport import Transport
    except ImportError as missing:
        raise InvalidInput(f"a worker of a server needs `pip install unstuck[client]`: {missing}") from None
    from unstuck.client.address import ApiKey, check_secret_travels_safely, server_address

    address = server_address(options.server or "")
    if secret is not None:
        check_secret_travels_safely(address, allow_http=options.allow_http)
    return Transport(address, None if secret is None else ApiKey(secret, "key=…"), options.ca)


def server_port(options: WorkerOptions, incarnation: str = "") -> RemoteWorkerPort:
    """How a worker asks its server. Nothing is sent before its first call."""
    transport = _transport(options, options.key)
    from unstuck.client.worker_port import RemoteWorkerPort
    from unstuck.clock import MachineClock

    return RemoteWorkerPort(
        transport,
        transport.address,
        incarnation,
        patience=options.times.store_call + 2 * options.times.slack,
        clock=MachineClock(),
    )


def life_of(
    options: WorkerOptions, readiness: Readiness, wake: Callable[[], None] = lambda: None
) -> Callable[[Shutdown], Incarnation]:
    """Begins an incarnation: everything in it is new, so that nothing of a lost one lives on."""
    from unstuck.chance import SystemChance
    from unstuck.clock import MachineClock
    from unstuck.worker.fleet import Fleet
    from unstuck.worker.held_keys import HeldKeys
    from unstuck.worker.incarnation import Incarnation
    from unstuck.worker.parts import WorkerParts
    from unstuck.worker.placing import Seats
    from unstuck.worker.view import WearLimits

    times, clock, chance = options.times, MachineClock(), SystemChance()
    tie = _ties_of(options, clock, chance, wake)
    # They outlive an incarnation: what their file revoked must not be forgotten with it.
    keys = HeldKeys(options.signing, options.signing_file, every=times.beat)
    # A process without a slot would only cost memory.
    seats = Seats(slots=options.concurrency, processes=min(options.processes, options.concurrency))

    early = [] if options.zygote is None else [options.zygote]

    def begin(shutdown: Shutdown) -> Incarnation:
        zygote = early.pop() if early else None
        incarnation = _new_incarnation(options.server, options.key) if zygote is None else zygote.incarnation
        ties = tie(incarnation, keys)
        fleet = Fleet(
            options.app,
            incarnation=incarnation,
            slots=-(-seats.slots // seats.processes),
            pulse=times.pulse,
            kill_grace=times.kill_grace,
            import_limit=times.import_limit,
            max_memory=options.max_memory,
            fork=options.fork,
            policy=options.policy,
            max_timeout=times.max_timeout,
            database=None if options.server else options.database,
            log_json=options.log_json,
            clock=clock,
            zygote=zygote,
        )
        parts = WorkerParts(
            incarnation=incarnation,
            store=ties.store,
            beat_store=ties.beat_store,
            last_store=ties.last_store,
            claimer=ties.claimer,
            duties=ties.duties,
            prepare=ties.prepare,
            fleet=fleet,
            clock=clock,
            chance=chance,
            times=times,
            seats=seats,
            limits=WearLimits(options.max_jobs_per_process, options.max_memory, options.memory_limit),
            queues=options.queues,
            name=options.name,
            readiness=readiness,
            keys=ties.keys,
            sign=ties.sign,
            when_refused=ties.when_refused,
        )
        return Incarnation(parts, shutdown)

    return begin
