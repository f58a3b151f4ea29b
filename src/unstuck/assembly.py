"""Builds the running parts from settings; the one file that sees every room."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from unstuck.model.errors import InvalidInput, InvalidSettings, StoreError
from unstuck.model.times import Times
from unstuck.signing import NO_KEYS, SigningKeys

if TYPE_CHECKING:
    from datetime import datetime

    from unstuck.chance import Chance
    from unstuck.client.worker_port import RemoteWorkerPort
    from unstuck.clock import Clock
    from unstuck.janitor.janitor import Duty, Janitor
    from unstuck.model.job import NewJob, WorkerRecord
    from unstuck.model.policy import Policy
    from unstuck.observe.recorder import Recorder
    from unstuck.operations.keyring import Keyring
    from unstuck.operations.table import Caller
    from unstuck.server.api import Api
    from unstuck.server.run import HttpServer
    from unstuck.server.who import Auth
    from unstuck.store.drivers.leaps import Witness
    from unstuck.store.port import ScheduleRecord, Store, WorkerPort
    from unstuck.worker.held_keys import HeldKeys
    from unstuck.worker.incarnation import Incarnation
    from unstuck.worker.parts import ClaimerNeeds, ClaimerPort, Duties
    from unstuck.worker.readiness import Readiness
    from unstuck.worker.shutdown import Shutdown
    from unstuck.worker.supervisor import Beside, Supervisor


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
    #: The address of a server: then nothing is asked of a database. `key`: the secret by which it is asked; `ca`: a
    #: file of certificates to trust; `allow_http`: whoever is on the way may read the key.
    server: str | None = None
    key: str | None = field(default=None, repr=False)
    ca: str | None = None
    allow_http: bool = False


#: Requests a second of one key, on average.
RATE = 1000.0


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What a server is started with."""

    database: str
    host: str = "127.0.0.1"
    port: int = 8420
    rate: float = RATE
    times: Times = field(default_factory=Times)
    #: The database as people may see it.
    shown: str = "the database"
    #: Where browsers find it: "https://jobs.example"; None: where they say.
    public_url: str | None = None
    #: The keys by which it verifies what is submitted, and what it hands out to workers at a distance, for whose
    #: children it signs; of others' submits it signs none. `signing_file`: as of a worker.
    signing: SigningKeys = NO_KEYS
    signing_file: str | None = None


def open_store(
    url: str, times: Times, *, migrate: bool = False, application: str = "unstuck", witness: Witness | None = None
) -> Store:
    """A store on this database. Nothing is connected before its first call, unless it is to migrate."""
    from unstuck.store.drivers.connect import open_database
    from unstuck.store.drivers.leaps import Witness
    from unstuck.store.sql_store import SqlStore

    witness = witness or Witness()
    database = open_database(url, store_call=times.store_call, application=application, witness=witness)
    store = SqlStore(database, key_retention=times.key_retention)
    if migrate:
        store.migrate()
    return store


def build_worker(options: WorkerOptions, *, prepare: bool = True) -> Supervisor:
    """A worker that is ready to run; its `run()` does everything else. Refuses settings that cannot hold. `prepare`:
    the database, unless the caller sees to it."""
    _check(options)
    if prepare and options.server is None:
        _prepare(options)
    from unstuck.telemetry import emit
    from unstuck.worker.notify import Notifier
    from unstuck.worker.readiness import Readiness
    from unstuck.worker.secrecy import hide_memory
    from unstuck.worker.supervisor import Supervisor

    if options.signing and not hide_memory():
        emit("memory_not_hidden", level=logging.WARNING, why="this system cannot close it to other processes")
    # The service manager and the probe know one worker, however many lives it has.
    readiness = Readiness(options.ready_file, Notifier.of(os.environ, os.getpid()))
    beside: list[Beside] = []
    supervisor = Supervisor(_life_of(options, readiness), options.times, beside)
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
    from unstuck.model.errors import SchemaMismatch, StoreError

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
    if options.server is not None and options.health_port is not None:
        raise InvalidInput(
            "a worker of a server has no health port yet: leave --health-port out, and use --ready-file"
        )
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

    incarnation: str
    store: WorkerPort
    beat_store: WorkerPort
    last_store: Callable[[], WorkerPort]
    claimer: Callable[[ClaimerNeeds], ClaimerPort]
    duties: Callable[[WorkerRecord], Duties]
    prepare: Callable[[], object]
    sign: Callable[[NewJob], NewJob]


def _ties_of(options: WorkerOptions, clock: Clock, chance: Chance) -> Callable[[HeldKeys], _Ties]:
    """Makes new ones for every incarnation."""
    return _ties_to_server(options, clock, chance) if options.server else _ties_to_database(options, clock, chance)


def _ties_to_database(options: WorkerOptions, clock: Clock, chance: Chance) -> Callable[[HeldKeys], _Ties]:
    from unstuck.store.drivers.leaps import Witness
    from unstuck.worker.claim import Claimer
    from unstuck.worker.held_keys import signer
    from unstuck.worker.verifier import Verifier

    times, witness = options.times, Witness()

    def tie(keys: HeldKeys) -> _Ties:
        incarnation = chance.nonce()
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
            incarnation,
            store,
            beat_store=opened(application=f"unstuck beat {name}", witness=witness),
            last_store=lambda: opened(application=f"unstuck end {name}"),
            claimer=claimer,
            duties=lambda me: build_janitor(store, times, me, lambda: keys.at(clock.boot())),
            prepare=store.prepare_schema,
            sign=signer(keys, store, clock),
        )

    return tie


def _ties_to_server(options: WorkerOptions, clock: Clock, chance: Chance) -> Callable[[HeldKeys], _Ties]:
    from unstuck.model.keys import id_in
    from unstuck.model.offers import remote_incarnation
    from unstuck.worker.held_keys import unsigned
    from unstuck.worker.remote_claim import NoDuties, RemoteClaimer

    times, key = options.times, options.key

    def tie(_: HeldKeys) -> _Ties:
        incarnation = remote_incarnation(None if key is None else id_in(key), chance.nonce())
        port = server_port(options, incarnation)
        return _Ties(
            incarnation,
            port,
            beat_store=port,
            last_store=lambda: port,
            claimer=lambda needs: RemoteClaimer(port, needs, times, clock, chance),
            duties=lambda me: NoDuties(times.sweep),
            prepare=port.hello,
            sign=unsigned,
        )

    return tie


def server_port(options: WorkerOptions, incarnation: str = "") -> RemoteWorkerPort:
    """How a worker asks its server. Nothing is sent before its first call."""
    try:
        from unstuck.client.transport import Transport
    except ImportError as missing:
        raise InvalidInput(f"a worker of a server needs `pip install unstuck[client]`: {missing}") from None
    from unstuck.client.address import ApiKey, check_secret_travels_safely, server_address
    from unstuck.client.worker_port import RemoteWorkerPort
    from unstuck.clock import MachineClock

    address = server_address(options.server or "")
    if options.key is not None:
        check_secret_travels_safely(address, allow_http=options.allow_http)
    key = None if options.key is None else ApiKey(options.key, "key=…")
    transport = Transport(address, key, options.ca)
    return RemoteWorkerPort(
        transport,
        address,
        incarnation,
        patience=options.times.store_call + 2 * options.times.slack,
        clock=MachineClock(),
    )


def _life_of(options: WorkerOptions, readiness: Readiness) -> Callable[[Shutdown], Incarnation]:
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
    tie = _ties_of(options, clock, chance)
    # They outlive an incarnation: what their file revoked must not be forgotten with it.
    keys = HeldKeys(options.signing, options.signing_file, every=times.beat)
    # A process without a slot would only cost memory.
    seats = Seats(slots=options.concurrency, processes=min(options.processes, options.concurrency))

    def begin(shutdown: Shutdown) -> Incarnation:
        ties = tie(keys)
        fleet = Fleet(
            options.app,
            incarnation=ties.incarnation,
            slots=-(-seats.slots // seats.processes),
            pulse=times.pulse,
            kill_grace=times.kill_grace,
            import_limit=times.import_limit,
            max_memory=options.max_memory,
            fork=options.fork,
            policy=options.policy,
            max_timeout=times.max_timeout,
            log_json=options.log_json,
            clock=clock,
        )
        parts = WorkerParts(
            incarnation=ties.incarnation,
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
            keys=keys,
            sign=ties.sign,
        )
        return Incarnation(parts, shutdown)

    return begin


def build_server(options: ServerOptions) -> HttpServer:
    """A server that is ready to run. Elsewhere than on this machine it listens only if there is a key."""
    try:
        from unstuck.server.run import HttpServer
    except ImportError as missing:
        raise InvalidInput(f"the server needs `pip install unstuck[server]`: {missing}") from None
    from unstuck.clock import MachineClock
    from unstuck.observe.recorder import Recorder
    from unstuck.operations.keyring import Keyring
    from unstuck.operations.table import Caller
    from unstuck.server.browsers import public_origin
    from unstuck.server.local import is_loopback
    from unstuck.store.drivers.leaps import Witness
    from unstuck.worker.held_keys import HeldKeys

    clock, public, witness = MachineClock(), public_origin(options.public_url), Witness()
    opened = partial(open_store, options.database, options.times, witness=witness)
    store = opened(application="unstuck server")
    # A store of its own: requests that hold every connection must not keep it from recovering jobs.
    keeping = opened(application="unstuck server janitor")
    # And those who stay must hear what happens while others ask much.
    feeding = opened(application="unstuck server feed")
    # And workers at a distance must get their jobs; hints at work are heard by one listener of a store.
    working = opened(application="unstuck server work")
    try:
        with suppress(
            StoreError
        ):  # where the database is away it begins all the same, and believes what it sees first
            store.recall_time()
        if not is_loopback(options.host) and not store.has_keys():
            raise InvalidInput(
                f"without a key the server listens on this machine only, not on {options.host}: whoever reached it "
                "could do anything; make a key first: unstuck keys create NAME --role ROLE"
            )
    except BaseException:
        for each in (store, keeping, feeding, working):
            each.close()
        raise
    keyring = Keyring(store, clock)
    held = HeldKeys(options.signing, options.signing_file, every=options.times.beat)

    def signing(at_once: bool = False) -> SigningKeys:
        return held.at(clock.boot(), at_once=at_once)

    base = Caller(store, "http", times=options.times, database=options.shown, signing=signing)
    local = base if is_loopback(options.host) else None
    recorder = Recorder(of_worker=False)
    api = _api(
        lambda: base,
        lambda: keyring,
        clock,
        local=local,
        rate=options.rate,
        feed=lambda: feeding,
        work=lambda: working,
        signing=signing,
        public=public,
        recorder=recorder,
    )
    recorder.start()

    def close() -> None:
        recorder.close()
        keyring.close()
        for each in (store, keeping, feeding, working):
            each.close()

    return HttpServer(api, build_janitor(keeping, options.times, signing=signing), clock, options.times, close)


def build_asgi(base: Callable[[], Caller], auth: Auth | None) -> Api:
    """The same API for a program that runs a server of its own: who asks shows a key, or is known to `auth`. Nothing
    is opened before the first request; `base` says on which store, in each process of the program its own."""
    from unstuck.clock import MachineClock
    from unstuck.operations.keyring import Keyring

    clock = MachineClock()
    known: dict[Store, Keyring] = {}
    lock = threading.Lock()

    def asked() -> Caller:
        """Who asks over HTTP is not the program: nothing is signed for it."""
        return replace(base(), signs=False)

    def keyring() -> Keyring:
        store = base().store
        with lock:  # requests come on many threads
            if store not in known:
                known.clear()
                known[store] = Keyring(store, clock)
            return known[store]

    return _api(
        asked,
        keyring,
        clock,
        local=None,
        rate=RATE,
        feed=lambda: base().store,
        work=lambda: base().store,
        signing=lambda _: base().signing(),
        auth=auth,
    )


def _api(
    base: Callable[[], Caller],
    keyring: Callable[[], Keyring],
    clock: Clock,
    *,
    local: Caller | None,
    rate: float,
    feed: Callable[[], Store],
    work: Callable[[], Store],
    signing: Callable[[bool], SigningKeys],
    auth: Auth | None = None,
    public: str | None = None,
    recorder: Recorder | None = None,
) -> Api:
    """`feed`: the store whose feed is told to those who stay; `work`: where jobs are claimed for workers at a
    distance."""
    from unstuck.operations.browser_sessions import BrowserSessions
    from unstuck.operations.tickets import Tickets
    from unstuck.server.api import Api
    from unstuck.server.browsers import Browsers
    from unstuck.server.control_desk import ControlDesk
    from unstuck.server.door import HttpDoor
    from unstuck.server.hub import Hub
    from unstuck.server.metrics import ServerMetrics
    from unstuck.server.rates import Rates
    from unstuck.server.work_desk import WorkDesk

    def by_key(key: str, address: str) -> Caller:
        return keyring().authenticate(key, address).caller(base())

    known: dict[Keyring, BrowserSessions] = {}
    lock = threading.Lock()

    def sessions() -> BrowserSessions:
        ring = keyring()
        with lock:  # requests come on many threads
            if ring not in known:
                known.clear()
                known[ring] = BrowserSessions(base().store, ring, clock)
            return known[ring]

    # Where a program says who asks, it knows its browsers by itself.
    browsers = Browsers(sessions, public) if auth is None else None
    door = HttpDoor(
        by_key,
        lambda: base().store.has_keys(),
        clock,
        local=local,
        base=base,
        auth=auth,
        browsers=browsers,
        tickets=Tickets(lambda: base().store, keyring),
    )
    hub = Hub(feed, lambda: base().times.feed_retention, clock)
    metrics = ServerMetrics(clock, None if recorder is None else recorder.measures)
    return Api(
        door,
        hub,
        metrics,
        work=WorkDesk(work, clock, signing),
        control=ControlDesk(work, clock),
        rates=Rates(rate, clock),
        clock=clock,
        is_ready=lambda: _is_ready(base().store),
    )


def _is_ready(store: Store) -> bool:
    from unstuck.model.errors import StoreError

    try:
        return store.schema_version() == store.shipped_version()
    except StoreError:
        return False


def build_janitor(
    store: Store,
    times: Times,
    me: WorkerRecord | None = None,
    signing: Callable[[], SigningKeys] = lambda: NO_KEYS,
) -> Janitor:
    """The duties that every worker and server does; `me` knows its host, so it may look after its neighbours."""
    from unstuck.chance import SystemChance
    from unstuck.clock import MachineClock
    from unstuck.janitor.alerts import AlertsDuty
    from unstuck.janitor.body_marks import BodyMarksDuty
    from unstuck.janitor.bulks import BulksDuty
    from unstuck.janitor.children import ChildrenDuty
    from unstuck.janitor.guard import GuardDuty
    from unstuck.janitor.inbox import InboxDuty
    from unstuck.janitor.janitor import Janitor
    from unstuck.janitor.limits import LimitsDuty
    from unstuck.janitor.neighbours import NeighboursDuty
    from unstuck.janitor.offers import OffersDuty
    from unstuck.janitor.orphans import OrphansDuty
    from unstuck.janitor.overdue import OverdueDuty
    from unstuck.janitor.pauses import PausesDuty
    from unstuck.janitor.retention import retention
    from unstuck.janitor.schedules import SchedulesDuty
    from unstuck.janitor.series import EnqueuedDuty, SeriesDuty
    from unstuck.janitor.timers import TimersDuty
    from unstuck.janitor.unread import UnreadDuty
    from unstuck.janitor.waits import WaitsDuty
    from unstuck.janitor.zombies import ZombiesDuty

    clock = MachineClock()
    zombies = ZombiesDuty(store, times)
    sweeps: list[Duty] = [zombies, OverdueDuty(store, times)]
    if me is not None:
        sweeps.insert(0, NeighboursDuty(store, times, me, recover=zombies.tick))
    keeping: list[Duty] = [UnreadDuty(store, times)]
    keeping += [
        TimersDuty(store, times),
        PausesDuty(store, times),
        WaitsDuty(store, times),
        InboxDuty(store, times),
        ChildrenDuty(store, times),
        BulksDuty(store, times),
        SchedulesDuty(store, times, _tick_jobs(store, times, signing)),
        OffersDuty(store, times),
    ]
    keeping += [BodyMarksDuty(store, times), *retention(store, times, clock)]
    keeping += [
        GuardDuty(store, times),
        LimitsDuty(store, times),
        OrphansDuty(store, times),
        SeriesDuty(store, times),
        EnqueuedDuty(store, times),
    ]
    keeping.append(AlertsDuty(store, times, _reasons(store, times)))
    return Janitor(store.probe, times, clock, SystemChance(), sweeps=sweeps, keeping=keeping)


def _tick_jobs(
    store: Store, times: Times, signing: Callable[[], SigningKeys]
) -> Callable[[ScheduleRecord, datetime], NewJob]:
    """The job of a tick, for the janitor, which must not import `intake`; signed, if there is a key for what the
    engine makes."""
    from unstuck.intake.schedules import job_of
    from unstuck.intake.signing import SigningDoor

    def make(schedule: ScheduleRecord, tick: datetime) -> NewJob:
        job = job_of(store, schedule.tenant, schedule.name, schedule.spec, tick, times.max_timeout)
        [signed] = SigningDoor(signing(), store).signed([job], "spawn")
        return signed

    return make


def _reasons(store: Store, times: Times) -> Callable[[str, str], tuple[str, str] | None]:
    """Why a job is not running, for the janitor, which must not import `observe`."""
    from unstuck.model.errors import UnknownJob
    from unstuck.observe.why import why

    def reason(tenant: str, job: str) -> tuple[str, str] | None:
        try:
            found = why(store, tenant, job, times)
        except UnknownJob:
            return None
        return (found.codes[0] if found.codes else "unknown", found.verdict)

    return reason
