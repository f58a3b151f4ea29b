"""A server of its own, and the API inside another program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from unstuck.assembly.janitor import build_janitor
from unstuck.assembly.store import open_store
from unstuck.assembly.webhooks import webhook_sender
from unstuck.model.errors import InvalidInput, StoreError
from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.sealing import NO_SEALER, Sealer
from unstuck.signing import NO_KEYS, SigningKeys

if TYPE_CHECKING:
    from unstuck.clock import Clock
    from unstuck.observe.recorder import Recorder
    from unstuck.operations.keyring import Keyring
    from unstuck.operations.table import Caller
    from unstuck.server.api import Api
    from unstuck.server.run import HttpServer
    from unstuck.server.who import Auth
    from unstuck.store.port import Store


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
    sender = webhook_sender(options.database, options.times, options.sealer)
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
