"""Builds the running parts from settings; the one file that sees every room."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from unstuck.model.errors import InvalidInput, InvalidSettings, StoreError
from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.sealing import NO_SEALER, Sealer
from unstuck.signing import NO_KEYS, SigningKeys

if TYPE_CHECKING:
    from datetime import datetime

    from unstuck.chance import Chance
    from unstuck.client.readers import ServerReaders
    from unstuck.client.transport import Transport
    from unstuck.client.worker_port import RemoteWorkerPort
    from unstuck.clock import Clock
    from unstuck.deliver.sender import Sender
    from unstuck.janitor.janitor import Duty, Janitor
    from unstuck.model.alerts import RuleFindings, RuleLook
    from unstuck.model.ends import EndedJob
    from unstuck.model.job import NewJob, WorkerRecord
    from unstuck.model.policy import Policy
    from unstuck.observe.recorder import Recorder
    from unstuck.operations.keyring import Keyring
    from unstuck.operations.table import Caller
    from unstuck.server.api import Api
    from unstuck.server.run import HttpServer
    from unstuck.server.who import Auth
    from unstuck.store.drivers.leaps import Witness
    from unstuck.store.port import FeedEvent, ScheduleRecord, Store, WorkerPort
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
    #: Seals and opens the secrets of webhooks.
    sealer: Sealer = NO_SEALER


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
        sender = _sender(options.database, options.times, options.sealer)
        beside.append(sender)
        wake = sender.wake
    supervisor = Supervisor(_life_of(options, readiness, wake), options.times, beside)
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
            sign=_child_signer(keys, store, clock),
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


def _life_of(
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

    base = Caller(
        store,
        "http",
        times=options.times,
        database=options.shown,
        signing=signing,
        sealer=lambda: options.sealer,
    )
    sender = _sender(options.database, options.times, options.sealer)
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

    janitor = build_janitor(keeping, options.times, signing=signing, wake=sender.wake)
    return HttpServer(api, janitor, clock, options.times, close, beside=[sender])


def _sender(database: str, times: Times, sealer: Sealer) -> Sender:
    """What sends to webhooks, on a store of its own: a receiver that keeps it waiting keeps nobody else."""
    from unstuck.chance import SystemChance
    from unstuck.clock import MachineClock
    from unstuck.deliver.dialler import WebhookDialler
    from unstuck.deliver.sender import Sender

    clock = MachineClock()
    store = open_store(database, times, application="unstuck deliver")
    return Sender(store, WebhookDialler(clock=clock), sealer, clock, SystemChance())


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
    from unstuck.server.hooks import HookDoor
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
    rates = Rates(rate, clock)
    return Api(
        door,
        hub,
        metrics,
        work=WorkDesk(work, clock, signing),
        control=ControlDesk(work, clock),
        rates=rates,
        hooks=HookDoor(base, clock, rates),
        clock=clock,
        is_ready=lambda: _is_ready(base().store),
        look_again=lambda idents: keyring().look_again(idents),
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
    wake: Callable[[], None] = lambda: None,
) -> Janitor:
    """The duties that every worker and server does; `me` knows its host, so it may look after its neighbours. `wake`:
    called when there is something to send to webhooks."""
    from unstuck import machine
    from unstuck.chance import SystemChance
    from unstuck.clock import MachineClock
    from unstuck.janitor.alerts import AlertsDuty
    from unstuck.janitor.body_marks import BodyMarksDuty
    from unstuck.janitor.bulks import BulksDuty
    from unstuck.janitor.children import ChildrenDuty
    from unstuck.janitor.ends import EndsDuty
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
    from unstuck.janitor.webhooks import WebhooksDuty
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
        EndsDuty(store, times, _jobs_of_ends(store, times, signing), SystemChance().nonce()),
        OffersDuty(store, times),
        WebhooksDuty(store, times, lambda: _bodies(store), wake),
    ]
    keeping += [BodyMarksDuty(store, times), *retention(store, times, clock)]
    keeping += [
        GuardDuty(store, times),
        LimitsDuty(store, times),
        OrphansDuty(store, times),
        SeriesDuty(store, times),
        EnqueuedDuty(store, times),
    ]
    told_by = f"server on {machine.host()}" if me is None else me.name
    keeping.append(AlertsDuty(store, times, alert_looks(store, times), told_by))
    chance, idle = SystemChance(), store.idle_duties
    return Janitor(store.probe, times, clock, chance, sweeps=sweeps, keeping=keeping, idle_duties=idle)


def _tick_jobs(
    store: Store, times: Times, signing: Callable[[], SigningKeys]
) -> Callable[[ScheduleRecord, datetime], NewJob]:
    """The job of a tick, for the janitor, which must not import `intake`; signed, if there is a key for what the
    engine makes."""
    from unstuck.intake.schedules import job_of
    from unstuck.intake.signing import SigningDoor

    def make(schedule: ScheduleRecord, tick: datetime) -> NewJob:
        job = job_of(store, schedule.tenant, schedule.name, schedule.spec, tick, times.max_timeout)
        return SigningDoor(signing(), store).made(job, "schedule")

    return make


def _bodies(store: Store) -> Callable[[FeedEvent], str]:
    """How an event is written for webhooks, for the janitor, which must not import `views`. What is hidden of a job's
    data from others than admins is hidden there: who reads it in the end is not known."""
    from unstuck.model.webhooks import body_of
    from unstuck.views import plain, rfc3339
    from unstuck.views.flow import FeedEventView

    hidden = store.redactions()

    def body(event: FeedEvent) -> str:
        return body_of(event.kind, rfc3339(event.at) or "", plain(FeedEventView.of(event, hidden)))

    return body


def _jobs_of_ends(
    store: Store, times: Times, signing: Callable[[], SigningKeys]
) -> Callable[[str, EndedJob], NewJob]:
    """The job of what follows an end, for the janitor; signed, if there is a key for what the engine makes."""
    from unstuck.intake.ends import job_of
    from unstuck.intake.signing import SigningDoor

    def make(follower: str, ended: EndedJob) -> NewJob:
        job = job_of(store, follower, ended, times.max_timeout)
        return SigningDoor(signing(), store).made(job, "end")

    return make


def _child_signer(keys: HeldKeys, store: Store, clock: Clock) -> Callable[[NewJob], NewJob]:
    """The same of a child, for the worker."""
    from unstuck.intake.signing import SigningDoor

    return lambda job: SigningDoor(keys.at(clock.boot()), store).made(job, "parent")


def alert_looks(store: Store, times: Times) -> dict[str, Callable[[RuleLook], RuleFindings]]:
    """How alert rules look, for the janitor, which must not import `observe`."""
    from unstuck.observe.conditions import LOOKS, Condition, ConditionLook

    def by(condition: Condition) -> Callable[[RuleLook], RuleFindings]:
        return lambda asked: condition(ConditionLook.at(asked, store, times))

    return {rule: by(condition) for rule, condition in LOOKS.items()}
