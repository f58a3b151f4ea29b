"""unstuck jobs steps, tree, replay, and what jobs show says of them; on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.cli.command import Command
from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, boom, chance, claim_all, everything, settle
from tests.support.parking import Stage
from unstuck.cli.options import amount
from unstuck.model.errors import InvalidInput
from unstuck.model.waits import Wait, WaitKind
from unstuck.operations import bounds
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def stage(store: SqlStore) -> Stage:
    return Stage(store)


def test_finished_steps_are_listed_in_order(unstuck: Command, stage: Stage) -> None:
    attempt = stage.begun()
    none = unstuck("jobs", "steps", attempt.id)
    assert (none.code, none.out) == (0, "")
    assert "no step so far" in none.err
    stage.step(attempt, "fetch", '{"pages":3}')
    stage.step(attempt, "fetch", '"\\u001b[2J"', ordinal=2)
    lines = unstuck("jobs", "steps", attempt.id, "--json").lines
    assert [(s["name"], s["ordinal"], s["result"]) for s in lines] == [
        ("fetch", 1, {"pages": 3}),
        ("fetch", 2, "\x1b[2J"),
    ]
    assert lines[0].keys() == {"name", "ordinal", "result", "run", "attempt", "at", "duration_ms"}
    shown = unstuck("jobs", "steps", attempt.id[:-2]).out
    assert "fetch#2" in shown
    assert '{"pages":3}' in shown
    assert "\x1b" not in shown
    assert (
        f"2 steps finished, the last fetch#2: unstuck jobs steps {attempt.id}"
        in unstuck("jobs", "show", attempt.id).out
    )
    assert unstuck("jobs", "steps", "nonsense").code == 3


def test_all_steps_are_listed_however_large_they_are(
    unstuck: Command, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = stage.begun()
    for number in range(5):
        stage.step(attempt, f"s{number}", f'"{"x" * 50}"')
    monkeypatch.setattr(bounds, "MOST_CHARACTERS", 60)
    names = [f"s{number}" for number in range(5)]
    assert [step["name"] for step in unstuck("jobs", "steps", attempt.id, "--json").lines] == names
    assert [line.split()[0] for line in unstuck("jobs", "steps", attempt.id).out.splitlines()[1:]] == names


def test_a_family_is_drawn_from_the_top_with_states(unstuck: Command, store: SqlStore, stage: Stage) -> None:
    top = stage.begun(workflow="night")
    first, second = stage.spawn(top, "crawl"), stage.spawn(top, "crawl", 2)
    stage.park(top, Wait(WaitKind.CHILDREN, "children#1", children=(first.id, second.id)))
    attempts = {a.id: a for a in store.claim(stage.worker.number, chance.nonce(), everything(store))}
    grandchild = stage.spawn(attempts[first.id], "index")
    store.cancel(TENANT, grandchild.id, "kim")
    stage.end(attempts[second.id], boom("no such host"))

    drawn = unstuck("jobs", "tree", grandchild.id).out.splitlines()

    assert drawn[0] == f"WAITING    night  {top.id}"
    assert drawn[1] == f"├─ RUNNING    crawl  {first.id}"
    assert drawn[2].startswith(f"│  └─ CANCELLED  index  {grandchild.id}  ◀")
    assert drawn[3].startswith(f"└─ QUEUED     crawl#2  {second.id}  ValueError: no such host")
    assert unstuck("jobs", "tree", top.id).out.splitlines()[0] == f"WAITING    night  {top.id}  ◀"
    whole = unstuck("jobs", "tree", first.id, "--json").object
    assert (whole["id"], [child["id"] for child in whole["children"]]) == (top.id, [first.id, second.id])
    assert whole["children"][0]["children"][0]["state"] == "CANCELLED"
    short = unstuck("jobs", "tree", top.id, "--limit", "2").out
    assert "… 1 more job; --limit shows more" in short
    assert f"parent     {top.id}" in unstuck("jobs", "show", first.id).out
    shown = unstuck("jobs", "show", top.id).out
    assert "waits for  2 jobs that it spawned" in shown
    assert f"children   1 QUEUED, 1 RUNNING: unstuck jobs tree {top.id}" in shown
    alone = unstuck.enqueue("add", "1")
    assert unstuck("jobs", "tree", alone).out == f"QUEUED     add  {alone}  ◀\n"
    assert unstuck("jobs", "tree", "nonsense").code == 3


def test_what_its_last_attempt_took_is_told_from_how_long_the_job_was_on_its_way(
    unstuck: Command, store: SqlStore, stage: Stage, clock: StoreClock
) -> None:
    """A job that waited for two hours does not read as if it had taken 5 ms."""
    quick = stage.end(stage.begun())
    attempt = stage.begun()
    stage.park(attempt, Wait(WaitKind.EVENT, "event:paid#1", "paid", timeout=10_000.0))
    clock.advance(hours=2, minutes=3)
    worker = a_worker(store, "lee", lease=600.0)
    assert "took" not in unstuck("jobs", "show", attempt.id).out
    assert unstuck("events", "send", attempt.id, "paid").code == 0
    store.ingest()
    [again] = claim_all(store, worker)
    settle(store, worker, again.ref)

    shown = unstuck("jobs", "show", attempt.id, "--json").object
    assert shown["duration_ms"] == 5
    assert timedelta(hours=2, minutes=3) <= timedelta(milliseconds=shown["total_ms"]) < timedelta(hours=2, minutes=4)
    text = unstuck("jobs", "show", attempt.id).out
    assert "took       5 ms (attempt #2 of 2), ended 2h 3m after it was submitted\n" in text
    assert "took       5 ms\n" in unstuck("jobs", "show", quick).out
    rows = unstuck("jobs", "list").out.splitlines()
    assert "5 ms (#2)" in rows[1]
    assert "5 ms (#" not in rows[2]
    wide = unstuck("jobs", "list", "--wide").out.splitlines()
    assert "LAST TOOK" in wide[0]
    assert "TOTAL" in wide[0]
    assert "2h 3m" in wide[1]


def test_usage_is_shown_against_the_budget(unstuck: Command, store: SqlStore, stage: Stage) -> None:
    """A20"""
    attempt = stage.begun(budget=(("tokens", 1000.0),))
    store.spend(attempt.ref, 1, {"tokens": 1020, "euros": 0.5})
    shown = unstuck("jobs", "show", attempt.id).out
    assert "used       0.5 euros" in shown
    assert "1,020 of 1,000 tokens" in shown
    usage = unstuck("jobs", "show", attempt.id, "--json").object["usage"]
    assert (usage["used"], usage["budget"]) == ({"tokens": 1020, "euros": 0.5}, {"tokens": 1000})


def test_a_job_over_its_budget_says_how_to_go_on_and_both_ways_work(
    unstuck: Command, store: SqlStore, stage: Stage
) -> None:
    """A20: a resume has the whole budget anew and keeps its steps; a replay can have a larger one."""
    attempt = stage.begun(budget=(("euros", 5.0), ("tokens", 1000.0)), retries=0)
    stage.step(attempt, "fetch")
    store.spend(attempt.ref, 1, {"tokens": 1020})
    stage.end(attempt)
    resume, replay = f"unstuck jobs resume {attempt.id}", f"unstuck jobs replay {attempt.id} --budget tokens=MOST"

    shown = unstuck("jobs", "show", attempt.id).out
    assert "used 1,020 of 1,000 tokens" in shown
    assert resume in shown
    assert replay in shown
    [reason] = unstuck("why", attempt.id, "--json").object["reasons"]
    assert (reason["remedy"], reason["details"]["other_remedies"]) == (resume, [replay])

    refused = unstuck("jobs", "replay", attempt.id, "--budget", "tokens=MOST")
    assert (refused.code, refused.out, "like tokens=5000" in refused.err) == (2, "", True)
    again = unstuck("jobs", "replay", attempt.id, "--budget", "tokens=2500.5", "--budget", "pages=3", "--json").object
    usage = unstuck("jobs", "show", again["id"], "--json").object["usage"]
    assert usage == {"used": {}, "budget": {"euros": 5, "pages": 3, "tokens": 2500.5}, "exceeded": None, "trees": []}

    assert unstuck(*resume.split()[1:]).code == 0
    resumed = unstuck("jobs", "show", attempt.id, "--json").object
    assert (resumed["run"], resumed["usage"]["used"], len(resumed["steps"])) == (2, {}, 1)


def test_what_a_tree_has_used_is_shown_with_each_of_its_jobs(unstuck: Command, store: SqlStore, stage: Stage) -> None:
    top = stage.begun(budget=(("tokens", 1000.0),), budget_scope="tree")
    child = stage.spawn(top, "child", 1)
    [attempt] = [found for found in claim_all(store, stage.worker) if found.id == child.id]
    store.spend(top.ref, 1, {"tokens": 20})
    store.spend(attempt.ref, 1, {"tokens": 1000})
    stage.end(attempt)

    above, below = (unstuck("jobs", "show", job).out for job in (top.id, child.id))
    assert "used       20 tokens" in above
    assert "tree used  1,020 of 1,000 tokens\n" in above
    assert "used       1,000 tokens" in below
    assert f"tree used  1,020 of 1,000 tokens, by job {top.id} and all below it" in below
    assert f"unstuck jobs resume {top.id}" in below
    [tree] = unstuck("jobs", "show", child.id, "--json").object["usage"]["trees"]
    assert tree == {"job": top.id, "used": {"tokens": 1020}, "budget": {"tokens": 1000}}


def test_a_unit_that_is_new_in_a_budget_is_remarked_upon(unstuck: Command, stage: Stage) -> None:
    """It may be meant, or a slip that leaves the old limit as it was."""
    attempt = stage.begun(budget=(("tokens", 1000.0),), retries=0)
    stage.end(attempt)

    slip = unstuck("jobs", "replay", attempt.id, "--budget", "token=5000")
    assert slip.code == 0
    assert f"the budget of job {attempt.id} has no token, only tokens" in slip.err
    assert "the new job is limited in token too" in slip.err
    assert "has no" not in unstuck("jobs", "replay", attempt.id, "--budget", "tokens=5000").err


def test_a_job_without_a_budget_can_be_given_one(unstuck: Command, stage: Stage) -> None:
    attempt = stage.begun(retries=0)
    stage.end(attempt)

    again = unstuck("jobs", "replay", attempt.id, "--budget", "token=5000")
    assert again.code == 0
    assert f"job {attempt.id} had no budget; the new job is limited in token" in again.err


@pytest.mark.parametrize("wrong", ["tokens", "=5", "tokens=-1", "tokens=nan", "two words=1", "tokens=1e99", ""])
def test_what_is_no_amount_of_a_unit_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="like tokens=5000"):
        amount(wrong)


def test_ended_jobs_are_replayed_as_new_ones(unstuck: Command) -> None:
    """Issue 5, 5"""
    first, second, third = (unstuck.enqueue("add", number) for number in "123")
    unstuck("jobs", "cancel", first, second)
    again = unstuck("jobs", "replay", first)
    assert (again.code, again.word != first) == (0, True), again.err
    shown = unstuck("jobs", "show", again.word).out
    assert f"replay of  {first}" in shown
    assert "add(1)" in shown
    assert unstuck("jobs", "show", again.word, "--json").object["replay_of"] == first
    some = unstuck("jobs", "replay", third, second, "nonsense", "--json")
    assert (some.code, some.object["replay_of"]) == (4, second)
    assert "a QUEUED job cannot be replayed" in some.err
    assert unstuck("jobs", "replay", "nonsense").code == 3
    verbs = [line["verb"] for line in unstuck("audit", "--verb", "jobs", "--json").lines]
    assert verbs.count("jobs.replay") == 2
