"""unstuck approvals: the questions of jobs on the command line, on both databases."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.command import Command
from tests.support.parking import Stage
from unstuck.store.sql_store import SqlStore

KEYS = {
    "job", "workflow", "tenant", "key", "question", "who", "asked_at", "until_at", "on_timeout", "cursor",
}  # fmt: skip


@pytest.fixture
def stage(store: SqlStore) -> Stage:
    return Stage(store)


def test_what_waits_for_a_decision_is_shown_with_the_commands_to_decide(unstuck: Command, stage: Stage) -> None:
    empty = unstuck("approvals")
    assert (empty.code, empty.out, empty.err) == (0, "", "nothing waits for a decision\n")
    job = stage.asks(
        "Deploy shop 1.4?\nIt is Friday. \x1b[2J", who=("kim", "lee"), on_timeout="reject", of={"workflow": "deploy"}
    )

    shown = unstuck("approvals").out

    assert shown.startswith("Deploy shop 1.4?\nIt is Friday. \\x1b[2J\n")
    assert f"job       {job}  deploy" in shown
    assert "ago, of kim, lee" in shown
    assert "then it counts as rejected" in shown
    yes, no = (line.split(maxsplit=1)[1] for line in shown.splitlines() if line.strip().startswith(("yes ", "no ")))
    assert yes == f"unstuck approvals approve {job} --key 'approval#1'"
    assert no == f"unstuck approvals reject {job} --key 'approval#1'"
    decided = unstuck(*shlex.split(yes)[1:], "--by", "kim", "--comment", "go")
    assert (decided.code, decided.out) == (0, "approved by kim: Deploy shop 1.4?\nIt is Friday. \\x1b[2J\n"), (
        decided.err
    )
    assert unstuck("approvals").err == "nothing waits for a decision\n"


def test_a_decision_reaches_history_and_audit(unstuck: Command, store: SqlStore, stage: Stage) -> None:
    job = stage.asks("Deploy?")
    decided = unstuck("approvals", "reject", job[:-3], "--by", "kim", "--comment", "not today", "--json").object
    assert (decided["job"], decided["answer"], decided["answered_by"], decided["comment"]) == (
        job,
        "rejected",
        "kim",
        "not today",
    )
    store.ingest()
    told = unstuck("jobs", "history", job).out
    assert "rejected" in told
    assert "kim" in told
    assert "not today" in told
    [line] = unstuck("audit", "--verb", "approvals", "--json").lines
    assert (line["by"], line["subject"]) == ("kim", job)


def test_lists_are_for_programs_too_and_paged(unstuck: Command, stage: Stage) -> None:
    first, second = stage.asks("1?"), stage.asks("2?")
    stage.asks("3?", of={"tenant": "acme"})
    lines = unstuck("approvals", "list", "--json").lines
    assert [(line["job"], line["question"]) for line in lines] == [(first, "1?"), (second, "2?")]
    assert all(line.keys() == KEYS for line in lines)
    page = unstuck("approvals", "list", "--limit", "1", "--json")
    assert page.object["job"] == first
    told, cursor = page.err.strip().split("--after ")
    assert told == "there may be more: "
    assert unstuck("approvals", "list", "--after", cursor, "--json").object["job"] == second
    assert len(unstuck("approvals", "list", "--all-tenants", "--json").lines) == 3
    theirs = unstuck("approvals", "list", "--tenant", "acme").out
    assert "tenant acme" in theirs
    assert "--tenant acme" in theirs
    assert unstuck("approvals", "list", "--all-tenants", "--tenant", "acme").code == 2


def test_refusals_have_their_exit_codes(unstuck: Command, stage: Stage) -> None:
    """Issue 5: a decision on a closed approval, an unknown job, by="" """
    job = stage.asks("Deploy?")
    assert unstuck("approvals", "approve", job, "--by", "").code == 2
    assert unstuck("approvals", "approve", job, "--key", "").code == 2
    assert unstuck("approvals", "approve", job, "--key", "other").code == 4
    assert unstuck("approvals", "approve").code == 2
    assert unstuck("approvals", "approve", "nonsense").code == 3
    assert unstuck("approvals", "approve", job, "--tenant", "acme").code == 3
    assert unstuck("approvals", "approve", job, "--by", "kim").code == 0
    late = unstuck("approvals", "reject", job, "--by", "lee")
    assert (late.code, "kim" in late.err) == (4, True), late.err
    queued = unstuck.enqueue("add", "1")
    none = unstuck("approvals", "approve", queued)
    assert (none.code, queued in none.err) == (4, True)


def test_jobs_that_ask_are_completed(unstuck: Command, stage: Stage) -> None:
    job = stage.asks("Deploy?")
    unstuck.enqueue("add", "1")
    assert unstuck("__complete", "approvals", "approve", "").word == job
    assert unstuck("__complete", "approvals", "rej").word == "reject"


def test_why_and_show_say_who_must_decide(unstuck: Command, stage: Stage) -> None:
    """A57"""
    job = stage.asks("Deploy?", who=("kim",))
    why = unstuck("why", job).out
    assert 'parked: it waits for kim to decide "Deploy?"; if not in 10m' in why.replace("9m 59s", "10m")
    assert f"do     unstuck approvals approve {job} --key 'approval#1'" in why
    assert f"or     unstuck approvals reject {job} --key 'approval#1'" in why
    shown = unstuck("jobs", "show", job).out
    assert "waits for  kim to decide: Deploy?" in shown
    assert "then it fails" in shown
    assert f"answer     unstuck approvals approve {job}" in shown
