"""Browser sessions: how long one is known, when it ends, and what a use of it writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.operations.conftest import Ask
from tests.operations.test_keyring import StillClock
from unstuck.model.errors import NotPermitted, Unauthenticated, UnknownSession
from unstuck.operations import keys, sessions
from unstuck.operations.browser_sessions import IDLE, LASTING, BrowserSessions
from unstuck.operations.keyring import FRESH, USES_EVERY, Keyring
from unstuck.operations.table import Role
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def still() -> StillClock:
    return StillClock()


@pytest.fixture
def ring(store: SqlStore, still: StillClock) -> Iterator[Keyring]:
    made = Keyring(store, still)
    yield made
    made.close()


@pytest.fixture
def browsers(store: SqlStore, ring: Keyring, still: StillClock) -> BrowserSessions:
    return BrowserSessions(store, ring, still)


def test_it_ends_when_nobody_uses_it_and_in_any_case(
    browsers: BrowserSessions, ring: Keyring, ask: Ask, clock: StoreClock, still: StillClock
) -> None:
    key = keys.create(ask(), "ci", role="reader")
    used, idle = (browsers.begin(key.id, "ci", "10.0.0.1") for _ in range(2))
    assert used.secret != idle.secret

    def pass_time(seconds: float) -> None:
        clock.advance(seconds)
        still.advance(seconds)

    for _ in range(int(LASTING // (IDLE / 2)) - 1):
        pass_time(IDLE / 2)
        assert browsers.known(used.secret).identity.key == key.id
        ring.write_uses()
    with pytest.raises(Unauthenticated):
        browsers.known(idle.secret)
    pass_time(IDLE / 2 + 1)
    with pytest.raises(Unauthenticated):
        browsers.known(used.secret)


def test_a_look_that_is_no_use_leaves_its_idle_time_alone(
    browsers: BrowserSessions, ring: Keyring, ask: Ask, clock: StoreClock, still: StillClock
) -> None:
    """Check 20: a stream that somebody left open keeps no browser logged in."""
    key = keys.create(ask(), "ci", role="reader")
    browser = browsers.begin(key.id, "ci", None)
    ring.write_uses()
    for _ in range(2):
        clock.advance(IDLE / 2 + 10)
        still.advance(IDLE / 2 + 10)
        try:
            browsers.known(browser.secret, is_use=False)
        except Unauthenticated:
            return
        ring.write_uses()
    pytest.fail("it is still logged in")


def test_what_ends_it_elsewhere_is_known_when_it_is_no_longer_fresh(
    browsers: BrowserSessions, store: SqlStore, ask: Ask, still: StillClock
) -> None:
    key = keys.create(ask(), "ci", role="reader")
    revoked, ended, left = (browsers.begin(key.id, "ci", None) for _ in range(3))
    browsers.end(left, "ci", None)
    with pytest.raises(Unauthenticated):
        browsers.known(left.secret)
    assert sessions.end(ask(), ended.number).number == ended.number
    browsers.known(ended.secret)
    still.advance(FRESH + 0.1)
    with pytest.raises(Unauthenticated):
        browsers.known(ended.secret)
    assert browsers.known(revoked.secret).identity.key == key.id
    keys.revoke(ask(), key.id)
    still.advance(FRESH + 0.1)
    with pytest.raises(Unauthenticated):
        browsers.known(revoked.secret)


def test_a_use_is_written_once_a_minute_with_its_key(
    browsers: BrowserSessions, ring: Keyring, store: SqlStore, ask: Ask, clock: StoreClock, still: StillClock
) -> None:
    key = keys.create(ask(), "ci", role="reader")
    browser = browsers.begin(key.id, "ci", None)
    ring.write_uses()
    assert keys.get(ask(), key.id).last_used_at is not None

    def idle_until() -> Any:
        return sessions.list_(ask())[0].idle_until

    first = idle_until()
    clock.advance(USES_EVERY / 2)
    still.advance(USES_EVERY / 2)
    browsers.known(browser.secret)
    ring.write_uses()
    assert idle_until() == first
    clock.advance(USES_EVERY)
    still.advance(USES_EVERY)
    browsers.known(browser.secret)
    ring.write_uses()
    assert idle_until() > first


def test_admins_end_sessions_of_roles_that_they_have(browsers: BrowserSessions, ask: Ask) -> None:
    """Check 3."""
    key = keys.create(ask(tenant="acme"), "remote", role="worker")
    number = browsers.begin(key.id, "remote", None).number
    admin = ask(tenant="acme", role=Role.TENANT_ADMIN, bound="acme")
    with pytest.raises(NotPermitted):
        sessions.end(admin, number)
    with pytest.raises(UnknownSession):
        sessions.end(ask(tenant="beta", role=Role.TENANT_ADMIN, bound="beta"), number)
    assert sessions.end(ask(), number).by == "remote"
    for wrong in (number, 0, 10**30):
        with pytest.raises(UnknownSession):
            sessions.end(ask(), wrong)
