"""unstuck events send: an event for a job or a topic, on both databases."""

from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.support.builders import TENANT
from tests.support.parking import Stage
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def stage(store: SqlStore) -> Stage:
    return Stage(store)


def test_an_event_reaches_the_job_that_waits_for_it(unstuck: Command, store: SqlStore, stage: Stage) -> None:
    job = stage.awaits("paid")
    sent = unstuck("events", "send", job[:-2], "paid", "--payload", '{"amount": 12}', "--by", "till")
    assert (sent.code, sent.out) == (0, f"event paid reached job {job}: it goes on\n"), sent.err
    [wait] = store.waits_of(TENANT, job)
    assert (wait.payload, wait.by) == ('{"amount":12}', "till")
    store.ingest()
    told = unstuck("jobs", "history", job).out
    assert "woken" in told
    assert "till" in told
    [line] = unstuck("audit", "--verb", "events", "--json").lines
    assert (line["by"], line["subject"]) == ("till", job)


def test_an_event_that_nobody_waits_for_is_kept(unstuck: Command) -> None:
    """A49"""
    job = unstuck.enqueue("add", "1")
    sent = unstuck("events", "send", job, "paid")
    assert (sent.code, sent.out) == (0, f"event paid is kept for job {job}: nobody waits for it yet\n")
    shape = unstuck("events", "send", job, "paid", "--json").object
    assert shape.keys() == {"event", "job", "topic", "answered", "number", "awaited", "repeated"}
    assert (shape["event"], shape["job"], shape["topic"], shape["answered"]) == ("paid", job, None, None)


def test_a_slip_in_an_events_name_is_answered_with_what_the_job_waits_for(unstuck: Command, stage: Stage) -> None:
    job = stage.awaits("paid")

    sent = unstuck("events", "send", job, "piad")
    assert (sent.code, sent.out) == (0, f"event piad is kept for job {job}: nobody waits for it yet\n")
    assert f"job {job} waits for event paid" in sent.err


def test_an_event_for_a_job_that_waits_on_a_topic_names_the_topic(unstuck: Command, stage: Stage) -> None:
    job = stage.awaits("paid", topic="till")

    assert f"job {job} waits for event paid on topic till" in unstuck("events", "send", job, "paid").err


def test_an_event_on_a_topic_reaches_one_that_waits_there(unstuck: Command, stage: Stage) -> None:
    job = stage.awaits("paid", topic="orders")
    sent = unstuck("events", "send", "--topic", "orders", "paid", "--json").object
    assert (sent["answered"], sent["topic"], sent["job"]) == (job, "orders", None)
    kept = unstuck("events", "send", "paid", "--topic", "orders")
    assert kept.out == "event paid is kept for topic orders: nobody waits for it yet\n"


@pytest.mark.parametrize(
    "words",
    [
        ("JOB",),
        (),
        ("JOB", "paid", "--topic", "orders"),
        ("JOB", ""),
        ("JOB", " paid"),
        ("JOB", "paid", "--payload", "{"),
        ("JOB", "paid", "--payload", "NaN"),
        ("JOB", "paid", "--payload", '{"a":1,"a":2}'),
        ("JOB", "paid", "--payload", '"\\u0000"'),
        ("JOB", "paid", "--by", ""),
        ("paid", "--topic", ""),
    ],
)
def test_nonsense_is_refused_and_nothing_is_sent(
    unstuck: Command, store: SqlStore, stage: Stage, words: tuple[str, ...]
) -> None:
    job = stage.awaits("paid")
    answer = unstuck("events", "send", *(job if word == "JOB" else word for word in words))
    assert answer.code == 2, answer.err
    assert answer.err
    assert store.audit(verb="events") == []


def test_an_event_for_an_unknown_or_ended_job_is_refused(unstuck: Command) -> None:
    """Issue 5: bad input"""
    assert unstuck("events", "send", "nonsense", "paid").code == 3
    assert unstuck("events", "send", "01900000-0000-7000-8000-000000000000", "paid").code == 3
    job = unstuck.enqueue("add", "1")
    assert unstuck("events", "send", job, "paid", "--tenant", "acme").code == 3
    unstuck("jobs", "cancel", job)
    ended = unstuck("events", "send", job, "paid")
    assert (ended.code, job in ended.err) == (4, True)


def test_why_gives_the_command_that_sends_it(unstuck: Command, stage: Stage) -> None:
    """A57"""
    job = stage.awaits("paid", topic="orders")
    why = unstuck("why", job).out
    assert "parked: it waits for event paid on topic orders; if not in" in why
    assert "do     unstuck events send paid --topic orders" in why
    shown = unstuck("jobs", "show", job).out
    assert "waits for  event paid on topic orders" in shown
    assert "answer     unstuck events send paid --topic orders" in shown


def test_an_event_under_an_id_counts_once(unstuck: Command, stage: Stage) -> None:
    job = stage.awaits("paid")
    first = unstuck("events", "send", job, "paid", "--id", "bill-7", "--json").object
    again = unstuck("events", "send", job, "paid", "--id", "bill-7", "--json").object
    assert (first["answered"], first["repeated"]) == (job, False)
    assert (again["answered"], again["repeated"], again["number"]) == (job, True, first["number"])
    assert "counts once" in unstuck("events", "send", job, "paid", "--id", "bill-7").err
