"""Commands about order, given what people really give: pasted remedies, strange names, units that do not exist."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.cli.command import Command
from tests.cli.test_order import ask, blocked, enqueue, ingest
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.store.port import Store

__all__ = ["blocked"]


def test_no_remedy_of_why_decides_more_than_it_says(unstuck: Command, blocked: tuple[str, str, str]) -> None:
    """Pasted as it stands, `resolve JOB` completed the job with a result that nobody had given."""
    failed, urgent, _ = blocked
    [reason] = [r for r in unstuck("why", urgent, "--json").object["reasons"] if r["code"] == "target_blocked"]
    [resolve] = [command for command in reason["details"]["other_remedies"] if " resolve " in command]
    assert resolve.split()[3:] == [failed, "RESULT"]


@pytest.mark.parametrize("rate", ["5/ms", "5/1ms", "5 per ms"])
def test_a_rate_per_millisecond_is_refused_and_not_taken_for_minutes(unstuck: Command, rate: str) -> None:
    answer = unstuck("queues", "limit", "io", "--rate", rate)
    assert (answer.code, answer.out) == (2, ""), answer
    assert ask(unstuck, "limits", "--json").lines == []


def test_a_family_of_keys_that_no_key_can_belong_to_is_refused(unstuck: Command) -> None:
    """The family of "a:b:c" is "a": a limit on "a:b:*" would never count anything, and said "each key by itself"."""
    answer = unstuck("limits", "key", "a:b:*", "--concurrency", "1")
    assert answer.code == 2, answer


@pytest.mark.parametrize("name", ["-x", "--x"])
def test_a_target_whose_name_looks_like_an_option_can_be_shown_paused_and_unpaused(
    unstuck: Command, store: Store, name: str
) -> None:
    """Templates take names from arguments: everything that can be a target must be reachable by its commands."""
    job = enqueue(unstuck, "deliver", "ada", f"--target={name}")
    ingest(store)
    ask(unstuck, "targets", "show", "--", name)
    ask(unstuck, "targets", "pause", "--", name)
    reasons = json.loads(unstuck("why", job, "--json").out)["reasons"]
    [remedy] = [reason["remedy"] for reason in reasons if reason["code"] == "target_paused"]
    _, *words = shlex.split(remedy)
    ask(unstuck, *words)
    assert ask(unstuck, "pauses", "--json").lines == []


@pytest.mark.parametrize("words", [("targets", "show"), ("tenants", "show"), ("why",), ("jobs", "show")])
def test_what_is_not_found_is_named_without_its_escape_codes(unstuck: Command, words: tuple[str, ...]) -> None:
    answer = unstuck(*words, "\x1b[31mred\x1b]0;title\x07")
    assert answer.code == 3
    assert "\x1b" not in answer.err
    assert "\x07" not in answer.err


def test_lifting_a_part_of_a_limit_that_is_not_there_is_no_mistake(unstuck: Command) -> None:
    """As `--none` is none: a script may say it twice."""
    for _ in range(2):
        ask(unstuck, "queues", "limit", "io", "--none")
        ask(unstuck, "queues", "limit", "io", "--concurrency", "none")


def test_the_limit_of_the_code_holds_again_when_an_operators_is_lifted(unstuck: Command, store: Store) -> None:
    """ "Limits in the code hold …; what an operator sets for the same place wins" — as long as it stands."""
    store.register_workflows([WorkflowRecord("fetch", "v1", "io", Policy(), {}, concurrency=2)])
    ask(unstuck, "workflows", "limit", "fetch", "--concurrency", "4", "--all-tenants")
    ask(unstuck, "workflows", "limit", "fetch", "--none", "--all-tenants")
    limits = ask(unstuck, "limits", "--json").lines
    assert [(limit["name"], limit["concurrency"], limit["set_by"]) for limit in limits] == [("fetch", 2, "code")]
    again = ask(unstuck, "workflows", "limit", "fetch", "--none", "--all-tenants")
    assert "workflow fetch: 2 at once" in again.out
    assert "so says its code" in again.err


def test_a_workflow_says_what_it_redacts(unstuck: Command, store: Store) -> None:
    store.register_workflows([WorkflowRecord("pay", "v1", "io", Policy(), {}, redact=("card", "customer.iban"))])
    shown = ask(unstuck, "workflows", "list", "pay").out
    assert "redacted   card, customer.iban  (only admins see these of its jobs' data)" in shown
    [said] = ask(unstuck, "workflows", "list", "pay", "--json").lines
    assert said["redact"] == ["card", "customer.iban"]


def test_each_key_of_a_workflow_is_limited_shown_and_lifted_beside_the_workflow_itself(
    unstuck: Command, store: Store
) -> None:
    record = WorkflowRecord(
        "fetch", "v1", "io", Policy(), {}, limit_key="host:{host}", concurrency=9, key_concurrency=1, key_rate="10/h"
    )
    store.register_workflows([record])
    each = ("workflows", "limit", "fetch", "--each-key")
    assert "each key of workflow fetch: 3 at once" in ask(unstuck, *each, "--concurrency", "3", "--all-tenants").out
    limits = ask(unstuck, "limits", "--json").lines
    assert {(found["kind"], found["concurrency"], found["set_by"] == "code") for found in limits} == {
        ("workflow", 9, True),
        ("workflow_key", 3, False),
    }
    lifted = ask(unstuck, *each, "--none", "--all-tenants")
    assert "each key of workflow fetch: 1 at once, 10 starts per hour (each key by itself)" in lifted.out
    assert "so says its code" in lifted.err
    assert "each key of workflow fetch had no limit" in ask(unstuck, *each, "--none").err
    assert "nobody has used workflow fletch so far; known: fetch" in ask(
        unstuck, "workflows", "limit", "fletch", "--each-key", "--rate", "1/s"
    ).err  # fmt: skip

    shown = ask(unstuck, "workflows", "list", "fetch").out
    assert "limit   fetch: 9 at once (all tenants together), set by code" in shown
    assert "limit   fetch: 1 at once, 10 starts per hour (each key by itself), set by code" in shown
    assert "workflow_key" in ask(unstuck, "limits").out
    [said] = ask(unstuck, "workflows", "list", "fetch", "--json").lines
    assert (said["concurrency"], said["rate"], said["key_concurrency"], said["key_rate"]) == (9, None, 1, "10/h")
    assert {limit["kind"] for limit in said["limits"]} == {"workflow", "workflow_key"}


def test_no_job_is_resolved_without_a_word_about_its_result(
    unstuck: Command, store: Store, blocked: tuple[str, str, str]
) -> None:
    failed, _, _ = blocked
    assert unstuck("jobs", "resolve", failed).code == 2
    assert unstuck("jobs", "resolve", failed, "RESULT").code == 2
    assert unstuck("jobs", "show", failed, "--json").object["state"] == "FAILED"
    assert unstuck("jobs", "resolve", failed, "null", "--json").object["state"] == "COMPLETED"


@pytest.mark.parametrize(
    "words",
    [
        ("queues", "pause", "io"),
        ("queues", "unpause", "io"),
        ("queues", "limit", "io", "--none"),
        ("limits",),
        ("pauses",),
        ("stats",),
    ],
    ids=" ".join,
)
def test_one_tenant_and_all_of_them_exclude_each_other(unstuck: Command, words: tuple[str, ...]) -> None:
    """It was not said whose queue was paused: everybody's."""
    answer = unstuck(*words, "--all-tenants", "--tenant", "acme")
    assert answer.code == 2, answer
    assert "exclude each other" in answer.err


@pytest.mark.parametrize("number", ["1_000", "\u0663", "\uff15", "1e3", "0x10"])
def test_numbers_are_written_in_plain_digits(unstuck: Command, number: str) -> None:
    for words in (
        ("queues", "limit", "io", "--concurrency", number),
        ("queues", "list", "--limit", number),
        ("tenants", "weight", "default", number),
    ):
        answer = unstuck(*words)
        assert answer.code == 2, answer
        assert "whole number" in answer.err
