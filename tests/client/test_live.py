"""Waits and streams of a Client: the server waits, and nobody asks again and again."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import unstuck
from tests.server.conftest import Site, running
from tests.support.builders import submitted
from tests.support.eventually import eventually
from unstuck.app import cancellable_clock
from unstuck.assembly.server import ServerOptions
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def site(store_url: str, store: SqlStore) -> Iterator[Site]:
    with running(ServerOptions(store_url, port=0)) as found:
        yield found


@pytest.fixture
def asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the server is asked for."""
    paths: list[str] = []
    answer = site.server._api._answer

    async def counted(exchange: object, *rest: object) -> object:
        paths.append(exchange.own_path)  # type: ignore[attr-defined]
        return await answer(exchange, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(site.server._api, "_answer", counted)
    return paths


def later(work: Callable[[], object], seconds: float = 1.0) -> None:
    threading.Timer(seconds, work).start()


def test_a_client_waits_at_the_server(site: Site, store: SqlStore, asked: list[str]) -> None:
    job = submitted(store).id
    later(lambda: store.cancel("default", job, "ada"))
    with unstuck.Client(site.url) as client:
        began = time.monotonic()
        assert client.jobs.wait(job, timeout=30).state is unstuck.JobState.CANCELLED
        assert time.monotonic() - began < 20
        assert len(asked) <= 12  # looks that are told at once grow to half a second; these wait, longer each time
        with pytest.raises(unstuck.JobFailed):
            client.job(job).result(timeout=5)
        other = submitted(store).id
        with pytest.raises(unstuck.StillRunning):
            client.job(other).wait(timeout=0.2)


def test_an_async_client_waits_with_one_question(site: Site, store: SqlStore, asked: list[str]) -> None:
    job, other = submitted(store).id, submitted(store).id
    later(lambda: store.cancel("default", job, "ada"))

    async def wait() -> tuple[str, str]:
        async with unstuck.AsyncClient(site.url) as client:
            ended, stands = await asyncio.gather(
                client.jobs.wait(job, timeout=30), client.jobs.wait(other, timeout=0.3)
            )
            return ended.state, stands.state

    assert asyncio.run(wait()) == ("CANCELLED", "QUEUED")
    assert len(asked) <= 3


def test_a_client_that_follows_is_told_at_once_and_asks_seldom(
    site: Site, store: SqlStore, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellable_clock, "LONGEST_LOOK", 1.0)

    async def follow(after: str) -> list[str | None]:
        async with unstuck.AsyncClient(site.url) as client:
            found: list[str | None] = []
            async for event in client.events.follow(after=after, kinds="submitted"):
                found.append(event.job)
                if len(found) == 2:
                    return found
        raise AssertionError

    with unstuck.Client(site.url) as client:
        began, newest = time.monotonic(), client.events.list(after="now").next
        assert newest is not None
        following = client.events.follow(after=newest, kinds=["submitted"])
        seen: list[str | None] = []
        reader = threading.Thread(target=lambda: seen.extend(event.job for event in following))
        reader.start()
        jobs: list[str] = []
        for seconds in (1.0, 1.5):
            later(lambda: jobs.append(submitted(store).id), seconds)
        assert asyncio.run(follow(newest)) == jobs
        eventually(lambda: seen == jobs)
        following.close()
        reader.join(10)
    assert len(asked) <= 8 + 2 * (time.monotonic() - began)


def test_a_cursor_that_cannot_go_on_is_told(site: Site, store: SqlStore) -> None:
    submitted(store)
    with unstuck.Client(site.url) as client:
        newest = client.events.list(after="now").next
        with pytest.raises(unstuck.StaleCursor) as refused:
            next(client.events.follow(after=f"{newest}9"))
        assert refused.value.go_on == newest
        assert refused.value.reason == "ahead"
        began = time.monotonic()
        assert not client.events.list(after=newest, wait=0.5).items
        assert time.monotonic() - began >= 0.5


def test_an_app_on_the_database_waits_for_events_too(store_url: str, store: SqlStore) -> None:
    with unstuck.App(store_url) as app:
        newest = app.events.list(after="now").next
        later(lambda: submitted(store), 0.3)
        assert [event.kind for event in app.events.list(after=newest, wait=20)] == ["submitted"]
        with pytest.raises(unstuck.InvalidInput, match="at most 60 seconds"):
            app.events.list(wait=61)
