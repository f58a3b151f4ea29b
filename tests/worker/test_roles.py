"""Which roles of a worker fail, and what follows from it."""

from __future__ import annotations

from unstuck.model.errors import SchemaMismatch, StoreBusy, StoreUnavailable
from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.worker.roles import VITAL, cannot_settle, describe_roles, failing, is_hopeless, lasting, unfit

TIMES = Times()
NOW = 1000.0
AWAY, BUSY, SCHEMA, MISTAKE = (
    StoreUnavailable("away"),
    StoreBusy("held"),
    SchemaMismatch("no such table"),
    ValueError("a mistake of ours"),
)


def a_trouble(error: Exception, seconds: float, failures: int = 10) -> Trouble:
    since = NOW - seconds
    first = Trouble.after(None, error, since)
    return Trouble(error, since, failures, first.lasting_since)


# --- shown ----------------------------------------------------------------------------------------------------------
def test_what_fails_for_longer_than_a_moment_is_shown_the_longest_first() -> None:
    troubles = {
        "claim": a_trouble(AWAY, 3.0),
        "settle": a_trouble(SCHEMA, 8.04, failures=12),
        "flow_calls": a_trouble(AWAY, 1.0),
        "janitor/retention": a_trouble(AWAY, 60.0, failures=1),
    }
    assert describe_roles(troubles, NOW) == [
        {"name": "settle", "failing_for": 8.0, "failures": 12, "error": "SchemaMismatch: no such table"},
        {"name": "claim", "failing_for": 3.0, "failures": 10, "error": "StoreUnavailable: away"},
    ]


def test_what_is_shown_is_bounded_in_number_and_length_and_stands_on_one_line() -> None:
    troubles = {f"janitor/{n:03}": a_trouble(ValueError("x\ny" * 5000), 10.0) for n in range(200)}
    shown = describe_roles(troubles, NOW)
    assert len(shown) == 20
    assert all(len(role["error"]) <= 300 and "\n" not in role["error"] for role in shown)


def test_nothing_fails_nothing_is_shown() -> None:
    assert failing({}, NOW) == []


# --- settles --------------------------------------------------------------------------------------------------------
def test_a_worker_whose_settles_fail_while_the_store_takes_its_beats_cannot_settle() -> None:
    """Whatever the error: what it claimed now it could not finish."""
    for error in (SCHEMA, MISTAKE, BUSY, AWAY):
        assert cannot_settle({"settle": a_trouble(error, 4.0)}, NOW - 1.0, TIMES, NOW)


def test_it_is_no_fault_of_the_settles_while_no_beat_lands_either() -> None:
    assert not cannot_settle({"settle": a_trouble(AWAY, 20.0)}, NOW - 20.5, TIMES, NOW)


def test_a_settle_may_take_a_whole_store_call_and_a_moment() -> None:
    assert not cannot_settle({"settle": a_trouble(AWAY, 3.9)}, NOW, TIMES, NOW)
    assert not cannot_settle({"settle": a_trouble(AWAY, 10.0, failures=1)}, NOW, TIMES, NOW)
    assert not cannot_settle({"claim": a_trouble(SCHEMA, 10.0)}, NOW, TIMES, NOW)


def test_who_leaves_waits_for_its_settles_but_not_once_they_failed_for_a_whole_lease() -> None:
    assert not is_hopeless({"settle": a_trouble(SCHEMA, TIMES.lease - 0.1)}, TIMES, NOW)
    assert is_hopeless({"settle": a_trouble(BUSY, TIMES.lease)}, TIMES, NOW)
    assert not is_hopeless({"claim": a_trouble(SCHEMA, 3 * TIMES.lease)}, TIMES, NOW)


# --- for good -------------------------------------------------------------------------------------------------------
def test_what_fails_for_longer_than_a_lease_and_not_for_the_store_fails_for_good() -> None:
    troubles = {"settle": a_trouble(SCHEMA, TIMES.lease), "janitor/timers": a_trouble(MISTAKE, TIMES.lease + 1)}
    assert {role.name for role in lasting(troubles, TIMES, NOW)} == {"settle", "janitor/timers"}
    assert lasting({"settle": a_trouble(SCHEMA, TIMES.lease - 0.1)}, TIMES, NOW) == []


def test_an_outage_of_the_store_however_long_makes_no_worker_unfit() -> None:
    troubles = {name: a_trouble(AWAY, 1e6) for name in VITAL}
    assert lasting(troubles, TIMES, NOW) == []
    assert unfit(troubles, TIMES, NOW) is None


def test_a_worker_is_unfit_without_any_of_its_vital_roles() -> None:
    for name in VITAL:
        role = unfit({name: a_trouble(MISTAKE, TIMES.lease)}, TIMES, NOW)
        assert role is not None
        assert role.name == name
        assert role.sentence(NOW) == f"its {name} has failed for 30 s: ValueError: a mistake of ours"


def test_a_duty_and_a_chore_make_no_worker_unfit() -> None:
    """Every other worker does them as well."""
    troubles = {"janitor/zombies": a_trouble(SCHEMA, 1e6), "claim/ingest": a_trouble(MISTAKE, 1e6)}
    assert unfit(troubles, TIMES, NOW) is None
