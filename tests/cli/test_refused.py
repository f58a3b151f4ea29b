"""What the database refuses somebody who asks (a trigger, a constraint that a person made) is told in its own words
with a documented code: no bug of ours, no traceback. On both databases."""

from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.cli.test_health import asked
from tests.support.builders import submitted
from tests.support.troubles import SAYS, allow, refuse
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("unstuck_audit", ["jobs", "cancel", "JOB"]),
        ("unstuck_pauses", ["queues", "pause", "io"]),
        ("unstuck_unclaimed_events", ["events", "send", "--topic", "news", "go"]),
    ],
    ids=["cancel", "pause", "event"],
)
def test_a_refused_request_is_told_in_the_words_of_the_database(
    unstuck: Command, store: SqlStore, store_url: str, table: str, words: list[str]
) -> None:
    job = submitted(store).id
    words = [job if word == "JOB" else word for word in words]
    refuse(store_url, table, "NEW.tenant IS NOT NULL")

    answer = unstuck(*words)

    assert (answer.code, answer.out) == (6, "")
    assert "the database refused it" in answer.err
    assert SAYS in answer.err
    assert "nothing was written" in answer.err
    assert len(answer.err.splitlines()) <= 2
    allow(store_url, table)
    assert unstuck(*words).code == 0


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # PostgreSQL tries no row
def test_health_and_why_survive_that_the_row_they_try_is_refused(
    unstuck: Command, store: SqlStore, store_url: str
) -> None:
    job = submitted(store).id
    refuse(store_url, "unstuck_idle", "NEW.until IS NOT NULL")

    checks = asked(unstuck)
    assert not checks["writes"]["ok"]
    assert SAYS in checks["writes"]["detail"]
    assert "workers" in checks
    assert "Traceback" not in unstuck("why", job).err
