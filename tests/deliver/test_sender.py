"""The sender: what waits reaches its receiver, signed and in order; nothing that one receiver does delays another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_worker, claimed, settle, submitted
from tests.support.eventually import eventually
from tests.support.receiver import Message, receiving
from tests.support.threads import no_more_threads
from tests.support.troubles import allow as mended
from tests.support.troubles import holding, refuse
from tests.support.webhooks import SECRET, a_sender, allow, copied, deliveries, kept, made, seen, setting, states
from unstuck.deliver.dialler import WebhookDialler
from unstuck.deliver.sender import MOST_AT_ONCE, MOST_DOUBTFUL, Sender
from unstuck.model.errors import StoreUnavailable
from unstuck.model.webhooks import DeliveryState, TryOutcome, WebhookFilter, WebhookState, spell_secret
from unstuck.sealing import Sealer
from unstuck.store.port import NewWebhook
from unstuck.store.sql_store import SqlStore

DELIVERED = DeliveryState.DELIVERED
KEY, OTHER_KEY = b"k" * 32, b"o" * 32


@contextmanager
def running(sender: Sender) -> Iterator[Sender]:
    sender._store.close = lambda: None  # type: ignore[method-assign]  # it is the test's own
    sender.start()
    try:
        yield sender
    finally:
        sender.close()


def test_every_message_is_verified_by_the_reference_library_and_in_order(store: SqlStore) -> None:
    allow(store)
    with receiving() as receiver, running(a_sender(store)) as sender:
        made(store, url=receiver.url)
        worker = a_worker(store)
        jobs = [claimed(store, worker) for _ in range(3)]
        for job in jobs:
            settle(store, worker, job.ref)
        copied(store)
        sender.wake()
        eventually(lambda: len(receiver.taken) == 9, timeout=20)
        eventually(lambda: set(states(store)) == {DELIVERED})
    assert {message.verified(SECRET)["type"] for message in receiver.taken} == {"submitted", "claimed", "completed"}
    assert receiver.of_jobs() == {job.id: [1, 2, 3] for job in jobs}
    assert len({message.id for message in receiver.taken}) == 9
    assert {message.headers["user-agent"].split("/")[0] for message in receiver.taken} == {"unstuck"}


def test_a_receiver_that_is_down_delays_no_other_and_gets_everything_once_it_is_back(store: SqlStore) -> None:
    allow(store)
    setting(store, "webhook_first_retry", 0.1)
    down = threading.Event()

    def answer(message: Message) -> int:
        return 503 if down.is_set() else 200

    down.set()
    with receiving(answer) as lame, receiving() as well, running(a_sender(store)) as sender:
        made(store, "lame", lame.url)
        made(store, "well", well.url)
        jobs = [submitted(store).id for _ in range(20)]
        copied(store)
        sender.wake()
        eventually(lambda: len(well.taken) == 20, timeout=20)
        eventually(lambda: seen(store, "lame").failures >= 3, timeout=20)
        assert lame.taken == []
        down.clear()
        eventually(lambda: len(lame.taken) == 20, timeout=40)
    assert {message.event["data"]["job"] for message in lame.taken} == set(jobs)
    assert set(states(store, "lame")) == {DELIVERED}


def test_many_receivers_that_never_answer_leave_places_for_those_that_do(store: SqlStore) -> None:
    """Whose last try failed may fail again, and take all its time: they have half of the places."""
    allow(store)
    setting(store, "webhook_first_retry", 0.1)
    silent, go_on, asked = threading.Event(), threading.Event(), list[str]()

    def answer(message: Message) -> int:
        if silent.is_set():
            asked.append(message.id)
            go_on.wait(60)
        return 503

    names = [f"lame-{n}" for n in range(2 * MOST_AT_ONCE)]
    with receiving(answer) as lame, receiving() as well, running(a_sender(store)) as sender:
        for name in names:
            made(store, name, lame.url)
        submitted(store)
        copied(store)
        sender.wake()
        eventually(lambda: all(seen(store, name).failures for name in names), timeout=30)
        silent.set()
        eventually(lambda: len(asked) == MOST_DOUBTFUL, timeout=20)
        made(store, "well", well.url)
        submitted(store)
        copied(store)
        sender.wake()
        eventually(lambda: well.taken != [], timeout=5)
        assert len(asked) == MOST_DOUBTFUL
        go_on.set()


def test_one_that_failed_has_its_turn_beside_many_that_always_have_something_to_send(
    store: SqlStore, clock: StoreClock
) -> None:
    """They take every place that is free; a receiver that is back again would wait for as long as they are busy."""
    allow(store)
    go_on, is_back = threading.Event(), threading.Event()

    def busy(message: Message) -> int:
        go_on.wait(60)
        return 200

    with receiving(busy) as many, receiving(lambda message: 200 if is_back.is_set() else 503) as lame:
        sender = a_sender(store)
        made(store, "lame", lame.url)
        submitted(store)
        copied(store)
        sender.look()
        eventually(lambda: seen(store, "lame").failures == 1)
        for n in range(2 * MOST_AT_ONCE):
            made(store, f"busy-{n}", many.url)
        submitted(store)
        copied(store)
        clock.advance(60)
        is_back.set()
        sender.look()
        eventually(lambda: DELIVERED in states(store, "lame"), timeout=5)
        go_on.set()
        eventually(lambda: not sender._threads, timeout=20)


def test_a_sender_that_got_no_threads_has_its_places_once_it_gets_some(store: SqlStore, clock: StoreClock) -> None:
    allow(store)
    with receiving() as receiver:
        made(store, url=receiver.url)
        submitted(store)
        copied(store)
        sender = a_sender(store)
        for _ in range(MOST_AT_ONCE):
            with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
                sender.look()
            clock.advance(60)  # its lease has run out
        sender.look()
        eventually(lambda: states(store) == [DELIVERED], timeout=20)


def test_a_sender_that_was_killed_is_followed_by_another(store: SqlStore, clock: StoreClock) -> None:
    """It had leased and sent, and could not say so: the next one sends it again, under the same id."""
    allow(store)
    with receiving() as receiver:
        made(store, url=receiver.url)
        submitted(store)
        copied(store)
        dead = a_sender(store)
        [sending] = store.lease_webhooks("the dead", 30.0, 1)
        assert dead._try(sending, store.webhook_rules()) is not None
        assert [each.state for each in deliveries(store)] == [DeliveryState.WAITING]
        clock.advance(31)
        with running(a_sender(store)):
            eventually(lambda: states(store) == [DELIVERED], timeout=20)
    assert len(receiver.taken) == 2
    assert len({message.id for message in receiver.taken}) == 1


def test_a_database_that_is_away_for_a_moment_doubles_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(store)
    failures = iter([StoreUnavailable("away"), StoreUnavailable("away")])
    usual: Callable[..., object] = store.settle_try

    def settle_try(*args: object, **kwargs: object) -> object:
        for failure in failures:
            raise failure
        return usual(*args, **kwargs)

    monkeypatch.setattr(store, "settle_try", settle_try)
    with receiving() as receiver, running(a_sender(store)) as sender:
        made(store, url=receiver.url)
        submitted(store)
        copied(store)
        sender.wake()
        eventually(lambda: states(store) == [DELIVERED], timeout=20)
    assert len(receiver.taken) == 1


def test_an_address_that_became_an_inner_one_is_not_asked(store: SqlStore) -> None:
    """Registered while the setting allowed it: it is checked again at every delivery."""
    with receiving() as receiver, running(a_sender(store)) as sender:
        made(store, url=receiver.url)
        submitted(store)
        copied(store)
        sender.wake()
        eventually(lambda: seen(store).failures == 1, timeout=20)
    assert receiver.messages == []
    assert "not a public address (loopback)" in (seen(store).last_error or "")
    assert seen(store).state is WebhookState.ACTIVE


def test_a_sealed_secret_signs_where_its_key_is_and_counts_against_nobody_elsewhere(store: SqlStore) -> None:
    allow(store)
    secret = spell_secret(b"t" * 32)
    with receiving() as receiver:
        stored = kept(secret, sealer=Sealer([("k", KEY)]))
        assert secret[6:] not in stored
        store.create_webhook(
            "default", NewWebhook("hook", receiver.url, WebhookFilter(kinds=("submitted",)), stored), "ada"
        )
        submitted(store)
        copied(store)
        with running(a_sender(store)):
            eventually(lambda: store.notifications(None), timeout=20)
        [news] = [each for each in store.notifications(None) if "signed" in each.title]
        assert "sealing_keys" in news.message
        assert (seen(store).failures, receiver.messages) == (0, [])
        with running(a_sender(store, Sealer([("o", OTHER_KEY), ("k", KEY)]))):
            eventually(lambda: states(store)[0] == DELIVERED, timeout=20)
    assert receiver.taken[0].verified(secret)


def test_a_delivery_of_which_nothing_can_be_written_keeps_no_other_back(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    allow(store)
    with receiving() as receiver, running(a_sender(store)) as sender:
        made(store, url=receiver.url)
        jobs = [submitted(store).id for _ in range(6)]
        copied(store)
        refuse(store_url, "unstuck_deliveries", f"NEW.job = '{jobs[2]}'", "UPDATE")
        sender.wake()
        eventually(lambda: states(store).count(DELIVERED) == 5, timeout=20)
        [bad] = [each for each in deliveries(store) if each.state is not DELIVERED]
        assert bad.job == jobs[2]
        assert "set aside" in str(bad.last_error)
        assert bad.next_at is not None
        assert bad.next_at > store.now()
        [told] = [each for each in store.notifications() if each.title == "A webhook's delivery is set aside"]
        assert str(bad.number) in told.message
        more = submitted(store).id
        copied(store)
        sender.wake()
        eventually(lambda: more in {message.event["data"]["job"] for message in receiver.taken}, timeout=20)
        assert len([message for message in receiver.taken if message.event["data"]["job"] == jobs[2]]) == 1
        mended(store_url, "unstuck_deliveries")
        clock.advance(61)
        sender.wake()
        eventually(lambda: set(states(store)) == {DELIVERED}, timeout=20)
    [found] = [each for each in deliveries(store) if each.job == jobs[2]]
    assert found.last_error is None


def test_a_delivery_that_cannot_even_be_sent_keeps_no_other_back(store: SqlStore) -> None:
    allow(store)

    class Choking(WebhookDialler):
        def post(self, url: str, headers: Mapping[str, str], body: bytes, **more: Any) -> TryOutcome:
            if bad.encode() in body:
                raise RuntimeError("it chokes")
            return super().post(url, headers, body, **more)

    with receiving() as receiver, running(a_sender(store, dialler=Choking())) as sender:
        made(store, url=receiver.url)
        bad, *others = [submitted(store).id for _ in range(4)]
        copied(store)
        sender.wake()
        eventually(lambda: states(store).count(DELIVERED) == 3, timeout=20)
    assert {message.event["data"]["job"] for message in receiver.taken} == set(others)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_delivery_whose_row_somebody_holds_keeps_no_other_back(store: SqlStore, store_url: str) -> None:
    allow(store)
    with receiving() as receiver, running(a_sender(store)) as sender:
        made(store, url=receiver.url)
        jobs = [submitted(store).id for _ in range(4)]
        copied(store)
        with holding(store_url, "unstuck_deliveries", f"job = '{jobs[0]}'"):
            sender.wake()
            eventually(lambda: states(store).count(DELIVERED) == 3, timeout=20)
        eventually(lambda: set(states(store)) == {DELIVERED}, timeout=20)


def test_a_webhook_whose_own_row_cannot_be_written_keeps_no_other_back(store: SqlStore, store_url: str) -> None:
    allow(store)
    with receiving() as receiver, running(a_sender(store)) as sender:
        made(store, "bad", receiver.url)
        made(store, "well", receiver.url)
        first = submitted(store).id
        copied(store)
        refuse(store_url, "unstuck_webhooks", "NEW.name = 'bad'", "UPDATE")
        sender.wake()
        eventually(lambda: states(store, "well") == [DELIVERED], timeout=20)
        second = submitted(store).id
        copied(store)
        sender.wake()
        eventually(lambda: states(store, "well") == [DELIVERED, DELIVERED], timeout=20)
        told = [each for each in store.notifications() if each.title == "Webhook cannot be served"]
        assert [each.link for each in told] == ["/webhooks/bad"]
        mended(store_url, "unstuck_webhooks")
        copied(store)
        eventually(lambda: states(store, "bad") == [DELIVERED, DELIVERED], timeout=20)
    assert {message.event["data"]["job"] for message in receiver.taken} == {first, second}
