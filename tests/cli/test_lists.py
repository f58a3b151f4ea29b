"""unstuck jobs list and unstuck stats over jobs of several tenants in every state, on both databases."""

from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.store import crowd


@pytest.fixture
def full(unstuck: Command) -> Command:
    assert unstuck.url is not None
    crowd.gather(unstuck.url, seed=1, count=300)
    return unstuck


def test_jobs_are_listed_by_all_that_is_known_of_them(full: Command) -> None:
    everything = full("jobs", "list", "--tenant", "acme", "--limit", "500", "--json").lines
    assert {job["tenant"] for job in everything} == {"acme"}

    def listed(*words: str) -> list[str]:
        return [job["id"] for job in full("jobs", "list", "--tenant", "acme", "--json", "-n", "500", *words).lines]

    def those(key: str, value: object) -> list[str]:
        return [job["id"] for job in everything if job[key] == value]

    for word in ("SCHEDULED", "RETRYING", "BLOCKED", "CANCELLING", "STUCK", "RUNNING", "DEAD"):
        key = "state" if word in ("RUNNING", "DEAD") else "shown_state"
        assert listed("--state", word.lower()) == those(key, word) != [], word
    assert listed("--workflow", "mail") == those("workflow", "mail") != []
    assert listed("--queue", "slow") == those("queue", "slow") != []
    assert listed("--target", "t1") == those("target", "t1") != []
    assert listed("--error", "Boom") == listed("--error-type", "Boom") == those("error_type", "Boom") != []
    assert listed("--tag", "red") == [job["id"] for job in everything if "red" in job["tags"]] != []
    older, newer = listed("--older", "1h"), listed("--newer", "1h")
    assert newer + older == [job["id"] for job in everything]
    assert older
    assert newer
    assert listed("--oldest-first") == listed()[::-1]
    both = listed("--state", "FAILED", "--queue", "slow", "--newer", "90m")
    assert set(both) <= set(those("state", "FAILED")) & set(those("queue", "slow"))


def test_pages_of_a_filtered_list_follow_each_other(full: Command) -> None:
    whole = [job["id"] for job in full("jobs", "list", "--tenant", "beta", "--state", "FAILED", "--json").lines]
    first = full("jobs", "list", "--tenant", "beta", "--state", "FAILED", "--json", "--limit", "2")
    cursor = first.err.split("--after ")[1].strip()
    rest = full("jobs", "list", "--tenant", "beta", "--state", "FAILED", "--json", "--after", cursor)
    assert [job["id"] for job in first.lines + rest.lines] == whole


def test_the_jobs_of_all_tenants_are_listed_and_looked_into(full: Command) -> None:
    everybodys = full("jobs", "list", "--all-tenants", "--json", "-n", "500").lines
    assert {job["tenant"] for job in everybodys} == set(crowd.TENANTS)
    assert len(everybodys) == 300
    table = full("jobs", "list", "--all-tenants", "--state", "FAILED")
    assert "TENANT" in table.out.splitlines()[0]
    theirs = next(job for job in everybodys if job["tenant"] == "beta")
    assert full("jobs", "show", theirs["id"], "--all-tenants", "--json").object["tenant"] == "beta"
    assert full("why", theirs["id"], "--all-tenants", "--json").object["job"] == theirs["id"]
    assert full("jobs", "show", theirs["id"]).code == 3
    assert full("jobs", "list", "--all-tenants", "--tenant", "beta").code == 2


def test_an_unknown_state_names_those_there_are(unstuck: Command) -> None:
    answer = unstuck("jobs", "list", "--state", "purple")
    assert answer.code == 2
    assert "BLOCKED" in answer.err


def test_statistics_are_told_by_tenant_queue_and_workflow(full: Command) -> None:
    by_tenant = full("stats", "--by-tenant", "--json").lines
    assert [line["name"] for line in by_tenant] == list(crowd.TENANTS)
    everywhere = full("stats", "--all-tenants", "--json").object
    for state, jobs in everywhere["states"].items():
        assert jobs == sum(line["states"][state] for line in by_tenant), state
    for tenant in by_tenant:
        own = full("stats", "--tenant", tenant["name"], "--json").object
        assert (own["states"], own["blocked"]) == (tenant["states"], tenant["blocked"])
    for by in ("queue", "workflow"):
        lines = full("stats", f"--by-{by}", "--tenant", "beta", "--json").lines
        assert sum(line["states"]["QUEUED"] for line in lines) == by_tenant[1]["states"]["QUEUED"]
    page = full("stats", "--by-tenant", "--limit", "2", "--json")
    assert "--after beta" in page.err
    assert full("stats", "--by-tenant", "--after", "beta", "--json").object["name"] == "core"


def test_statistics_for_people_say_what_queued_jobs_wait_for(full: Command) -> None:
    told = full("stats", "--tenant", "acme").out
    assert "for a later time" in told
    assert "behind a job that blocks their target" in told
    assert "has been due for" in told
    table = full("stats", "--by-workflow", "--tenant", "acme").out
    assert table.split()[0] == "WORKFLOW"
    assert "crawl" in table


@pytest.mark.parametrize(
    "words", [["--by-tenant", "--by-queue"], ["--by-queue", "--watch"], ["--by-workflow", "--all-tenants"]]
)
def test_statistics_that_contradict_themselves_are_refused(unstuck: Command, words: list[str]) -> None:
    answer = unstuck("stats", *words)
    assert (answer.code, answer.out) == (2, "")


def test_a_count_that_met_its_ceiling_says_so() -> None:
    from unstuck.cli.stats import count_text
    from unstuck.model.lifecycle import JobState
    from unstuck.observe.lookup import CEILING
    from unstuck.store.port import Tally
    from unstuck.views.stats import TallyView, counts_of

    states = dict.fromkeys(JobState, 0) | {JobState.QUEUED: CEILING, JobState.FAILED: 1234}
    counted = Tally("acme", states, at_least=frozenset({JobState.QUEUED}))
    tally = TallyView(kind="queue", name="acme", **counts_of(counted))
    assert (count_text(tally, JobState.QUEUED), count_text(tally, JobState.FAILED)) == ("10,000+", "1,234")
