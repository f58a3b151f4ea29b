"""API keys and browser sessions, as the store keeps them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import StoreClock
from unstuck.model.errors import KeyEnded, UnknownKey
from unstuck.model.keys import KeyRecord, NewBrowserSession, NewKey, Within, key_id
from unstuck.store.sql_store import SqlStore


def a_key(number: int = 1, **facts: Any) -> NewKey:
    base: dict[str, Any] = {"name": "ci", "digest": f"{number:064x}", "tenant": "acme", "role": "reader", "by": "ada"}
    return NewKey(id=key_id(number), **{**base, **facts})


def add(store: SqlStore, number: int = 1, **facts: Any) -> KeyRecord:
    record = store.add_key(a_key(number, **facts))
    assert record is not None
    return record


def test_a_key_comes_back_as_it_was_made(store: SqlStore, clock: StoreClock) -> None:
    within = Within(frozenset({"io", "cpu"}), frozenset({"mail"}))
    made = add(store, scopes=["act-as"], within=within, lasting=60.0)
    seen = store.key(made.id)
    assert seen is not None
    assert seen.key == made
    assert (made.name, made.tenant, made.role, made.created_by) == ("ci", "acme", "reader", "ada")
    assert (made.scopes, made.within) == (frozenset({"act-as"}), within)
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).total_seconds() == pytest.approx(60, abs=1)
    assert made.state(seen.at) == "active"
    clock.advance(61)
    later = store.key(made.id)
    assert later is not None
    assert later.key.state(later.at) == "expired"
    assert store.add_key(a_key(1, name="other")) is None, "the id is taken"
    again = store.shown_key(made.id, made.digest)
    assert again is not None
    assert again.key == made
    assert store.shown_key(made.id, "0" * 64) is None
    assert store.shown_key("zzzzzzzz", made.digest) is None
    assert store.key("zzzzzzzz") is None
    assert store.key("\x00") is None


def test_a_tenant_finds_and_lists_its_own_keys_alone(store: SqlStore, clock: StoreClock) -> None:
    ours, theirs = add(store, 1), add(store, 2, tenant="other")
    platform, short = add(store, 3, tenant=None), add(store, 4, lasting=1.0)
    assert store.key(theirs.id, "acme") is None
    assert store.key(platform.id, "acme") is None
    assert [k.id for k in store.keys("acme")] == [short.id, ours.id]
    assert [k.id for k in store.keys(None)] == [short.id, platform.id, theirs.id, ours.id]
    assert [k.id for k in store.keys(before=platform.number, limit=1)] == [theirs.id]
    clock.advance(2)
    store.revoke_key(theirs.id, "eve")
    assert [k.id for k in store.keys(None)] == [platform.id, ours.id]
    assert len(store.keys(ended=True)) == 4


def test_once_there_was_a_key_nobody_asks_without_one_any_more(store: SqlStore, clock: StoreClock) -> None:
    """Else whoever revoked the last one, or let it expire, would open the door to everybody on its machine."""
    assert not store.has_keys()
    revoked, _ = add(store, 1), add(store, 2, lasting=60.0)
    assert store.has_keys()
    store.revoke_key(revoked.id, "eve")
    clock.advance(61)
    assert store.keys(None) == []
    assert store.has_keys()


def test_a_revocation_is_kept_once_and_audited_in_its_transaction(store: SqlStore) -> None:
    made = add(store)
    first = store.revoke_key(made.id, "eve")
    again = store.revoke_key(made.id, "mallory")
    assert first is not None
    assert first == again
    assert first.revoked_by == "eve"
    assert store.revoke_key("zzzzzzzz", "eve") is None
    lines = store.audit("acme", verb="keys")
    assert [(line.verb, line.by, line.subject) for line in lines] == [
        ("keys.revoke", "eve", made.id),
        ("keys.create", "ada", made.id),
    ]
    assert made.digest not in str(lines)


def test_a_rotated_key_works_for_the_overlap_and_has_one_successor(store: SqlStore, clock: StoreClock) -> None:
    old = add(store)
    new = store.rotate_key(old.id, a_key(2, by="eve"), 60.0)
    assert new is not None
    assert new.rotated_from == old.id
    seen = store.key(old.id)
    assert seen is not None
    assert (seen.key.state(seen.at), seen.key.rotated_to) == ("active", new.id)
    with pytest.raises(KeyEnded, match=f"rotate {new.id}"):
        store.rotate_key(old.id, a_key(3), 60.0)
    clock.advance(61)
    seen = store.key(old.id)
    assert seen is not None
    assert seen.key.state(seen.at) == "expired"
    assert [line.verb for line in store.audit("acme", verb="keys")] == ["keys.rotate", "keys.create"]


def test_a_rotation_never_lengthens_a_life_nor_revives_what_ended(store: SqlStore, clock: StoreClock) -> None:
    short, revoked, expired = add(store, 1, lasting=60.0), add(store, 2), add(store, 3, lasting=1.0)
    store.rotate_key(short.id, a_key(11), 3600.0)
    seen = store.key(short.id)
    assert seen is not None
    assert seen.key.expires_at == short.expires_at
    store.revoke_key(revoked.id, "eve")
    clock.advance(2)
    for key, state in ((revoked, "revoked"), (expired, "expired")):
        with pytest.raises(KeyEnded, match=state):
            store.rotate_key(key.id, a_key(12), 60.0)
    with pytest.raises(UnknownKey):
        store.rotate_key("zzzzzzzz", a_key(13), 60.0)
    assert store.rotate_key(add(store, 4).id, a_key(4), 60.0) is None, "an id that is taken"


def test_of_many_who_rotate_or_revoke_one_key_at_once_one_wins(store: SqlStore) -> None:
    """And no key takes the place of one that was revoked before."""
    for round_ in range(10):
        won = race(store, round_, with_revoke=round_ % 2 == 1)
        assert won or round_ % 2 == 1


def race(store: SqlStore, round_: int, *, with_revoke: bool) -> list[str]:
    old = add(store, 1000 + round_)
    start = threading.Barrier(5)
    won: list[str] = []
    refused: list[str] = []

    def rotate(number: int) -> None:
        start.wait(30)
        try:
            assert store.rotate_key(old.id, a_key(number), 60.0) is not None
            won.append("rotated")
        except KeyEnded as error:
            refused.append(error.state)

    def revoke() -> None:
        start.wait(30)
        if with_revoke:
            store.revoke_key(old.id, "eve")

    numbers = range(2000 + 10 * round_, 2004 + 10 * round_)
    threads = [*(threading.Thread(target=rotate, args=(n,)) for n in numbers), threading.Thread(target=revoke)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    everybody = store.keys(ended=True, limit=1000)
    assert len(won) <= 1
    assert len(won) + len(refused) == 4
    assert len([key for key in everybody if key.rotated_from == old.id]) == len(won)
    return won


def test_last_use_is_written_at_most_once_in_a_while(store: SqlStore, clock: StoreClock) -> None:
    one, two = add(store, 1), add(store, 2)

    def used(key: KeyRecord) -> Any:
        seen = store.key(key.id)
        assert seen is not None
        return seen.key.last_used_at

    store.note_key_uses([one.id, "zzzzzzzz"], 60.0)
    first = used(one)
    assert first is not None
    assert used(two) is None
    clock.advance(30)
    store.note_key_uses([one.id, two.id], 60.0)
    assert used(one) == first
    assert used(two) is not None
    clock.advance(31)
    store.note_key_uses([one.id], 60.0)
    assert used(one) > first


# --- browser sessions -----------------------------------------------------------------------------------------------


def begin(store: SqlStore, name: str, key: KeyRecord, idle: float = 1000.0, lasting: float = 1000.0) -> int:
    return store.open_browser_session(NewBrowserSession(name, key.id, idle, lasting, "10.0.0.1"), key.name)


def test_a_session_ends_by_idleness_in_any_case_and_when_somebody_leaves(store: SqlStore, clock: StoreClock) -> None:
    key = add(store)
    for name in ("idle", "long", "left"):
        begin(store, name, key, idle=60.0, lasting=100.0)
    found = store.browser_session("long")
    assert found is not None
    assert (found.key.id, found.address) == (key.id, "10.0.0.1")
    assert store.end_browser_session("ada", digest="left")
    assert not store.end_browser_session("ada", digest="left")
    assert store.browser_session("left") is None
    assert store.browser_session("nobody") is None
    clock.advance(50)
    store.touch_browser_sessions(["long"])
    clock.advance(15)
    assert store.browser_session("idle") is None
    store.touch_browser_sessions(["idle"])
    assert store.browser_session("idle") is None, "what ended is not revived"
    assert store.browser_session("long") is not None
    clock.advance(36)
    assert store.browser_session("long") is None, "used or not, it has lasted its time"


def test_sessions_end_with_their_key(store: SqlStore, clock: StoreClock) -> None:
    revoked, expired = add(store, 1), add(store, 2, lasting=60.0)
    for key in (revoked, expired):
        begin(store, f"of {key.id}", key)
    store.revoke_key(revoked.id, "eve")
    assert store.browser_session(f"of {revoked.id}") is None
    found = store.browser_session(f"of {expired.id}")
    assert found is not None
    assert found.ends_at == expired.expires_at
    clock.advance(61)
    assert store.browser_session(f"of {expired.id}") is None
    begin(store, "late", revoked)
    assert store.browser_session("late") is None, "a session that was begun while its key was revoked"


def test_sessions_are_listed_by_tenant_and_ended_by_number(store: SqlStore) -> None:
    ours, theirs = add(store, 1, tenant="acme"), add(store, 2, tenant="beta")
    first, second, foreign = begin(store, "a", ours), begin(store, "b", ours), begin(store, "c", theirs)
    assert [each.number for each in store.browser_sessions()] == [foreign, second, first]
    assert [each.number for each in store.browser_sessions("acme")] == [second, first]
    assert [each.number for each in store.browser_sessions("acme", before=second, limit=1)] == [first]
    assert store.browser_session_numbered(foreign, "acme") is None
    assert store.browser_session_numbered(first, "acme") is not None
    assert store.end_browser_session("ada", number=first)
    assert store.browser_session("a") is None
    assert [each.number for each in store.browser_sessions("acme")] == [second]
    assert {(line.verb, line.subject, line.tenant) for line in store.audit(verb="sessions")} == {
        ("sessions.begin", str(first), "acme"),
        ("sessions.begin", str(second), "acme"),
        ("sessions.begin", str(foreign), "beta"),
        ("sessions.end", str(first), "acme"),
    }


def test_of_one_key_only_the_newest_sessions_go_on(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unstuck.store.guard.keys.MOST_SESSIONS", 2)
    key, other = add(store, 1), add(store, 2)
    for name in ("o", "a", "b", "c"):
        begin(store, name, other if name == "o" else key)
    assert [name for name in "oabc" if store.browser_session(name) is not None] == ["o", "b", "c"]


def test_a_ticket_is_used_once_and_in_time(store: SqlStore, clock: StoreClock) -> None:
    key = add(store).id
    ends = store.add_ticket("a" * 64, key, 60.0)
    assert (ends - clock.now()).total_seconds() == pytest.approx(60, abs=5)
    assert store.use_ticket("b" * 64) is None
    assert [store.use_ticket("a" * 64), store.use_ticket("a" * 64)] == [key, None]
    store.add_ticket("c" * 64, key, 60.0)
    clock.advance(61)
    assert store.use_ticket("c" * 64) is None


def test_of_many_who_use_a_ticket_one_does(store: SqlStore) -> None:
    key = add(store).id
    for number in range(10):
        name = f"{number:064}"
        store.add_ticket(name, key, 60.0)
        with ThreadPoolExecutor(4) as pool:
            used = [*pool.map(store.use_ticket, [name] * 4)]
        assert sorted(used, key=str) == sorted([None, None, None, key], key=str)
