"""What `unstuck enqueue` can say of a job, and that `--timeout` means one thing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.cli.command import APP, Command
from tests.support.builders import a_worker, record
from unstuck.store.port import Store


def test_a_time_retries_a_time_limit_and_a_budget_are_those_of_the_job(unstuck: Command, store: Store) -> None:
    words = ("--at", "2030-01-31T18:00:00+02:00", "--retries", "0", "--time-limit", "5m", "--budget", "tokens=7")
    found = record(store, unstuck.enqueue("add", "1", *words, "--budget", "eur=0.5"))
    assert found.available_at == datetime(2030, 1, 31, 16, tzinfo=UTC)
    assert (found.policy.retries, found.policy.timeout) == (0, 300.0)
    assert dict(found.policy.budget) == {"tokens": 7.0, "eur": 0.5}
    assert record(store, unstuck.enqueue("add", "1", "--time-limit", "unlimited")).policy.timeout == "unlimited"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--at", "tomorrow"), "'tomorrow' is not a time like 2030-01-31T18:00:00Z"),
        (("--at", "2030-01-31T18:00"), "does not say in which zone"),
        (("--at", "2030-01-31T18:00:00Z", "--delay", "5m"), "exclude each other"),
        (("--retries", "-1"), "-1 is not between 0"),
        (("--budget", "tokens"), "not a unit and a number"),
        (("--time-limit", "0s"), "timeout=0"),
        (("--timeout", "5s"), "--timeout says how long --wait waits; how long the job may run is --time-limit"),
    ],
)
def test_what_cannot_be_is_refused_and_no_job_is_made(
    unstuck: Command, store: Store, words: tuple[str, ...], told: str
) -> None:
    answer = unstuck("enqueue", "add", "1", "--app", APP, *words)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert unstuck("jobs", "--json").out == ""


def test_a_timeout_without_a_wait_is_refused_everywhere(unstuck: Command, store: Store) -> None:
    a_worker(store, "w1", info={"executors": [{"pid": 7}]})
    for words in (("drain", "w1"), ("recycle", "7")):
        answer = unstuck("workers", *words, "--timeout", "5s")
        assert (answer.code, "--timeout says how long --wait waits" in answer.err) == (2, True)
    assert store.orders(1) == [], "nobody was asked for anything"


def test_jobs_alone_lists_and_its_help_tells_verbs_apart(unstuck: Command, store: Store) -> None:
    job = unstuck.enqueue("add", "1")
    assert job in unstuck("jobs").out
    assert [each["id"] for each in unstuck("jobs", "--state", "QUEUED", "--json").lines] == [job]
    assert unstuck("jobs", job).code == 2, "a job is no verb"
    told = unstuck("jobs", "--help").out
    assert "Without a verb: list." in told
    assert "resume      the same job goes on" in told
