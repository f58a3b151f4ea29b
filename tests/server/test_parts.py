"""Parts of the server, each by itself."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from unstuck.clock import FakeClock
from unstuck.server import rates, run
from unstuck.server.api import Api
from unstuck.server.exchange import Exchange
from unstuck.server.guests import Guest
from unstuck.server.hub import CHUNK, MOST_BYTES, Desk, FeedListener, HeardEvent
from unstuck.server.lanes import Lane
from unstuck.server.local import is_loopback
from unstuck.server.problems import HttpProblem
from unstuck.server.rates import Rates
from unstuck.server.stay import Pieces
from unstuck.store.port import FeedEvent, FeedFilter


def test_loopback_is_known_by_its_addresses() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]))
    assert not any(
        map(is_loopback, ["", "0.0.0.0", "::", "10.0.0.1", "2130706433", "0x7f.1", "127.1", "::ffff:1.2.3.4"])
    )


def test_a_lane_that_is_full_refuses_at_once() -> None:
    lane, go_on = Lane("test", threads=1, waiting=1), threading.Event()

    async def ask() -> list[object]:
        under_way = [asyncio.create_task(lane.run(go_on.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(HttpProblem, match="every thread is busy"):
            await lane.run(go_on.wait)
        go_on.set()
        return [*await asyncio.gather(*under_way), await lane.run(lambda: "free again")]

    assert asyncio.run(ask()) == [True, True, "free again"]
    lane.close()


def test_a_key_may_ask_so_often_and_is_told_when_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    asked = Rates(2.0, clock)
    for _ in range(4):
        asked.take("a")
    with pytest.raises(HttpProblem, match="2 times a second") as refused:
        asked.take("a")
    assert refused.value.headers["Retry-After"] == "1"
    asked.take("b")
    clock.advance(0.5)
    asked.take("a")
    with pytest.raises(HttpProblem):
        asked.take("a")
    monkeypatch.setattr(rates, "MOST_KEYS", 100)
    for n in range(1000):
        asked.take(str(n))
    assert len(asked) == 100


def test_a_listener_that_takes_all_a_little_late_holds_up_others_for_a_share_of_the_time() -> None:
    """Each chunk fills it, and each time it has room again before anybody would call it slow."""

    async def listen() -> float:
        loop = asyncio.get_running_loop()
        desk = Desk(loop)
        desk.begin("00000000-0")
        late = FeedListener(desk, FeedFilter(), asyncio.Event(), sees_all=True)
        desk.add(late)
        assert late.resume(desk.cursor)
        began = loop.time()
        for chunk in range(20):
            cursors = [f"00000000-{chunk * CHUNK + n}" for n in range(1, CHUNK + 1)]
            done = asyncio.Event()
            desk.tell([an_event(cursor, MOST_BYTES * 2 // 3 // CHUNK) for cursor in cursors], cursors[-1], done.set)
            loop.call_later(0.1, late.take, CHUNK)
            await done.wait()
        return loop.time() - began

    assert asyncio.run(listen()) < 1


def an_event(cursor: str, size: int) -> HeardEvent:
    return HeardEvent(FeedEvent(cursor, "order.paid", datetime.now(UTC), {"text": "x" * (size - 350)}, "default"))


def test_a_stream_that_fails_says_so_in_its_last_message() -> None:
    """Its answer has begun, so there is no status any more that could say it; a second one is a bug of its own."""
    sent: list[Any] = []

    async def broken() -> AsyncGenerator[bytes, None]:
        yield b": \n\n"
        raise ValueError("a row that nobody expected")

    async def send(message: Any) -> None:
        sent.append(message)

    async def flow() -> None:
        exchange = Exchange({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""})
        await Api._flow(cast(Any, None), Pieces(broken()), exchange, Guest(exchange, cast(Any, None), 0.0), send)

    asyncio.run(flow())
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * 2]
    assert b'event: end\ndata: {"reason":"failed"}' in sent[-1]["body"]
    assert not sent[-1]["more_body"]


def test_a_server_of_its_own_process_is_not_held_up_by_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full run looks at all who stay. Where somebody else's program runs us, nothing of it is changed."""
    usual, frozen = gc.get_threshold(), list[bool]()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))

    def seen() -> tuple[int, ...]:
        with run._rare_collections():
            return gc.get_threshold()

    with ThreadPoolExecutor(1) as pool:
        assert (pool.submit(seen).result(), frozen) == (usual, [])
    young, older, all_ = seen()
    assert ((young, older), frozen) == (usual[:2], [True])
    assert all_ > 1_000_000 * usual[2]
    assert gc.get_threshold() == usual
