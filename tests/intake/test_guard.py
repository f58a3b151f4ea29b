"""The guard's door: names, tenants and values are checked, and a lost answer is asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import TENANT, submitted
from unstuck.intake.gates import Gates
from unstuck.intake.guard import GuardVerbs
from unstuck.model.errors import InvalidInput, NotBlacklisted, OutcomeUnknown, UnknownNotification, UnknownSetting
from unstuck.model.guard import BlacklistEntry
from unstuck.store.port import EVERY
from unstuck.store.sql_store import SqlStore

THRESHOLD = "stuck_circuit_breaker_threshold"


@pytest.fixture
def guard(store: SqlStore) -> GuardVerbs:
    return GuardVerbs(store, by="kim")


def test_without_a_tenant_all_are_meant_and_who_has_one_means_that(store: SqlStore, guard: GuardVerbs) -> None:
    submitted(store, tenant="acme")
    own = GuardVerbs(store, own="acme", by="lee")
    assert guard.add("deploy", "x")[0].tenant == EVERY
    assert own.add("deploy", "x")[0].tenant == "acme"
    assert guard.add("deploy", "x", tenant=TENANT)[0].tenant == TENANT
    assert {entry.tenant for entry in own.entries()} == {"acme", EVERY}
    assert [entry.tenant for entry in own.remove("deploy")] == ["acme"]
    with pytest.raises(
        NotBlacklisted, match=r"not for tenant acme; it is for every tenant \(omit the tenant\), default"
    ):
        own.remove("deploy")
    assert {entry.tenant for entry in guard.remove("deploy")} == {TENANT, EVERY}
    with pytest.raises(NotBlacklisted, match="blacklist list"):
        guard.remove("deploy")


@pytest.mark.parametrize("name", ["", " deploy", "*", None, 7, "x" * 201])
def test_a_name_that_is_none_is_refused(guard: GuardVerbs, name: Any) -> None:
    for verb in (guard.add, guard.remove):
        with pytest.raises(InvalidInput):
            verb(name)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        (THRESHOLD, "7", 7),
        (THRESHOLD, 0, 0),
        ("stuck_circuit_breaker_window_minutes", "2.5", 2.5),
        ("breaker_counts_crashes", "on", True),
        ("breaker_counts_losses", False, False),
        ("breaker_probe_after", "none", None),
        ("breaker_probe_after", None, None),
        ("breaker_probe_after", "90", 90.0),
    ],
)
def test_a_setting_is_kept_as_what_it_means(guard: GuardVerbs, name: str, given: Any, kept: Any) -> None:
    assert guard.set(name, given).value == kept
    assert (guard.get(name).value, guard.get(name).set_by) == (kept, "kim")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        (THRESHOLD, "many", "is not a whole number between 0 and 1000000"),
        (THRESHOLD, True, "is not a whole number"),
        (THRESHOLD, -1, "is not a whole number"),
        (THRESHOLD, 2.5, "is not a whole number"),
        ("stuck_circuit_breaker_window_minutes", 0, "is not a number between 0.01 and 43,200"),
        ("stuck_circuit_breaker_window_minutes", float("nan"), "is not a number"),
        ("breaker_counts_crashes", "maybe", "is not true or false"),
        ("breaker_probe_after", "soon", "is not a number between 1 and 2,592,000, or none"),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_nothing_changes(
    guard: GuardVerbs, name: str, value: Any, problem: str
) -> None:
    before = guard.get(name)
    with pytest.raises(InvalidInput, match=problem):
        guard.set(name, value)
    assert guard.get(name) == before
    assert guard.audit() == []


def test_a_setting_nobody_knows_is_named_with_the_nearest(guard: GuardVerbs) -> None:
    with pytest.raises(UnknownSetting, match=f"did you mean {THRESHOLD}"):
        guard.set("stuck_circuit_breaker_treshold", 5)
    with pytest.raises(UnknownSetting):
        guard.get("x")
    with pytest.raises(UnknownSetting):
        guard.reset("x")


def test_numbers_and_limits_that_cannot_be_are_refused(guard: GuardVerbs) -> None:
    with pytest.raises(UnknownNotification):
        guard.ack(99)
    bad: Any = "seven"
    for verb in (lambda: guard.ack(bad), lambda: guard.audit(limit=0), lambda: guard.history(before=-1)):
        with pytest.raises(InvalidInput):
            verb()


class Forgetful:
    """A store whose first answer is lost on the way back."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._is_lost = False

    def __getattr__(self, name: str) -> Any:
        def ask(*args: Any, **more: Any) -> Any:
            answer = getattr(self._store, name)(*args, **more)
            if not self._is_lost:
                self._is_lost = True
                raise OutcomeUnknown("lost")
            return answer

        return ask


def test_a_lost_answer_is_asked_for_again(store: SqlStore) -> None:
    forgetful: Any = Forgetful(store)
    assert GuardVerbs(forgetful, by="kim").add("deploy", "x")[1]
    forgetful = Forgetful(store)
    removed: list[BlacklistEntry] = GuardVerbs(forgetful, by="kim").remove("deploy")
    assert [entry.removed_by for entry in removed] == ["kim"]
    assert len(store.blacklist_history()) == 1


def test_who_lifts_a_pause_or_a_limit_is_in_the_audit(store: SqlStore, guard: GuardVerbs) -> None:
    gates = Gates(store, by="lee")
    gates.pause("queue", "mail")
    gates.unpause("queue", "mail")
    gates.limit("queue", "mail", concurrency=1)
    gates.unlimit("queue", "mail")
    assert [(line.verb, line.by) for line in guard.audit(subject="mail")] == [
        ("queues.unlimit", "lee"),
        ("queues.limit", "lee"),
        ("queues.unpause", "lee"),
        ("queues.pause", "lee"),
    ]
