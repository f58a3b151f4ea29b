"""The keyring: whose key is this, and does it work? Asked for every request over HTTP.

Theory of operation. A key that was found to work is known for FRESH seconds without a question to the database, so a
revocation or an expiry takes effect within that time on every process. Every key that is not known so is looked up
once, whether it is unknown or wrong: the two take the same time and give the same answer. What is mistyped is told
by its checksum, and asks nobody. Failures are counted by address and by the id of the key; whoever has too many is
not looked at. A key that works is looked up whatever others tried under its id or from its address: nobody can lock
its owner out by guessing. That it may work is known because it has worked before; or, if this process has not seen it
yet, from the digests of all keys that work, which are read once in FRESH seconds while somebody has to wait.

That a key was used is written in the background, once a minute for each.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime
from hmac import compare_digest
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import StoreError, TooManyAttempts, Unauthenticated
from unstuck.model.keys import KeyRecord, digest, id_in
from unstuck.operations.table import INCLUDED, Caller, Role
from unstuck.records import dataclass
from unstuck.store.port import SeenKey, Store
from unstuck.telemetry import logger

#: Seconds for which a key that works is not asked about again.
FRESH: Final = 3.0
#: As many keys are remembered, and as many addresses and ids of keys that failed.
REMEMBERED: Final = 10_000
#: Seconds after which a use of the same key is written again, and between two looks at what there is to write.
USES_EVERY: Final = 60.0
WRITE_EVERY: Final = 5.0
#: So many failures at once are looked at, and one more in each of so many seconds.
FAILURES: Final = 10
FAILURES_EVERY: Final = 6.0
_NOBODY: Final = digest("")
#: Fewer are asked about one by one.
_MANY: Final = 3


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a key says that somebody is, and what it lets them ask."""

    key: str
    name: str
    tenant: str | None
    role: Role
    scopes: frozenset[str]
    queues: frozenset[str] | None
    workflows: frozenset[str] | None
    expires_at: datetime | None

    @classmethod
    def of(cls, record: KeyRecord) -> Identity | None:
        """None: its role is none that this version knows."""
        try:
            role = Role(record.role)
        except ValueError:
            return None
        within = record.within
        return cls(
            key=record.id,
            name=record.name,
            tenant=record.tenant,
            role=role,
            scopes=record.scopes,
            queues=within.queues,
            workflows=within.workflows,
            expires_at=record.expires_at,
        )

    def caller(self, base: Caller) -> Caller:
        """As operations know who asks; what else they need comes from `base`."""
        return replace(
            base,
            by=self.name,
            tenant=base.tenant if self.tenant is None else None,
            role=self.role,
            bound=self.tenant,
            queues=self.queues,
            workflows=self.workflows,
            scopes=self.scopes,
            key=self.key,
        )


@dataclass(slots=True)
class _Known:
    digest: str
    identity: Identity
    fresh_until: float
    noted_at: float


class Keyring:
    """Safe to share between threads. `close` writes what was used last."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or MachineClock()
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._throttle = Throttle(self._clock)
        self._reading = threading.Lock()
        self._digests: frozenset[str] = frozenset()
        self._read_at: float | None = None
        self._used: set[str] = set()
        self._sessions: set[str] = set()
        self._writer: threading.Thread | None = None
        self._closed = threading.Event()

    def authenticate(self, key: str, address: str = "") -> Identity:
        """Whose key it is. Unauthenticated; TooManyAttempts; StoreError if nobody can say."""
        ident, given = id_in(key), digest(key)
        now = self._clock.boot()
        known = self._recall(ident)
        has_worked = known is not None and compare_digest(known.digest, given)
        if known is not None and has_worked and now < known.fresh_until:
            self._note_use(known, now)
            return known.identity
        if not has_worked:
            self._check_failures(address, ident, given)
        known = self._look_up(ident, given)
        if known is None:
            if has_worked:
                self._forget(ident)
            self._throttle.failed(address, ident)
            raise Unauthenticated
        self._note_use(known, now)
        return known.identity

    def standing(self, ident: str) -> Identity:
        """Of a key that was shown before, by its id, as long as it works. Unauthenticated; StoreError."""
        known = self._recall(ident)
        if known is not None and self._clock.boot() < known.fresh_until:
            return known.identity
        known = self._look_up(ident, None)
        if known is None:
            self._forget(ident)
            raise Unauthenticated
        return known.identity

    def look_again(self, idents: Collection[str]) -> None:
        """One question for many keys that have worked and are not fresh any more: a thousand who wait, each with one
        of its own, would be hundreds a second. Of one that works no more nothing is said here. StoreError."""
        now = self._clock.boot()
        with self._lock:
            stale = {ident for ident in idents if ident in self._known and now >= self._known[ident].fresh_until}
        if len(stale) < _MANY:
            return
        for ident, seen in self._store.keys_of(stale).items():
            before = self._recall(ident)
            if before is not None and compare_digest(before.digest, seen.key.digest):
                self._keep(ident, seen, now)

    def close(self) -> None:
        """Nothing is authenticated any more that is written down."""
        self._closed.set()
        if self._writer is not None:
            self._writer.join(WRITE_EVERY)
        self.write_uses()

    def write_uses(self) -> None:
        """What the background does every few seconds."""
        with self._lock:
            used, self._used = self._used, set()
            sessions, self._sessions = self._sessions, set()
        try:
            if used:
                self._store.note_key_uses(used, USES_EVERY)
            if sessions:
                self._store.touch_browser_sessions(sessions)
        except StoreError:
            with self._lock:
                self._used |= used
                self._sessions |= sessions

    def note_session(self, key: str, session: str) -> None:
        """A browser session was used, told by what is stored of it, and with it its key."""
        with self._lock:
            self._used.add(key)
            self._sessions.add(session)
            self._start_writing()

    def _check_failures(self, address: str, ident: str | None, given: str) -> None:
        try:
            self._throttle.check(address, ident)
        except TooManyAttempts:
            if given not in self._working():
                raise

    def _working(self) -> frozenset[str]:
        # Who comes while they are read waits for them: by what was known before, a key that works might not.
        with self._reading:
            now = self._clock.boot()
            if self._read_at is None or now - self._read_at >= FRESH:
                self._read_at = now
                self._digests = frozenset(record.digest for record in self._store.keys(limit=REMEMBERED))
            return self._digests

    # --- what is known ------------------------------------------------------------------------------------------
    def _recall(self, ident: str | None) -> _Known | None:
        if ident is None:
            return None
        with self._lock:
            return self._known.get(ident)

    def _look_up(self, ident: str | None, given: str | None) -> _Known | None:
        """Fresh from before the question on: what is revoked while it is answered is known in time. `given`: the
        digest of what was shown; None: it was shown before."""
        if ident is None:
            return None
        asked = self._clock.boot()
        seen = self._store.key(ident) if given is None else self._store.shown_key(ident, given)
        stored = seen.key.digest if seen else _NOBODY
        is_right = given is None or compare_digest(stored, given)
        return self._keep(ident, seen, asked) if seen and is_right else None

    def _keep(self, ident: str, seen: SeenKey, asked: float) -> _Known | None:
        """None: it does not work."""
        identity = Identity.of(seen.key) if seen.key.state(seen.at) == "active" else None
        if identity is None:
            return None
        left = FRESH if seen.key.expires_at is None else (seen.key.expires_at - seen.at).total_seconds()
        return self._remember(ident, _Known(seen.key.digest, identity, asked + min(FRESH, left), 0.0))

    def _remember(self, ident: str, found: _Known) -> _Known:
        with self._lock:
            if (before := self._known.pop(ident, None)) is not None:
                found.noted_at = before.noted_at
            self._known[ident] = found
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _forget(self, ident: str | None) -> None:
        with self._lock:
            self._known.pop(ident or "", None)

    # --- when it was used ---------------------------------------------------------------------------------------
    def _note_use(self, known: _Known, now: float) -> None:
        if known.noted_at and now - known.noted_at < USES_EVERY:
            return
        with self._lock:
            known.noted_at = now
            self._used.add(known.identity.key)
            self._start_writing()

    def _start_writing(self) -> None:
        if self._writer is None and not self._closed.is_set():
            self._writer = threading.Thread(target=self._keep_writing, name="unstuck-keyring", daemon=True)
            self._writer.start()

    def _keep_writing(self) -> None:
        while not self._clock.wait(self._closed, WRITE_EVERY):
            try:
                self.write_uses()
            except Exception:
                logger.exception("the last use of some keys could not be written")


class Throttle:
    """Counts failures by address and by id of a key; of so many names only, the latest."""

    def __init__(self, clock: Clock, most: int = REMEMBERED) -> None:
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        #: Until when each has used up what it may: a failure costs FAILURES_EVERY seconds of the future.
        self._spent_until: OrderedDict[tuple[str, str], float] = OrderedDict()

    def check(self, address: str, ident: str | None) -> None:
        """TooManyAttempts for an address, or an id, with too many failures."""
        now = self._clock.boot()
        with self._lock:
            spent = max(self._spent_until.get(name, now) for name in _names(address, ident))
        wait = spent - now - (FAILURES - 1) * FAILURES_EVERY
        if wait > 0:
            raise TooManyAttempts(wait)

    def failed(self, address: str, ident: str | None) -> None:
        now = self._clock.boot()
        with self._lock:
            for name in _names(address, ident):
                self._spent_until[name] = max(self._spent_until.pop(name, now), now) + FAILURES_EVERY
            while len(self._spent_until) > self._most:
                self._spent_until.popitem(last=False)

    def __len__(self) -> int:
        return len(self._spent_until)


def _names(address: str, ident: str | None) -> Iterator[tuple[str, str]]:
    yield "address", _origin(address)
    if ident is not None:
        yield "key", ident


def _origin(address: str) -> str:
    """Who has one address of IPv6 has as many as the last 64 bits say."""
    try:
        found = ip_address(address)
    except ValueError:
        return address[:100]
    if not isinstance(found, IPv6Address):
        return address
    return str(found.ipv4_mapped or ip_network((int(found), 64), strict=False))


class PlatformReaders:
    """The keys by which a worker's port is asked from afar: of readers who may see the platform."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._keyring = Keyring(store, clock)

    def start(self) -> None:
        """There is nothing to do before somebody asks."""

    def close(self) -> None:
        self._keyring.close()
        self._store.close()

    def refusal(self, key: str, address: str) -> str | None:
        """Why not; Unauthenticated, TooManyAttempts, StoreError as `Keyring.authenticate`."""
        found = self._keyring.authenticate(key, address)
        if Role.READER not in INCLUDED[found.role]:
            return f"this needs the role {Role.READER}; the key of {found.name} is {found.role}"
        if found.tenant is not None or found.queues is not None or found.workflows is not None:
            return f"the key of {found.name} is for a part of the platform; a worker serves all of it"
        return None
