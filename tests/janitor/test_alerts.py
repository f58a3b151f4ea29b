"""Alerts: each rule opens one for its cause, whoever looks, and closes it when it is over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import Leap, StoreClock
from tests.support import schedules, webhooks
from tests.support.alerts import A_TURN, TIMES, open_ones, the_duty, turn
from tests.support.budgets import endless
from tests.support.builders import TENANT, a_worker, begin, boom, claim_all, claimed, settle, submitted
from tests.support.burying import Graveyard
from tests.support.tables import ask
from tests.support.troubles import allow, holding, refuse
from unstuck.clock import FakeClock
from unstuck.janitor.budget import Budget
from unstuck.model.alerts import MOST_OPEN, RULES, AlertFinding, RuleFindings, RuleLook, finding
from unstuck.model.errors import ErrorType, InvalidInput
from unstuck.model.guard import checked
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import ErrorInfo, Stopped, Stuck
from unstuck.observe.conditions import LOOKS
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.leaps import Witness
from unstuck.store.port import FeedFilter, Pause
from unstuck.store.sql_store import SqlStore

HOUR, DAY, WEEK = 3600.0, 86400.0, 7 * 86400.0
#: More than `alert_close_after`.
CALM = 125.0


@dataclass(frozen=True)
class Stage:
    store: SqlStore
    url: str
    clock: StoreClock


#: What brings a rule's trouble about, and how it is mended.
Mend = Callable[[], object]
Trouble = Callable[[Stage], Mend]


def a_job_waits(on: Stage) -> Mend:
    submitted(on.store)
    on.clock.advance(301)
    return lambda: claim_all(on.store, a_worker(on.store, lease=1e9))


def a_job_runs_on(on: Stage) -> Mend:
    worker = a_worker(on.store, lease=1e9)
    attempt = claimed(on.store, worker, timeout=10.0, grace=5.0)
    begin(on.store, worker, attempt, lease=1e9)
    on.clock.advance(10 + 5 + 61)
    return lambda: settle(on.store, worker, attempt.ref)


def a_worker_is_silent(on: Stage) -> Mend:
    a_worker(on.store, "quiet")
    on.clock.advance(121)
    return lambda: on.store.unregister_worker(a_worker(on.store, "quiet").number)


def something_is_stuck(on: Stage) -> Mend:
    worker = a_worker(on.store, lease=1e9)
    attempt = claimed(on.store, worker)
    begin(on.store, worker, attempt, lease=1e9)
    settle(on.store, worker, attempt.ref, Stuck(ErrorInfo(ErrorType.EXECUTION_STUCK, "did not stop")))
    return lambda: on.clock.advance(HOUR)


def a_worker_drains(on: Stage) -> Mend:
    worker = a_worker(on.store, "slow", lease=1e9)
    on.store.beat(worker.number, 1e9, [], state="draining", info={"draining_for": HOUR + 1})
    return lambda: on.store.unregister_worker(worker.number)


def a_process_drains(on: Stage) -> Mend:
    worker = a_worker(on.store, "slow", lease=1e9)
    drains = [{"pid": 7, "state": "draining", "draining_for": HOUR + 1}, {"pid": 8, "state": "active"}, "damaged"]
    on.store.beat(worker.number, 1e9, [], info={"executors": drains})
    return lambda: on.store.beat(worker.number, 1e9, [], info={"executors": []})


def a_job_is_paused(on: Stage) -> Mend:
    worker = a_worker(on.store, lease=1e9)
    attempt = claimed(on.store, worker)
    on.store.interrupt(TENANT, attempt.id, by="me")
    settle(on.store, worker, attempt.ref, Stopped(RequestKind.INTERRUPT))
    on.clock.advance(DAY + 1)
    return lambda: on.store.cancel(TENANT, attempt.id, by="me")


def a_job_is_pending(on: Stage) -> Mend:
    job = submitted(on.store, on_hold=True)
    on.clock.advance(DAY + 1)
    return lambda: on.store.cancel(TENANT, job.id, by="me")


def a_target_is_blocked(on: Stage) -> Mend:
    worker = a_worker(on.store, lease=1e9)
    submitted(on.store, target="acme", retries=0)
    on.store.ingest()
    [attempt] = claim_all(on.store, worker)
    settle(on.store, worker, attempt.ref, boom())
    on.clock.advance(DAY + 1)
    return lambda: on.store.skip(TENANT, attempt.id, by="me")


def a_worker_is_lost_again_and_again(on: Stage) -> Mend:
    for _ in range(5):
        worker = a_worker(on.store, "frail", lease=1)
        claimed(on.store, worker, workflow="heavy", max_lost=100)
        on.clock.advance(5)
        assert on.store.recover_lost(0.0)
        ask_nothing = a_worker(on.store, "other", lease=1e9)
        for attempt in claim_all(on.store, ask_nothing):
            settle(on.store, ask_nothing, attempt.ref)
    return lambda: on.clock.advance(HOUR)


def there_is_a_dead_letter(on: Stage) -> Mend:
    job = Graveyard(on.store, on.url).exhaust()
    return lambda: on.store.discard_letter(TENANT, job, "me")


def nobody_fires(on: Stage) -> Mend:
    schedules.made(on.store)
    schedules.come(on.store, on.clock, late=61)
    return lambda: schedules.verbs(on.store).delete("nightly")


def nothing_is_forgotten(on: Stage) -> Mend:
    worker = a_worker(on.store, lease=1e9)
    settle(on.store, worker, claimed(on.store, worker).ref)
    on.clock.advance(WEEK + HOUR + 1)
    return lambda: on.store.forget_ended(WEEK)


def a_role_fails(on: Stage) -> Mend:
    worker = a_worker(on.store, "ill", lease=1e9)
    roles = [{"name": "janitor/timers", "failing_for": 61, "failures": 9, "error": "no such table"}]
    on.store.beat(worker.number, 1e9, [], info={"roles": roles})
    return lambda: on.store.unregister_worker(worker.number)


def a_webhook_takes_nothing(on: Stage) -> Mend:
    webhooks.made(on.store)
    submitted(on.store, delay=1e8)
    webhooks.copied(on.store)
    assert webhooks.sent(on.store, webhooks.BROKEN)
    on.clock.advance(601)
    return lambda: on.store.delete_webhook(TENANT, "hook", "ada")


TROUBLES: dict[str, tuple[str, Trouble, str]] = {
    "job_queued": ("job_queued", a_job_waits, "no live worker serves queue default"),
    "job_over_limit": ("job_over_limit", a_job_runs_on, "should have ended"),
    "worker_silent": ("worker_silent", a_worker_is_silent, "quiet"),
    "stuck_rate": ("stuck_rate", something_is_stuck, "1 of 1 execution"),
    "draining": ("draining", a_worker_drains, "worker slow has been draining for 1h"),
    "draining-process": ("draining", a_process_drains, "process 7 of worker slow"),
    "job_paused": ("job_paused", a_job_is_paused, "has been PAUSED"),
    "job_pending": ("job_pending", a_job_is_pending, "has been PENDING"),
    "target_blocked": ("target_blocked", a_target_is_blocked, "target acme"),
    "recoveries": ("recoveries", a_worker_is_lost_again_and_again, "5 times within an hour"),
    "dead_letters": ("dead_letters", there_is_a_dead_letter, "1 dead letter of greet (exhausted"),
    "schedule_silent": ("schedule_silent", nobody_fires, "schedule nightly"),
    "outbox_lag": ("outbox_lag", a_webhook_takes_nothing, "it answered 500"),
    "retention_lag": ("retention_lag", nothing_is_forgotten, "should have been forgotten"),
    "role_failing": ("role_failing", a_role_fails, "no such table"),
}
each_trouble = pytest.mark.parametrize(("rule", "trouble", "says"), TROUBLES.values(), ids=TROUBLES)


@pytest.fixture
def stage(store: SqlStore, store_url: str, clock: StoreClock) -> Stage:
    return Stage(store, store_url, clock)


def told(store: SqlStore, kind: str) -> list[Any]:
    store.sequence()
    return list(store.feed(store.feed_bounds().oldest, FeedFilter(kinds=(kind,))).events)


# --- each rule -----------------------------------------------------------------------------------------------------


@each_trouble
def test_a_trouble_is_one_alert_whoever_looks_and_over_when_it_is(
    stage: Stage, rule: str, trouble: Trouble, says: str
) -> None:
    store, clock = stage.store, stage.clock
    turn(store, "before")
    assert open_ones(store) == [], "all is well"

    mend = trouble(stage)
    clock.advance(A_TURN)
    store.sequence()  # a feed that nobody has read for a day begins anew
    turn(store, "ada")
    clock.advance(A_TURN)
    turn(store, "bert")

    found = open_ones(store, rule)
    assert {alert.rule for alert in found} == {rule}
    assert len({alert.cause for alert in found}) == len(found) <= 2
    assert any(says in alert.message for alert in found), found[0].message
    opened = told(store, "alert.opened")
    assert {event.data["number"] for event in opened} >= {alert.number for alert in found}
    for alert in found:
        notices = [notice for notice in store.notifications() if notice.number == alert.notification]
        assert [notice.severity for notice in notices] == [alert.severity]

    mend()
    clock.advance(A_TURN)
    turn(store, "ada")
    if not rule.startswith(("stuck", "recoveries")):
        assert len(open_ones(store, rule)) == len(found), "what is over for a moment may come again"
    clock.advance(CALM)
    turn(store, "bert")

    assert open_ones(store, rule) == []
    numbers = {alert.number for alert in found}
    assert {event.data["number"] for event in told(store, "alert.closed")} >= numbers
    assert not [notice for notice in store.notifications() if notice.number in {a.notification for a in found}]
    assert {alert.number for alert in store.alerts(closed=True, rule=rule)} == numbers, "never a second one"


@each_trouble
def test_a_rule_that_is_off_finds_nothing_and_what_it_had_found_is_over(
    stage: Stage, rule: str, trouble: Trouble, says: str
) -> None:
    trouble(stage)
    stage.clock.advance(A_TURN)
    turn(stage.store)
    assert open_ones(stage.store, rule)

    stage.store.set_setting(RULES[rule].setting, "0", "dana")
    stage.clock.advance(A_TURN)
    turn(stage.store)
    assert open_ones(stage.store, rule) == []
    stage.clock.advance(A_TURN)
    turn(stage.store)
    assert open_ones(stage.store, rule) == []


def test_a_number_that_is_changed_holds_from_the_next_turn_on(stage: Stage) -> None:
    submitted(stage.store)
    stage.store.set_setting("alert_queued_after", "1000", "dana")
    stage.clock.advance(400)
    turn(stage.store)
    assert open_ones(stage.store) == []

    stage.store.set_setting("alert_queued_after", "60", "dana")
    stage.clock.advance(A_TURN)
    turn(stage.store)

    assert [alert.rule for alert in open_ones(stage.store)] == ["job_queued"]


@pytest.mark.parametrize("value", ["soon", -1, True, 1e12, "nan", [], {}, "1 h"])
def test_a_number_that_is_none_is_refused(value: Any) -> None:
    for rule in RULES.values():
        with pytest.raises(InvalidInput, match=f"{rule.setting}=.* or off"):
            checked(rule.setting, value)


def test_off_and_nothing_mean_that_a_rule_rests() -> None:
    assert {checked(rule.setting, off) for rule in RULES.values() for off in (0, "0", "off", " OFF ")} == {0}
    assert set(LOOKS) == set(RULES)


@pytest.mark.parametrize("seconds", [-500.0, 86400.0], ids=["back", "forward"])
def test_a_leap_of_the_clock_is_an_alert_and_makes_nobody_late(store_url: str, leap: Leap, seconds: float) -> None:
    """A leap over a day makes no job, worker or target look as if it had waited for one."""
    store = SqlStore(open_database(store_url, witness=Witness()))
    try:
        worker = a_worker(store, "ada")
        submitted(store, on_hold=True)
        claimed(store, worker)
        submitted(store)
        leap(seconds)
        store.release_due()
        turn(store)

        [alert] = store.alerts()
        assert alert.rule == "clock_leapt"
        assert ("back" if seconds < 0 else "forward") in alert.message
        look = RuleLook(now=store.now(), number=1e6)
        assert the_duty(store)._looks["clock_leapt"](look).findings == [], "one as small as that"
    finally:
        store.close()


def test_a_feed_that_takes_no_events_is_told(postgres_url: str) -> None:
    """SQLite's events have their places when they are written."""
    store = SqlStore(open_database(postgres_url))
    try:
        submitted(store)
        store.set_setting("alert_feed_lag", "1", "dana")
        with holding(postgres_url, "unstuck_sequencer", "TRUE"):
            look = RuleLook(now=store.now(), number=-1.0)
            [found] = the_duty(store)._looks["feed_lag"](look).findings
            assert "holds the row" in str(found.message)
        assert the_duty(store)._looks["feed_lag"](look).findings == [], "now each has its place"
    finally:
        store.close()


def test_a_feed_that_nobody_reads_is_no_trouble(stage: Stage) -> None:
    submitted(stage.store, delay=1e6)
    stage.clock.advance(HOUR)
    turn(stage.store)
    assert open_ones(stage.store) == []


# --- the reason ----------------------------------------------------------------------------------------------------


def test_what_waits_on_purpose_is_said_so(stage: Stage) -> None:
    stage.store.pause(Pause("queue", "default", TENANT, by="dana", reason="we move"))
    submitted(stage.store)
    stage.clock.advance(301)
    turn(stage.store)

    [alert] = open_ones(stage.store)
    assert alert.severity == "info"
    assert "paused" in alert.message
    assert "dana" in alert.message
    stage.clock.advance(A_TURN)
    turn(stage.store)
    [again] = open_ones(stage.store)
    assert (again.severity, again.message) == ("info", alert.message), "the reason is asked for every few minutes"
    assert again.seen_at > alert.seen_at
    stage.clock.advance(300)
    turn(stage.store)
    assert "10m" in open_ones(stage.store)[0].message


# --- many at once --------------------------------------------------------------------------------------------------


def test_two_that_find_it_at_the_same_instant_open_one(stage: Stage) -> None:
    other = SqlStore(open_database(stage.url))
    start = threading.Barrier(2)
    rounds = 5
    opened: list[str] = []

    def see(store: SqlStore) -> None:
        for number in range(rounds):
            start.wait()
            opened.extend(each.subject for each in store.see_alerts("worker_silent", crowd(1, number)).opened)

    try:
        threads = [threading.Thread(target=see, args=(store,)) for store in (stage.store, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(opened) == [f"w{number}" for number in range(rounds)]
        assert len(open_ones(stage.store)) == rounds
    finally:
        other.close()


def test_of_all_who_look_one_has_a_rules_turn(stage: Stage) -> None:
    asked: list[str] = []

    def look(by: str) -> Callable[[RuleLook], RuleFindings]:
        def note(asked_for: RuleLook) -> RuleFindings:
            asked.append(by)
            return RuleFindings([])

        return note

    duties = {by: the_duty(stage.store, by, {"worker_silent": look(by)}) for by in ("ada", "bert")}
    for _ in range(3):
        for duty in duties.values():
            duty.tick(0.0, endless())
    assert asked == ["ada"]
    stage.clock.advance(A_TURN)
    duties["bert"].tick(0.0, endless())
    duties["ada"].tick(0.0, endless())
    assert asked == ["ada", "bert"]


def crowd(number: int, first: int = 0) -> list[AlertFinding]:
    return [finding("worker_silent", (f"w{n}",), f"w{n}", "gone", "/workers") for n in range(first, first + number)]


def test_no_rule_has_more_open_than_people_can_read(stage: Stage) -> None:
    duty = the_duty(stage.store, besides={"worker_silent": lambda look: RuleFindings(crowd(3 * MOST_OPEN))})
    for _ in range(3):
        duty.tick(0.0, endless())
        stage.clock.advance(A_TURN)

    found = stage.store.alerts(limit=1000)
    assert len(found) == MOST_OPEN + 1
    assert f"more than {MOST_OPEN}" in found[0].message
    assert len({alert.cause for alert in found}) == len(found)


def test_a_round_that_takes_several_turns_closes_nothing_before_its_end(stage: Stage) -> None:
    """Whoever has the next turn goes on where the last one came to."""
    places: list[str] = []

    def look(asked: RuleLook) -> RuleFindings:
        places.append(asked.place)
        if not asked.place:
            return RuleFindings(crowd(1), "half")
        return RuleFindings(crowd(1, 1))

    for by in ("ada", "bert", "carl", "dora"):
        the_duty(stage.store, by, {"worker_silent": look}).tick(0.0, endless())
        stage.clock.advance(CALM)
        assert len(open_ones(stage.store)) == (1 if by == "ada" else 2)
    assert places == ["", "half", "", "half"]


def test_a_turn_ends_with_its_time_and_the_others_come_next(stage: Stage) -> None:
    time = FakeClock()
    looked: list[str] = []

    def slow(rule: str) -> Callable[[RuleLook], RuleFindings]:
        def look(asked: RuleLook) -> RuleFindings:
            looked.append(rule)
            time.advance(1.0)
            return RuleFindings([])

        return look

    duty = the_duty(stage.store, besides={rule: slow(rule) for rule in RULES})
    for _ in range(len(RULES)):
        duty.tick(0.0, Budget(time, 0.9))
        stage.clock.advance(1)
    assert sorted(looked) == sorted(RULES), "each once: who had no turn is first the next time"


# --- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_rule_that_raises_keeps_no_other_from_its_turn_and_is_shown(stage: Stage) -> None:
    def broken(look: RuleLook) -> RuleFindings:
        raise RuntimeError("no such thing")

    duty = the_duty(stage.store, besides={"worker_silent": broken})
    mend = a_role_fails(stage)
    for _ in range(4):
        duty.tick(0.0, endless())
        stage.clock.advance(A_TURN)

    assert {alert.rule for alert in open_ones(stage.store)} == {"role_failing", "rule_failing"}
    [shown] = open_ones(stage.store, "rule_failing")
    assert "worker_silent" in shown.message
    assert "no such thing" in shown.message
    [stand] = [stand for stand in stage.store.alert_rules() if stand.failing_at is not None]
    assert (stand.rule, stand.failures) == ("worker_silent", 4)
    mend()
    stage.clock.advance(A_TURN)
    turn(stage.store)
    stage.clock.advance(CALM)
    turn(stage.store)
    assert open_ones(stage.store) == [], "it looks again"


def test_an_alert_that_the_database_refuses_keeps_no_other_from_being_opened(stage: Stage) -> None:
    refuse(stage.url, "unstuck_alerts", "NEW.subject = 'w3'")
    duty = the_duty(stage.store, besides={"worker_silent": lambda look: RuleFindings(crowd(8))})
    a_role_fails(stage)
    for _ in range(4):
        duty.tick(0.0, endless())
        stage.clock.advance(A_TURN)

    silent = {alert.subject for alert in open_ones(stage.store, "worker_silent")}
    assert silent == {f"w{n}" for n in range(8)} - {"w3"}
    assert len(open_ones(stage.store, "role_failing")) == 1
    [shown] = open_ones(stage.store, "rule_failing")
    assert "w3" in shown.message
    allow(stage.url, "unstuck_alerts")
    duty.tick(0.0, endless())
    assert len(open_ones(stage.store, "worker_silent")) == 8


def test_a_notification_that_the_database_refuses_keeps_no_alert_from_being_opened(stage: Stage) -> None:
    refuse(stage.url, "unstuck_notifications", "NEW.title <> ''")
    a_role_fails(stage)
    turn(stage.store)
    [alert] = open_ones(stage.store)
    assert alert.notification is None


def test_an_alert_that_somebody_holds_delays_nobody(server_url: str) -> None:
    """A person in psql: others are seen, opened and closed meanwhile, and so is it afterwards."""
    store = SqlStore(open_database(server_url))
    try:
        store.see_alerts("worker_silent", crowd(3))
        store.set_setting("alert_close_after", "0", "dana")
        with holding(server_url, "unstuck_alerts", "subject = 'w1'"):
            duty = the_duty(store, besides={"worker_silent": lambda look: RuleFindings(crowd(2, 1))})
            duty.tick(0.0, endless())
            assert {a.subject for a in open_ones(store, "worker_silent")} == {"w1", "w2"}
            assert store.close_alerts("worker_silent", store.now(), 0.0)[0].subject == "w2"
        assert store.close_alerts("worker_silent", store.now(), 0.0)[0].subject == "w1"
    finally:
        store.close()


def test_a_rule_whose_turn_somebody_holds_is_passed_by(server_url: str) -> None:
    store = SqlStore(open_database(server_url))
    try:
        store.add_alert_rules()
        a_worker(store, "ill", lease=1e9)
        with holding(server_url, "unstuck_alert_rules", "rule = 'worker_silent'"):
            turn(store)
        looked = {stand.rule for stand in store.alert_rules() if stand.looked_at is not None}
        assert looked == set(RULES) - {"worker_silent"}
    finally:
        store.close()


@pytest.fixture
def server_url(postgres_url: str) -> str:
    return postgres_url


def test_recoveries_that_cannot_be_counted_are_made_all_the_same(stage: Stage) -> None:
    refuse(stage.url, "unstuck_recoveries", "NEW.jobs > 0")
    worker = a_worker(stage.store, "frail", lease=1)
    claimed(stage.store, worker)
    stage.clock.advance(5)
    assert len(stage.store.recover_lost(0.0)) == 1


# --- what people do ------------------------------------------------------------------------------------------------


def test_a_muted_trouble_is_told_to_nobody_also_if_it_comes_again(stage: Stage) -> None:
    store, clock = stage.store, stage.clock
    mend = a_role_fails(stage)
    turn(store)
    [alert] = open_ones(store)
    store.mute_alert(alert.number, 2 * HOUR, "dana")
    assert store.notifications() == []
    assert [(stand.number, stand.muted) for stand in store.alert_stands()] == [(1, 1)]

    mend()
    clock.advance(CALM)
    turn(store)
    assert open_ones(store) == []
    a_role_fails(stage)
    clock.advance(A_TURN)
    turn(store)

    [again] = open_ones(store)
    assert again.number != alert.number
    assert (again.muted_until is not None, again.notification) == (True, None)
    assert store.notifications() == []
    assert len(told(store, "alert.opened")) == 1
    store.mute_alert(again.number, None, "dana")
    assert [stand.muted for stand in store.alert_stands()] == [0]


def test_the_first_to_take_note_is_kept_and_its_notification_is_noted(stage: Stage) -> None:
    a_role_fails(stage)
    turn(stage.store)
    [alert] = open_ones(stage.store)
    stage.store.ack_alert(alert.number, "dana")
    noted = stage.store.ack_alert(alert.number, "emil")
    assert (noted.acked_by, noted.closed_at) == ("dana", None)
    assert stage.store.notifications() == []
    assert [action.by for action in stage.store.audit(verb="alerts.ack")] == ["dana"]


def test_what_is_over_is_forgotten_after_a_while(stage: Stage) -> None:
    mend = a_role_fails(stage)
    turn(stage.store)
    mend()
    stage.clock.advance(CALM)
    turn(stage.store)
    assert stage.store.forget_alerts(WEEK) == 0
    stage.clock.advance(WEEK)
    a_role_fails(stage)
    turn(stage.store)
    assert stage.store.forget_alerts(WEEK) == 1
    assert len(stage.store.alerts(closed=True)) == 1, "the open one stays"


def test_a_tenant_sees_its_own(stage: Stage) -> None:
    submitted(stage.store, tenant="acme")
    submitted(stage.store)
    stage.clock.advance(301)
    a_role_fails(stage)
    turn(stage.store)
    assert {alert.tenant for alert in stage.store.alerts()} == {"acme", TENANT, "*"}
    assert [alert.tenant for alert in stage.store.alerts("acme")] == ["acme"]
    assert [notice.tenant for notice in stage.store.notifications("acme")] == ["acme"]


def test_a_turn_costs_the_same_on_a_quiet_database(stage: Stage) -> None:
    """A duty that finds nothing writes nothing but its turns."""
    turn(stage.store)
    assert ask(stage.url, "SELECT COUNT(*) FROM unstuck_alerts")[0][0] == 0
    assert ask(stage.url, "SELECT COUNT(*) FROM unstuck_events")[0][0] == 0
    assert TIMES.sweep * 6 == the_duty(stage.store).every


def test_who_was_frozen_says_nothing_about_the_turn_of_the_next(store: SqlStore, clock: StoreClock) -> None:
    store.add_alert_rules()
    frozen = store.take_alert_turn("job_queued", "ada", 30.0)
    assert frozen is not None
    clock.advance(A_TURN)
    present = store.take_alert_turn("job_queued", "bob", 30.0)
    assert present is not None
    assert not store.end_alert_turn(frozen, "", "RuntimeError: too late")
    [stand] = [each for each in store.alert_rules() if each.rule == "job_queued"]
    assert (stand.by, stand.error, stand.failures) == ("bob", None, 0)
    assert store.end_alert_turn(present, "acme")
    clock.advance(A_TURN)
    following = store.take_alert_turn("job_queued", "cy", 30.0)
    assert following is not None
    assert following.place == "acme"


def test_a_rule_about_one_state_reads_the_jobs_of_no_other(store: SqlStore, clock: StoreClock) -> None:
    """A step for each tenant, whatever states its jobs are in."""
    for tenant in ("acme", "zoo"):
        submitted(store, tenant=tenant, on_hold=True)
    clock.advance(DAY + 1)
    for state, jobs in (("PENDING", 1), ("PAUSED", 0)):
        first = store.resting_for(state, DAY)
        assert first is not None
        second = store.resting_for(state, DAY, first.tenant)
        assert second is not None
        assert [(each.tenant, each.jobs) for each in (first, second)] == [("acme", jobs), ("zoo", jobs)]
        assert store.resting_for(state, DAY, second.tenant) is None
