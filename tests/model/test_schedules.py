"""Ticks of cron lines and intervals, over both clock changes, and what is done about those that were missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.model.errors import InvalidInput
from unstuck.model.schedules import (
    ALIASES,
    MOST_CAUGHT_UP,
    ScheduleRules,
    ScheduleSpec,
    TickStep,
    between,
    checked,
    delay,
    explained,
    next_tick,
    plan,
    ticks,
)

RULES = ScheduleRules()
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
#: An hour, an hour, and half an hour; each with the nights on which its clocks go forward and back.
ZONES = {
    "Europe/Berlin": (datetime(2026, 3, 29), datetime(2026, 10, 25)),
    "America/New_York": (datetime(2026, 3, 8), datetime(2026, 11, 1)),
    "Australia/Lord_Howe": (datetime(2026, 10, 4), datetime(2026, 4, 5)),
}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(line: str, zone: str = "UTC", **more: Any) -> ScheduleSpec:
    return checked(ScheduleSpec("w", cron=line, zone=zone, **more), NOW, RULES)


def every(seconds: float, **more: Any) -> ScheduleSpec:
    return checked(ScheduleSpec("w", every=seconds, **more), NOW, RULES)


def local(spec: ScheduleSpec, since: datetime, days: int) -> list[str]:
    """The ticks of these days of its zone, as a clock on the wall shows them."""
    zone = ZoneInfo(spec.zone)
    begin, end = since.replace(tzinfo=zone), (since + timedelta(days=days)).replace(tzinfo=zone)
    found = takewhile(lambda tick: tick < end, ticks(spec, begin - timedelta(microseconds=1)))
    return [tick.astimezone(zone).strftime("%d %H:%M%z") for tick in found]


# --- both clock changes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Europe/Berlin", ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"]),
        ("America/New_York", ["07 02:30-0500", "08 03:00-0400", "09 02:30-0400"]),
    ],
)
def test_a_time_of_day_that_is_left_out_comes_when_its_hour_would_have_ended(zone: str, shown: list[str]) -> None:
    forward, _ = ZONES[zone]
    assert local(cron("30 2 * * *", zone), forward - timedelta(days=1), 3) == shown


def test_where_half_an_hour_is_left_out_it_comes_half_an_hour_later_at_most() -> None:
    forward, _ = ZONES["Australia/Lord_Howe"]
    shown = local(cron("15 2 * * *", "Australia/Lord_Howe"), forward - timedelta(days=1), 3)
    assert shown == ["03 02:15+1030", "04 02:30+1100", "05 02:15+1100"]


@pytest.mark.parametrize(
    ("zone", "line", "shown"),
    [
        ("Europe/Berlin", "30 2 * * *", ["24 02:30+0200", "25 02:30+0200", "26 02:30+0100"]),
        ("America/New_York", "30 1 * * *", ["31 01:30-0400", "01 01:30-0400", "02 01:30-0500"]),
        ("Australia/Lord_Howe", "45 1 * * *", ["04 01:45+1100", "05 01:45+1100", "06 01:45+1030"]),
    ],
)
def test_a_time_of_day_that_comes_twice_is_taken_the_first_time(zone: str, line: str, shown: list[str]) -> None:
    _, back = ZONES[zone]
    assert local(cron(line, zone), back - timedelta(days=1), 3) == shown


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("line", ["*/15 * * * *", "*/20 * * * *", "7 * * * *", "0 */30 * * * *"])
def test_what_begins_with_a_star_is_a_distance_and_comes_in_each_hour_there_is(zone: str, line: str) -> None:
    """By the table: every minute of the time line whose clock on the wall shows it."""
    fields = line.split()
    minutes = _minutes(fields[1] if len(fields) == 6 else fields[0])
    for night in ZONES[zone]:
        begin = (night - timedelta(days=1)).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        line_of_time = [begin + timedelta(minutes=place) for place in range(3 * 24 * 60)]
        shown = [when for when in line_of_time if when.astimezone(ZoneInfo(zone)).minute in minutes]
        assert between(cron(line, zone), begin, line_of_time[-1], 10_000) == shown


def _minutes(field: str) -> set[int]:
    return set(range(0, 60, int(field[2:]))) if field.startswith("*/") else {int(field)}


@given(
    zone=st.sampled_from(sorted(ZONES)),
    is_forward=st.booleans(),
    hour=st.integers(0, 5),
    minute=st.integers(0, 59),
)
def test_a_time_of_day_comes_once_each_day_whatever_the_clocks_do(
    zone: str, is_forward: bool, hour: int, minute: int
) -> None:
    spec = cron(f"{minute} {hour} * * *", zone)
    night = ZONES[zone][0 if is_forward else 1]
    days = [tick[:2] for tick in local(spec, night - timedelta(days=2), 5)]
    assert days == [f"{(night + timedelta(days=d)).day:02}" for d in range(-2, 3)]


@given(
    zone=st.sampled_from(sorted(ZONES)),
    line=st.sampled_from(["30 2 * * *", "*/10 * * * *", "0 0 * * *", "15 1-3 * * *", "0 3 L * *", "59 23 * * 1-5"]),
    offset=st.integers(0, 370 * 86400),
)
def test_wherever_one_begins_to_look_the_ticks_are_the_same(zone: str, line: str, offset: int) -> None:
    """Whoever fires a tick computes the next from it, and from nothing else."""
    spec, begin = cron(line, zone), datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=offset)
    together = list(islice(ticks(spec, begin), 12))
    one_by_one = [begin]
    for _ in together:
        following = next_tick(spec, one_by_one[-1])
        assert following is not None
        one_by_one.append(following)
    assert one_by_one[1:] == together
    assert all(later > tick for tick, later in zip([begin, *together], together, strict=False))


# --- lines and intervals --------------------------------------------------------------------------------------------


def test_an_interval_is_the_same_whoever_declares_it() -> None:
    assert list(islice(ticks(every(3600), at("2026-06-01T12:34:56")), 2)) == [
        at("2026-06-01T13:00"),
        at("2026-06-01T14:00"),
    ]
    begun = every(90, begin_at=at("2026-06-01T12:00:10"))
    assert list(islice(ticks(begun, NOW), 2)) == [at("2026-06-01T12:00:10"), at("2026-06-01T12:01:40")]


def test_it_begins_and_ends_when_it_says() -> None:
    spec = cron("0 * * * *", begin_at=at("2026-06-01T14:00"), end_at=at("2026-06-01T16:00"))
    assert list(ticks(spec, NOW)) == [at(f"2026-06-01T{hour}:00") for hour in (14, 15, 16)]
    assert next_tick(spec, at("2026-06-01T16:00")) is None


@pytest.mark.parametrize("alias", ALIASES)
def test_names_of_lines_are_known(alias: str) -> None:
    assert cron(alias.upper()).cron == ALIASES[alias]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, "say cron= or every="),
        ({"cron": "0 3 * * *", "every": 60}, "and not both"),
        ({"cron": "61 * * * *"}, "bad minute"),
        ({"cron": "0 3 * *"}, "wrong number of fields"),
        ({"cron": ""}, "wrong number of fields"),
        ({"cron": "0 0 30 2 *"}, "bad day-of-month"),
        ({"cron": "0 0 * * FUNDAY"}, "bad day-of-week"),
        ({"cron": "* * * * * * *"}, "wrong number of fields"),
        ({"cron": "0 0 1/LW * *"}, "a line has five fields"),
        ({"cron": "0 3 * * *", "zone": "Mars/Olympus"}, "no time zone"),
        ({"cron": "0 3 * * *", "zone": "../../etc/passwd"}, "no time zone"),
        ({"cron": "0 3 * * *", "zone": ""}, "no time zone"),
        ({"cron": "0 3 * * *", "zone": "localtime"}, "not the same on every machine"),
        ({"cron": "0 3 * * *", "zone": "right/Europe/Berlin"}, "write the zone that is meant, like Europe/Berlin"),
        ({"cron": "0 3 * * *", "zone": 5}, "name of a time zone"),
        ({"cron": 5}, "not a text"),
        ({"every": 0}, "number of seconds"),
        ({"every": float("nan")}, "number of seconds"),
        ({"every": 0.5}, "schedule_min_interval"),
        ({"every": 60, "jitter": -1}, "jitter"),
        ({"every": 60, "overlap": "maybe"}, "allow, skip, queue, cancel"),
        ({"every": 60, "catch_up": "some"}, "none, last, all"),
        ({"every": 60, "catch_up_most": 0}, "catch_up_most"),
        ({"every": 60, "catch_up_most": True}, "catch_up_most"),
        ({"every": 60, "begin_at": datetime(2026, 1, 1)}, "with its zone"),
        ({"every": 60, "begin_at": NOW, "end_at": NOW - timedelta(days=1)}, "before it begins"),
        ({"every": 60, "begin_at": datetime.min.replace(tzinfo=UTC)}, "between 1970 and"),
        ({"cron": "0 3 * * *", "end_at": datetime.max.replace(tzinfo=UTC)}, "between 1970 and"),
        ({"every": 0.0004}, "number of seconds"),
        ({"every": 60, "tick_as": "not a name"}, "name of an argument"),
        ({"every": 60, "tick_as": "day", "kwargs": {"day": 1}}, "give already"),
    ],
)
def test_what_nobody_can_go_by_is_refused_with_the_reason(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        checked(ScheduleSpec("w", **said), NOW, RULES)


@given(st.text(max_size=30))
def test_any_text_in_place_of_a_line_is_a_rule_or_an_error_of_ours(text: str) -> None:
    try:
        spec = checked(ScheduleSpec("w", cron=text), NOW, RULES)
    except InvalidInput:
        return
    tick = next_tick(spec, NOW)
    assert tick is not None
    assert tick > NOW


def test_the_least_interval_holds_for_lines_with_seconds_too() -> None:
    rules = ScheduleRules(min_interval=5.0)
    with pytest.raises(InvalidInput, match=r"1 s apart; schedule_min_interval=5"):
        checked(ScheduleSpec("w", cron="0,1 * * * * *"), NOW, rules)
    assert checked(ScheduleSpec("w", cron="*/5 * * * * *"), NOW, rules)


@given(
    tags=st.lists(st.text(max_size=5), max_size=3),
    kwargs=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=3),
    jitter=st.sampled_from([0.0, 1.5, 60.0]),
    begin=st.none() | st.just(NOW),
)
def test_what_is_kept_reads_back_as_it_was(
    tags: list[str], kwargs: dict[str, Any], jitter: float, begin: datetime | None
) -> None:
    spec = ScheduleSpec("w", cron="0 3 * * *", tags=tuple(tags), kwargs=kwargs, jitter=jitter, begin_at=begin)
    assert ScheduleSpec.from_json(spec.to_json()) == spec


def test_a_rule_is_told_in_words() -> None:
    assert explained(cron("0 3 * * *", "Europe/Berlin")) == "At 03:00 every day, Europe/Berlin"
    assert explained(every(90)) == "Every 1m 30s"


# --- what is made up for --------------------------------------------------------------------------------------------

HOURLY = "0 * * * *"


def fired(steps: list[TickStep]) -> list[datetime]:
    return [step.tick for step in steps if not step.is_missed]


def missed(steps: list[TickStep]) -> list[tuple[datetime | None, datetime, int]]:
    return [(step.first, step.tick, step.ticks) for step in steps if step.is_missed]


def test_a_tick_on_time_is_fired_whatever_is_made_up_for() -> None:
    for rule in ("none", "last", "all"):
        steps = plan(cron(HOURLY, catch_up=rule), NOW, NOW + timedelta(seconds=20), 30)
        assert steps == [TickStep(NOW, NOW + timedelta(hours=1))]
    assert plan(cron(HOURLY), NOW, NOW - timedelta(seconds=1), 30) == []


@pytest.mark.parametrize(("rule", "count"), [("none", 0), ("last", 1), ("all", 5)])
def test_after_five_hours_of_outage(rule: Any, count: int) -> None:
    now = NOW + timedelta(hours=4, minutes=30)
    steps = plan(cron(HOURLY, catch_up=rule), NOW, now, 30)

    hours = [NOW + timedelta(hours=h) for h in range(5)]
    assert fired(steps) == hours[5 - count :]
    assert missed(steps) == ([(NOW, hours[4 - count], 5 - count)] if count < 5 else [])
    assert steps[-1].next == NOW + timedelta(hours=5)
    assert [step.next for step in steps[:-1]] == [step.tick for step in steps[1:]]


def test_all_has_a_cap_and_the_newest_count() -> None:
    steps = plan(every(60, catch_up="all", catch_up_most=3), NOW, NOW + timedelta(minutes=10, seconds=40), 30)
    assert fired(steps) == [NOW + timedelta(minutes=m) for m in (8, 9, 10)]
    assert missed(steps) == [(NOW, NOW + timedelta(minutes=7), 8)]


def test_where_one_comes_on_time_the_last_missed_is_not_made_up_for() -> None:
    steps = plan(every(60), NOW, NOW + timedelta(minutes=2, seconds=10), 30)
    assert (fired(steps), missed(steps)) == (
        [NOW + timedelta(minutes=2)],
        [(NOW, NOW + timedelta(minutes=1), 2)],
    )


@pytest.mark.parametrize("spec", [every(1), cron("* * * * * *"), cron("* * * * *", "Europe/Berlin")])
@pytest.mark.parametrize("rule", ["none", "last", "all"])
def test_an_outage_of_a_year_costs_one_look(spec: ScheduleSpec, rule: Any) -> None:
    from dataclasses import replace

    now = NOW + timedelta(days=365, seconds=0.5)
    steps = plan(replace(spec, catch_up=rule, catch_up_most=MOST_CAUGHT_UP), NOW, now, 30)

    assert len(steps) <= MOST_CAUGHT_UP + 40
    assert steps[0].is_missed
    assert steps[0].first == NOW
    assert steps[0].ticks >= 1000
    last = steps[-1]
    assert last.next is not None
    assert last.tick <= now < last.next
    assert len(fired(steps)) >= (MOST_CAUGHT_UP if rule == "all" else 0)


@given(
    seconds=st.integers(1, 7200),
    outage=st.integers(0, 90_000),
    rule=st.sampled_from(["none", "last", "all"]),
    most=st.integers(1, 50),
    jitter=st.sampled_from([0.0, 0.9]),
)
def test_no_tick_is_lost_or_met_twice(seconds: int, outage: int, rule: Any, most: int, jitter: float) -> None:
    """Every tick that is due is either fired or among those let go of; the next plan begins where this one ends."""
    spec = every(seconds, catch_up=rule, catch_up_most=most, jitter=jitter)
    first, now = next_tick(spec, NOW), NOW + timedelta(seconds=outage)
    assert first is not None
    steps = plan(spec, first, now, 30, lambda tick: delay(7, tick, jitter))
    if not steps:
        assert first + delay(7, first, jitter) > now
        return
    assert steps[0].tick == first or steps[0].first == first
    for step, following in pairwise(steps):
        assert step.next == following.tick
    last = steps[-1].next
    assert last is not None
    assert last + delay(7, last, jitter) > now or last > now - timedelta(seconds=1)
    covered = sum(step.ticks for step in steps)
    assert covered == len(between(spec, first, steps[-1].tick, 100_000)) or covered >= 1000


def test_jitter_is_the_same_whoever_asks_and_other_schedules_are_elsewhere() -> None:
    spread = {delay(number, NOW, 60.0) for number in range(200)}
    assert all(timedelta() <= found < timedelta(seconds=60) for found in spread)
    assert len(spread) > 190
    assert delay(3, NOW, 60.0) == delay(3, NOW, 60.0) != delay(3, NOW + timedelta(hours=1), 60.0)
    assert delay(3, NOW, 0.0) == timedelta()
