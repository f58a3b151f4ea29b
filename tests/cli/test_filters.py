"""Filters: a word that can never match is an error or a hint, not an empty list that looks like good news."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

import unstuck.store
from tests.cli.command import Command
from unstuck.model.guard import VERBS
from unstuck.model.schedules import FiringKind
from unstuck.store.port import LimitKind, OrderKind, PauseKind


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (["audit", "--verb", "nosuch"], ["jobs.cancel", "blacklist.add", "approvals.reject"]),
        (["audit", "--verb", "jobs.cancle"], ["did you mean jobs.cancel?"]),
        (["audit", "--verb", "%"], ["jobs.cancel"]),
        (["audit", "--verb", ""], ["jobs.cancel"]),
        (["jobs", "list", "--state", "NOSUCH"], ["QUEUED", "BLOCKED"]),
        (["enqueue", "add", "--after-failure", "nosuch"], ["fail, run"]),
    ],
)
def test_an_unknown_word_of_a_closed_set_is_an_error_that_lists_the_known_ones(
    unstuck: Command, words: list[str], listed: list[str]
) -> None:
    answer = unstuck(*words)
    assert (answer.code, answer.out) == (2, "")
    assert [word for word in listed if word not in answer.err] == []
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_an_empty_list_says_which_word_nobody_has_used(unstuck: Command) -> None:
    unstuck.enqueue("add", "1")
    unstuck("workflows", "pause", "add")
    assert "nobody has used workflow ad so far" in unstuck("jobs", "list", "--workflow", "ad").err
    assert "nobody has used queue mial so far" in unstuck("jobs", "list", "--queue", "mial").err
    assert "nobody has used tenant acme so far" in unstuck("jobs", "list", "--tenant", "acme").err
    assert "nobody has used tenant acme so far" in unstuck("approvals", "--tenant", "acme").err
    assert "did you mean BudgetExceeded?" in unstuck("jobs", "list", "--error", "budgetexceeded").err
    assert "did you mean" not in unstuck("jobs", "list", "--error", "ExecutionStuck").err
    assert unstuck("audit", "--subject", "nosuch").err == "nothing of that kind was done\n"
    assert unstuck("blacklist", "history", "nosuch").err.startswith("workflow nosuch was never blacklisted")
    assert [line["verb"] for line in unstuck("audit", "--verb", "workflows", "--json").lines] == ["workflows.pause"]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_job_of_another_tenant_is_unknown_and_the_message_says_whose_were_looked_at(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    for words in (["jobs", "show", job], ["jobs", "steps", job[:-3]], ["why", job], ["approvals", "approve", job]):
        answer = unstuck(*words, "--tenant", "acme")
        assert (answer.code, "of tenant acme" in answer.err) == (3, True), (words, answer.err)
    assert "there is no job ''; " in unstuck("jobs", "show", "").err
    assert "tied to it: --option=-5" in unstuck("jobs", "list", "--older", "-5s").err


def test_every_verb_that_the_store_notes_is_known_to_the_filter() -> None:
    """Each is written as a word in the store, or made of one and a kind."""
    folder = Path(unstuck.store.__file__).parent
    words = [
        node.value
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    nouns = {verb.split(".")[0] for verb in VERBS}
    written = {word for word in words if re.fullmatch(rf"({'|'.join(nouns)})\.[a-z_]+", word)}
    made = {f"workers.{kind}" for kind in get_args(OrderKind)}
    made |= {f"{kind}s.{verb}" for kind in get_args(PauseKind) for verb in ("pause", "unpause")}
    made |= {f"{kind}s.{verb}" for kind in get_args(LimitKind) for verb in ("limit", "unlimit")}
    made |= {f"schedules.{kind}" for kind in get_args(FiringKind) if kind != "tick"}
    assert written | made == set(VERBS)
    assert sum(word.startswith("jobs.") for word in written) >= 6
