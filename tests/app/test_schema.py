"""Whose schema an app may touch: its own new database, never one that others already use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import unstuck
from tests.support.postgres import PostgresServer
from unstuck import App
from unstuck.store.drivers import migrations
from unstuck.store.drivers.migrations import Migration, shipped


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    url = postgres_server.create(migrated=False)
    yield url
    postgres_server.drop(url)


def enqueue_one(url: str) -> str:
    with App(url) as app:

        @app.workflow
        def work() -> None: ...

        return work.enqueue().id


def test_an_empty_postgresql_gets_its_tables_at_the_first_use(empty_url: str) -> None:
    job = enqueue_one(empty_url)

    with App(empty_url) as other:
        assert other.job(job).id == job


def test_a_postgresql_of_an_older_version_is_refused_with_the_command_that_mends_it(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_one(empty_url)
    # The next version of this code, which brings one migration more.
    monkeypatch.setattr(migrations, "shipped", lambda dialect: [*shipped(dialect), _next(dialect)])

    with pytest.raises(unstuck.SchemaMismatch, match="unstuck db migrate"):
        enqueue_one(empty_url)


def _next(dialect: str) -> Migration:
    return Migration(shipped(dialect)[-1].number + 1, "later", "SELECT 1")


def test_an_unreachable_database_is_told_within_its_time_and_tried_again_at_the_next_use(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/missing/folder/jobs.db")

    @app.workflow
    def work() -> None: ...

    with pytest.raises(unstuck.StoreError):
        work.enqueue()
    (tmp_path / "missing" / "folder").mkdir(parents=True)

    assert work.enqueue().state() is unstuck.JobState.QUEUED
    app.close()
