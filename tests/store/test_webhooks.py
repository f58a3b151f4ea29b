"""Webhooks: what of the feed is copied for whom, in which order it is sent, and by whom."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.budgets import endless
from tests.support.builders import a_worker, claimed, settle, submitted
from tests.support.tables import ask
from tests.support.troubles import PATIENT, holding, refuse, waiting_for_no_lock
from tests.support.troubles import allow as mended
from tests.support.webhooks import (
    BROKEN,
    allow,
    copied,
    deliveries,
    kinds,
    leased,
    made,
    seen,
    sent,
    setting,
    settled,
    states,
    the_duty,
)
from unstuck.assembly.janitor import event_bodies
from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.webhooks import WebhooksDuty
from unstuck.model.errors import (
    Conflict,
    NotActive,
    StaleCursor,
    TooManyWebhooks,
    UnknownWebhook,
    WebhookExists,
)
from unstuck.model.times import Times
from unstuck.model.webhooks import DeliveryState, TryOutcome, WebhookFilter, WebhookState
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import FeedFilter
from unstuck.store.sql_store import SqlStore

WAITING, DELIVERED, FAILED = DeliveryState.WAITING, DeliveryState.DELIVERED, DeliveryState.FAILED
EVERY = "*"


def test_what_happens_is_copied_once_for_each_webhook_that_wants_it(store: SqlStore) -> None:
    submitted(store)  # before there was one
    made(store, "all")
    made(store, "io", queue="io", kinds=("submitted",))
    made(store, "theirs", tenant="other")
    made(store, "platform", tenant=EVERY)
    here, io = submitted(store), submitted(store, queue="io", workflow="w")
    theirs = submitted(store, tenant="other")

    assert copied(store) == 2 + 1 + 1 + 3
    assert copied(store) == 0  # and not again
    assert [each.job for each in deliveries(store, "all")] == [here.id, io.id]
    assert [each.job for each in deliveries(store, "io")] == [io.id]
    assert [each.job for each in deliveries(store, "theirs", "other")] == [theirs.id]
    jobs = [each.job for each in store.deliveries(EVERY)]
    assert jobs == [theirs.id, io.id, here.id]
    one = store.delivery("default", deliveries(store, "io")[0].number)
    assert one is not None
    assert f'"job":"{io.id}"' in one.body
    assert one.body.startswith('{"type":"submitted","timestamp":"')


def test_a_filter_of_every_kind_chooses_as_a_reader_of_the_feed_does(store: SqlStore) -> None:
    """What `events.list` would show by the same terms is what is sent."""
    terms: list[dict[str, Any]] = [
        {},
        {"workflow": "w"},
        {"target": "t"},
        {"topic": "news"},
        {"kinds": ("submitted", "tell")},
    ]
    begin = store.feed_bounds().newest
    for number, wanted in enumerate(terms):
        made(store, f"hook-{number}", **wanted)
    submitted(store, workflow="w")
    submitted(store, target="t")
    store.publish("default", _publication("tell", "news"), "ada", "1")
    a_worker(store)
    copied(store)

    for number, wanted in enumerate(terms):
        page = store.feed(begin, FeedFilter(tenant="default", **wanted))
        found = [(each.kind, each.job) for each in deliveries(store, f"hook-{number}")]
        assert found == [(event.kind, event.job) for event in page.events]


def _publication(kind: str, topic: str):  # type: ignore[no-untyped-def]
    from unstuck.model.news import Publication

    return Publication(kind, "{}", topic)


def test_deliveries_of_one_job_go_one_after_the_other_and_others_beside_them(store: SqlStore) -> None:
    made(store)
    worker = a_worker(store)
    one = claimed(store, worker)
    other = submitted(store)
    copied(store)

    [first] = leased(store)
    assert (first.kind, one.id in first.body) == ("submitted", True)
    after = settled(store, first, BROKEN).next
    assert after is not None
    assert other.id in after.body  # the next of the first job waits behind what was not taken
    assert settled(store, after).next is None
    assert [(each.kind, each.state, each.next_at is not None) for each in deliveries(store)] == [
        ("submitted", WAITING, True),
        ("claimed", WAITING, False),
        ("submitted", DELIVERED, False),
    ]


def test_what_was_not_taken_is_tried_again_when_its_rest_is_over(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    claimed(store, a_worker(store))
    copied(store)
    assert len(sent(store, BROKEN)) == 1
    assert leased(store) == []
    ahead = store.next_webhook()
    assert ahead is not None
    assert 4 < ahead <= 5
    clock.advance(6)
    assert [each.kind for each in sent(store)] == ["submitted", "claimed"]
    assert states(store) == [DELIVERED, DELIVERED]
    tries = store.delivery("default", deliveries(store)[0].number)
    assert tries is not None
    assert [(each.status, each.error) for each in tries.attempts] == [(500, "it answered 500"), (200, None)]
    assert store.next_webhook() is None


def test_a_receiver_that_takes_nothing_rests_as_a_whole(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    for _ in range(10):
        submitted(store)
    copied(store)
    assert len(sent(store, BROKEN)) == 3
    found = seen(store)
    assert (found.failures, found.waiting) == (3, 10)
    assert found.rest_until is not None
    clock.advance(6)
    assert len(sent(store, BROKEN)) == 1  # one to see whether it is back
    clock.advance(25)
    assert len(sent(store)) == 10
    assert (seen(store).failures, seen(store).waiting) == (0, 0)


def test_a_receiver_that_took_nothing_for_days_is_disabled_and_somebody_is_told(
    store: SqlStore, clock: StoreClock
) -> None:
    made(store)
    job = submitted(store)
    copied(store)
    for _ in range(40):
        clock.advance(hours=13)
        if seen(store).state is not WebhookState.ACTIVE:
            break
        sent(store, BROKEN)
    found = seen(store)
    assert (found.state, found.state_by) == (WebhookState.DISABLED, "unstuck")
    assert "it took nothing for 4 days" in (found.state_reason or "")
    [news] = store.notifications("default")
    assert (news.title, "unstuck webhooks enable hook" in news.message) == ("Webhook disabled", True)
    assert [each.state for each in store.failing_webhooks(None)] == [WebhookState.DISABLED]

    submitted(store)  # nobody waits for it
    assert copied(store) == 0
    assert leased(store) == []
    store.state_webhook("default", "hook", WebhookState.ACTIVE, "ada")
    assert [job.id in each.body for each in sent(store)] == [True]  # what waited, once it is enabled


def test_gone_disables_at_once(store: SqlStore) -> None:
    made(store)
    submitted(store)
    copied(store)
    [sending] = leased(store)
    assert settled(store, sending, TryOutcome(410, "it answered 410")).disabled
    assert seen(store).state is WebhookState.DISABLED
    assert store.copying() is None


def test_one_message_that_nobody_takes_is_given_up_and_frees_its_job(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    worker = a_worker(store)
    claimed(store, worker)
    copied(store)
    for day in range(12):
        others = submitted(store)  # which are taken
        copied(store)
        for sending in leased(store, f"l{day}"):
            following = sending
            while following is not None:
                is_poison = others.id not in following.body and '"type":"submitted"' in following.body
                following = settled(store, following, BROKEN if is_poison else TryOutcome(200)).next  # type: ignore[assignment]
        clock.advance(hours=13)
    found = deliveries(store)
    assert found[0].state is FAILED
    assert (found[1].kind, found[1].state) == ("claimed", DELIVERED)
    assert seen(store).state is WebhookState.ACTIVE
    assert "given up" in store.notifications("default")[0].title


def test_a_lease_is_one_senders_and_another_takes_over_when_it_runs_out(store: SqlStore, clock: StoreClock) -> None:
    """A sender that was KILLed, or frozen: what it settles too late is refused, and what it sent is sent again."""
    made(store)
    submitted(store)
    copied(store)
    [first] = leased(store, "first")
    assert leased(store, "second") == []
    clock.advance(31)
    [second] = leased(store, "second")
    assert second.message == first.message  # by this its receiver knows that it has seen it
    assert settled(store, first).state is None
    assert states(store) == [WAITING]
    assert settled(store, second).state is DELIVERED
    assert states(store) == [DELIVERED]


def test_the_webhooks_have_their_turns(store: SqlStore) -> None:
    for name in ("one", "two", "three"):
        made(store, name)
    submitted(store)
    submitted(store)
    copied(store)
    [first] = leased(store, most=1)
    settled(store, first, go_on=False)
    assert {each.name for each in leased(store, most=2)} == {"one", "two", "three"} - {first.name}


def test_paused_it_waits_and_enabled_it_goes_on(store: SqlStore) -> None:
    made(store)
    store.state_webhook("default", "hook", WebhookState.PAUSED, "ada", "they move")
    submitted(store)
    assert copied(store) == 1
    assert leased(store) == []
    assert store.next_webhook() is None
    with pytest.raises(NotActive):
        store.test_webhook("default", "hook", "test-1", "{}", "ada")
    store.state_webhook("default", "hook", WebhookState.ACTIVE, "ada")
    assert len(sent(store)) == 1


def test_where_too_much_waits_the_rest_stays_in_the_feed_and_nobody_else_waits(store: SqlStore) -> None:
    setting(store, "webhook_most_waiting", 5)
    made(store, kinds=("submitted",))
    made(store, "quick", kinds=("submitted",))
    for number in range(3):
        for _ in range(4):
            submitted(store)
        copied(store)
        if number == 0:
            store.state_webhook("default", "hook", WebhookState.PAUSED, "ada")
        sent(store)
    assert len(deliveries(store, "quick")) == 12
    assert len(deliveries(store)) == 8  # a page more than may wait, and then no more
    store.state_webhook("default", "hook", WebhookState.ACTIVE, "ada")
    for _ in range(3):
        sent(store)
        copied(store)
    assert len(deliveries(store)) == 12  # nothing was lost
    assert [each.job for each in deliveries(store)] == [each.job for each in deliveries(store, "quick")]
    assert set(states(store)) == {DELIVERED}


def test_the_feed_waits_for_webhooks_that_are_behind_and_not_for_ever(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    submitted(store)
    store.sequence(86400.0)
    clock.advance(hours=30)
    store.forget_feed(86400.0)
    store.forget_news(86400.0)
    assert copied(store) == 1  # it was older than the feed's time
    store.forget_feed(86400.0)
    bounds = store.feed_bounds()
    assert bounds.oldest == bounds.newest  # and now nobody waits

    submitted(store)
    store.sequence(86400.0)
    clock.advance(days=4)
    store.forget_feed(86400.0)
    last = submitted(store)
    copied(store)
    assert [each.job for each in deliveries(store) if each.kind == "submitted"][1:] == [last.id]
    assert [news.title for news in store.notifications("default")] == ["Webhooks missed events"]


def test_that_a_webhook_missed_events_leads_to_it_whatever_it_is_called(store: SqlStore, clock: StoreClock) -> None:
    made(store, "a b/c")
    submitted(store)
    store.sequence(86400.0)
    clock.advance(days=5)
    store.forget_feed(86400.0)
    copied(store)
    assert [(news.title, news.link) for news in store.notifications("default")] == [
        ("Webhooks missed events", "/webhooks/a%20b%2Fc")
    ]


def test_a_day_without_any_process_loses_nothing(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    job = submitted(store)  # and nobody gives it its place
    clock.advance(hours=40)
    store.sequence(86400.0)  # by another reader, which comes first
    assert copied(store) == 1
    assert deliveries(store)[0].job == job.id


def test_a_replay_sends_again_in_order_what_was_taken_and_what_was_never_copied(
    store: SqlStore, clock: StoreClock
) -> None:
    made(store, kinds=("submitted",))
    worker = a_worker(store)
    begin = store.now()
    job = claimed(store, worker)
    copied(store)
    sent(store)
    old = deliveries(store)
    store.change_webhook("default", "hook", "https://hooks.example/", WebhookFilter(), "ada", seen(store).version)
    settle(store, worker, job.ref)
    copied(store)
    sent(store)
    assert kinds(store) == ["submitted", "completed"]

    done = store.replay_webhook("default", "hook", "ada", since=begin)
    assert (done.reopened, done.has_more) == (0, False)
    copied(store)
    again = sent(store)
    assert [each.kind for each in again if job.id in each.body] == ["submitted", "claimed", "completed"]
    assert again[0].message == old[0].message
    assert set(states(store)) == {DELIVERED}
    assert copied(store) == 0


def test_a_replay_of_what_the_feed_has_forgotten_opens_what_was_kept(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    begin = store.now()
    for _ in range(3):
        submitted(store)
    copied(store)
    sent(store)
    clock.advance(days=2)
    store.forget_feed(86400.0)
    assert store.replay_webhook("default", "hook", "ada", since=begin, most=2).reopened == 2
    assert len(sent(store)) == 2
    cursor = store.feed_bounds().newest
    submitted(store)
    copied(store)
    sent(store)
    store.replay_webhook("default", "hook", "ada", since=begin, after=cursor)
    copied(store)
    assert len(sent(store)) == 1
    with pytest.raises(StaleCursor):
        store.replay_webhook("default", "hook", "ada", since=begin, after=f"{cursor[:8]}-0")
    store.state_webhook("default", "hook", WebhookState.DISABLED, "ada")
    with pytest.raises(NotActive):
        store.replay_webhook("default", "hook", "ada", since=begin)


def test_a_test_is_a_delivery_of_its_own(store: SqlStore) -> None:
    made(store)
    store.test_webhook("default", "hook", "test-1", '{"type":"webhook.test"}', "ada")
    assert [each.kind for each in sent(store)] == ["webhook.test"]


def test_a_rotated_secret_signs_beside_the_new_one_until_its_time_is_over(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    store.rotate_webhook("default", "hook", "clear:new", 60.0, "ada")
    submitted(store)
    copied(store)
    [sending] = leased(store)
    assert [secret == "clear:new" for secret in sending.secrets] == [True, False]
    settled(store, sending, go_on=False)
    clock.advance(61)
    submitted(store)
    copied(store)
    [sending] = leased(store)
    assert sending.secrets == ("clear:new",)
    assert "clear:" not in repr(seen(store))


def test_names_are_one_tenants_and_there_are_only_so_many(store: SqlStore) -> None:
    made(store)
    made(store, tenant="other")
    with pytest.raises(WebhookExists):
        made(store)
    setting(store, "webhooks_per_tenant", 1)
    with pytest.raises(TooManyWebhooks):
        made(store, "more")
    with pytest.raises(UnknownWebhook):
        store.delete_webhook("third", "hook", "ada")
    with pytest.raises(Conflict):
        store.change_webhook("default", "hook", "https://x.example/", WebhookFilter(), "ada", 7)


def test_a_deleted_webhook_goes_with_its_deliveries_and_its_name_is_free(store: SqlStore) -> None:
    made(store)
    submitted(store)
    copied(store)
    store.delete_webhook("default", "hook", "ada")
    assert (store.webhook("default", "hook"), store.webhooks(None), store.deliveries(None)) == (None, [], [])
    made(store)
    assert deliveries(store) == []
    assert store.forget_deliveries(86400.0) == 1
    assert store.forget_deliveries(86400.0) == 0


def test_what_is_too_old_is_forgotten_and_who_waited_behind_it_is_next(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    worker = a_worker(store)
    job = claimed(store, worker)
    copied(store)
    clock.advance(days=8)
    settle(store, worker, job.ref)
    copied(store)
    assert store.forget_deliveries(7 * 86400.0) == 2
    assert [each.kind for each in sent(store)] == ["completed"]


def test_a_damaged_filter_sends_nothing_and_keeps_nobody_from_theirs(store: SqlStore) -> None:
    made(store, "damaged")
    made(store)
    store._database.write(lambda t: t.run("change_webhook", webhook=1, url="x", filter="{", by="x"))
    submitted(store)
    assert copied(store) == 1
    assert len(deliveries(store)) == 1


def test_an_event_that_cannot_be_copied_is_passed_by_alone(store: SqlStore) -> None:
    made(store)
    jobs = [submitted(store).id for _ in range(10)]

    def bodies():  # type: ignore[no-untyped-def]
        body = event_bodies(store)

        def broken(event):  # type: ignore[no-untyped-def]
            if event.job == jobs[4]:
                raise RuntimeError("this one")
            return body(event)

        return broken

    duty = WebhooksDuty(store, Times(), bodies)
    for _ in range(10):
        duty.tick(0.0, endless())
    assert [each.job for each in deliveries(store)][:9] == [job for job in jobs if job != jobs[4]]
    assert store.notifications(None)[0].title == "An event cannot be sent by webhooks"


@pytest.mark.parametrize("table", ["unstuck_deliveries", "unstuck_webhooks"])
def test_a_webhook_that_cannot_be_written_costs_no_other_an_event_and_misses_none(
    store: SqlStore, store_url: str, table: str
) -> None:
    bad = made(store, "bad")
    made(store, "well")
    duty = the_duty(store)
    when, on = (
        (f"NEW.webhook = {bad.number}", "INSERT")
        if table == "unstuck_deliveries"
        else (f"NEW.id = {bad.number}", "UPDATE")
    )
    refuse(store_url, table, when, on)
    jobs = [submitted(store).id for _ in range(10)]
    for _ in range(10):
        duty.tick(0.0, endless())

    assert [each.job for each in deliveries(store, "well")] == jobs
    assert deliveries(store, "bad") == []
    assert [each.link for each in store.notifications()] == ["/webhooks/bad"]
    mended(store_url, table)
    duty.tick(Times().sweep, endless())
    duty.tick(Times().sweep, endless())
    assert [each.job for each in deliveries(store, "bad")] == jobs


def test_webhooks_that_cannot_be_written_take_no_more_than_a_turn(
    store: SqlStore, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of them may take its whole patience: the rescue of lost jobs comes between two turns, not behind all."""
    names = [made(store, f"hook-{n}").name for n in range(4)]
    refuse(store_url, "unstuck_deliveries", "1 = 1")
    job = submitted(store)
    duty = the_duty(store)

    def tried(now: float) -> int:
        """In a turn whose time is over as soon as it is asked for."""
        caplog.clear()
        duty.tick(now, Budget(MachineClock(), 0.0))
        return sum("webhook_not_copied" in line.message for line in caplog.records)

    turns = [tried(0.0) for _ in range(20)]
    assert (sum(turns), max(turns)) == (len(names), 1)
    again = [tried(Times().sweep) for _ in names]
    assert again == [1] * len(names)
    mended(store_url, "unstuck_deliveries")
    for _ in names:
        duty.tick(2 * Times().sweep, Budget(MachineClock(), 0.0))
    assert [each.job for name in names for each in deliveries(store, name)] == [job.id] * len(names)


def test_a_row_that_somebody_holds_delays_nothing_but_itself(server_url: str, server: SqlStore) -> None:
    """A delivery, then a webhook."""
    store = server
    made(store)
    made(store, "other")
    first, second = submitted(store), submitted(store)
    copied(store)
    with psycopg.connect(server_url) as holder:
        held = deliveries(store)[0]
        holder.execute("SELECT 1 FROM unstuck_deliveries WHERE id = %s FOR UPDATE", (held.number,))
        found = {(each.name, each.message) for each in sent(store)}
        assert ("hook", held.message) not in found
        assert len(found) == 3
    with psycopg.connect(server_url) as holder:
        holder.execute("SELECT 1 FROM unstuck_webhooks WHERE name = 'hook' FOR UPDATE")
        submitted(store)
        assert copied(store) == 1
        assert [each.name for each in leased(store)] == ["other"]
    copied(store)
    assert (len(deliveries(store)), len(deliveries(store, "other"))) == (3, 3)
    assert {first.id, second.id} <= {each.job for each in deliveries(store)}


def test_settings_are_in_force_at_once(store: SqlStore) -> None:
    allow(store)
    setting(store, "webhook_timeout", 3)
    assert store.webhook_rules().allow == ("127.0.0.0/8",)
    assert store.webhook_rules().timeout == 3
    assert store.webhook_rules().give_up_after == timedelta(days=4).total_seconds()


def test_a_delivery_says_when_it_is_tried_though_its_webhook_rests(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    for _ in range(5):
        submitted(store)
    copied(store)
    sent(store, BROKEN)
    rest = seen(store).rest_until
    assert rest is not None
    assert {each.rest_until for each in deliveries(store)} == {rest}
    untried = [each for each in deliveries(store) if each.tries == 0]
    assert {each.next_at for each in untried} == {rest}, "and not when it was due, seconds ago"
    clock.advance(6)
    assert {each.rest_until for each in deliveries(store)} == {None}
    store.state_webhook("default", "hook", WebhookState.PAUSED, "ada")
    assert {each.next_at for each in deliveries(store)} == {None}, "nobody knows"


def test_who_asks_for_time_is_sent_nothing_meanwhile(store: SqlStore, clock: StoreClock) -> None:
    made(store)
    for _ in range(5):
        submitted(store)
    copied(store)
    assert len(sent(store, TryOutcome(429, "it answered 429", retry_after=300.0))) == 1
    clock.advance(299)
    assert sent(store) == []
    clock.advance(2)
    assert len(sent(store)) == 5


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_deleted_webhook_that_somebody_holds_keeps_no_retention_waiting(store: SqlStore, store_url: str) -> None:
    made(store)
    made(store, "other")
    for name in ("hook", "other"):
        store.delete_webhook("default", name, "ada")
    with (
        holding(store_url, "unstuck_webhooks", "name = '1'"),
        closing(SqlStore(open_database(store_url, store_call=PATIENT))) as patient,
        waiting_for_no_lock(),
    ):
        patient.forget_deliveries(86400.0)
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_webhooks") == [(1,)]
    store.forget_deliveries(86400.0)
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_webhooks") == [(0,)]
