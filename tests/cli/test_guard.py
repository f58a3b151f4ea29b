"""unstuck blacklist, settings, notifications, audit: on both databases, for people and for programs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.support.builders import TENANT, a_job, a_worker, claim_all
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore

STUCK = Stuck(ErrorInfo("ExecutionStuck", "did not stop", "stack"), pid=1)


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


def trip(store: SqlStore, workflow: str = "add", times: int = 5) -> None:
    ada = a_worker(store)
    store.submit([a_job(workflow=workflow) for _ in range(times)])
    store.settle(ada.number, [Report(attempt.ref, STUCK) for attempt in claim_all(store, ada)])


def test_a_workflow_is_shut_out_and_let_in_again(unstuck: Command) -> None:
    """A35, A36"""
    job = unstuck.enqueue("add", "1")
    unstuck("jobs", "cancel", job)
    added = unstuck("blacklist", "add", "add", "--reason", "adds wrongly")
    assert (added.code, "workflow add is blacklisted for every tenant" in added.out) == (0, True), added.err

    refused = unstuck("enqueue", "add", "1", "--app", "tests.cli.shop:app")
    assert refused.code == 4
    assert refused.err.startswith("unstuck: Workflow is blacklisted. add was shut out for every tenant by ")
    assert "(manual:adds wrongly); to lift it: unstuck blacklist remove add" in refused.err
    assert unstuck("jobs", "retry", job).code == 4

    again = unstuck("blacklist", "add", "add")
    assert (again.code, "was blacklisted already" in again.err) == (0, True)
    [shown] = unstuck("blacklist", "--json").lines
    assert (shown["workflow"], shown["tenant"], shown["active"], shown["reason"]) == (
        "add",
        "*",
        True,
        "manual:adds wrongly",
    )

    removed = unstuck("blacklist", "remove", "add")
    assert (removed.code, "off the blacklist for every tenant" in removed.out) == (0, True), removed.err
    assert "nothing is blacklisted" in unstuck("blacklist").out + unstuck("blacklist").err
    assert unstuck("jobs", "retry", job).code == 0
    [past] = unstuck("blacklist", "history", "add", "--json").lines
    assert (past["active"], past["removed_by"].endswith("(cli)")) == (False, True)
    missing = unstuck("blacklist", "remove", "add")
    assert (missing.code, "is not on the blacklist" in missing.err) == (3, True)
    verbs = [line["verb"] for line in unstuck("audit", "--json").lines]
    assert verbs == ["jobs.resume", "blacklist.remove", "blacklist.add", "jobs.cancel"]


def test_a_workflow_tells_how_far_its_breaker_is_from_shutting_it_out(unstuck: Command, store: SqlStore) -> None:
    store.register_workflows([WorkflowRecord("add", "v1", "default", Policy(), {})])
    assert "breaker    0 of 5 within 1h" in unstuck("workflows", "list", "add").out
    trip(store, times=2)
    shown = unstuck("workflows", "list", "add").out
    assert "breaker    2 of 5 within 1h" in shown
    assert shown.count("counts no more in ") == 2
    [told] = unstuck("workflows", "list", "add", "--json").lines
    assert (told["breaker"]["number"], len(told["breaker"]["marks"])) == (2, 2)
    assert told["breaker"]["marks"][0]["job"] in shown
    store.set_setting("stuck_circuit_breaker_threshold", "0", "kim")
    assert "breaker    2, never too many, within 1h" in unstuck("workflows", "list", "add").out


def test_a_trip_is_told_in_words_and_noted(unstuck: Command, store: SqlStore) -> None:
    """A33"""
    trip(store)
    listed = unstuck("blacklist").out
    assert "auto:stuck:5" in listed
    assert "system" in listed
    [news] = unstuck("notifications", "--json").lines
    assert (news["title"], news["workflow"], news["count"]) == ("Workflow Auto-Blacklisted", "add", 5)
    assert (news["severity"], news["link"]) == ("warning", "/platform/diagnostics?tab=blacklist")
    assert unstuck("notifications", "ack", str(news["number"])).code == 0
    assert unstuck("notifications", "--json").lines == []
    assert len(unstuck("notifications", "--all", "--json").lines) == 1
    assert unstuck("notifications", "ack", "99").code == 3
    assert unstuck("notifications", "ack", "x").code == 2
    refused = unstuck("enqueue", "add", "1", "--app", "tests.cli.shop:app")
    assert "Workflow is blacklisted due to repeated stuck executions." in refused.err


def test_a_tenant_named_by_flag_or_environment_is_the_one_that_is_meant(unstuck: Command, store: SqlStore) -> None:
    """A37: other tenants unharmed"""
    store.submit([a_job(tenant="acme")])
    assert unstuck("blacklist", "add", "add", "--tenant", "acme").code == 0
    unstuck.enqueue("add", "1")
    assert unstuck("blacklist", "list", "--json", UNSTUCK_TENANT=TENANT).lines == []
    assert unstuck("blacklist", "remove", "add", UNSTUCK_TENANT=TENANT).code == 3
    assert unstuck("blacklist", "remove", "add", UNSTUCK_TENANT="acme").code == 0
    assert unstuck("blacklist", "add", "add", "--tenant", "nobody").code == 3


@pytest.mark.parametrize("shell", ["", TENANT, "acme"])
def test_the_command_that_lifts_an_entry_works_as_it_is_told_in_any_shell(
    unstuck: Command, store: SqlStore, shell: str
) -> None:
    """A36: also where the environment names a tenant, and for a name that looks like an option"""
    store.submit([a_job(tenant="acme")])
    around = {"UNSTUCK_TENANT": shell} if shell else {}
    for name in ("add", "-v", "two words"):
        for whose in (("--tenant", TENANT), ("--tenant", "acme"), ("--all-tenants",)):
            told = unstuck("blacklist", "add", *whose, "--", name).err
            command = shlex.split(told.partition("lift it: ")[2])
            assert command[0] == "unstuck"
            lifted = unstuck(*command[1:], **around)
            assert (lifted.code, store.blacklist()) == (0, []), lifted.err
    assert unstuck("blacklist", "remove", "add", "--tenant", TENANT, "--all-tenants").code == 2


def test_settings_are_shown_set_and_taken_back(unstuck: Command, store: SqlStore) -> None:
    """A37"""
    name = "stuck_circuit_breaker_threshold"
    assert unstuck("settings", "get", name).word == "5"
    assert unstuck("settings", "set", name, "3").word == f"{name} is 3"
    [shown] = [line for line in unstuck("settings", "--json").lines if line["name"] == name]
    assert (shown["value"], shown["default"], shown["set_by"].endswith("(cli)")) == (3, 5, True)
    trip(store, times=3)
    assert [entry.reason for entry in store.blacklist()] == ["auto:stuck:3"]
    assert unstuck("settings", "set", name, "--default").word == f"{name} is 5 (the default)"
    assert name in unstuck("settings").out
    for words in (("set", name, "many"), ("set", name), ("set", name, "3", "--default")):
        assert unstuck("settings", *words).code == 2
    unknown = unstuck("settings", "get", "threshold")
    assert (unknown.code, "there is no runtime setting threshold" in unknown.err) == (3, True)


def test_names_of_settings_are_completed(unstuck: Command) -> None:
    assert unstuck("__complete", "settings", "get", "breaker_p").word == "breaker_probe_after"
