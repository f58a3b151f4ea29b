"""Connections: how many there may be, and how long one may take to say what it wants.

uvicorn limits how long a connection may rest between two requests. This adds what it leaves open: a connection that
says nothing, that says the head of its request letter by letter, or that does not take its answer, is cut.
"""

from __future__ import annotations

import asyncio
import json

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from unstuck.chance import SystemChance
from unstuck.server.problems import MEDIA_TYPE, HttpProblem, problem_of

MOST_CONNECTIONS = 5000
#: Seconds until the head of a request must be there.
LONGEST_HEAD = 10.0
#: Seconds for which a connection may rest between two requests.
LONGEST_REST = 30
#: Seconds in which an answer must have been taken.
LONGEST_ANSWER = 60.0
#: Bytes of a head that has no end yet.
MOST_HEAD = 64 << 10

_CHANCE = SystemChance()


class JoinedWrites(asyncio.Transport):
    """A transport that sends at once what is written in one turn of the loop: the head of an answer leaves with its
    body, in one packet and by one call of the system."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        if data:
            self._held.append(bytes(data))

    def _send(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)


class LimitedProtocol(H11Protocol):
    _head_task: asyncio.TimerHandle | None = None
    _answer_task: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoinedWrites(transport, self.loop))
        transport.set_write_buffer_limits(0)  # what the other side has not taken yet is told by `pause_writing`
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(HttpProblem("Overloaded", "there are as many connections as there may be"))
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._answer_taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Aborted and not closed: whoever closes waits until all is taken."""
        super().pause_writing()
        if self._answer_task is None:
            self._answer_task = self.loop.call_later(LONGEST_ANSWER, self.transport.abort)

    def resume_writing(self) -> None:
        self._answer_taken()
        super().resume_writing()

    def _answer_taken(self) -> None:
        if self._answer_task is not None:
            self._answer_task.cancel()
            self._answer_task = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._await_head()
        else:
            self._stop_waiting()

    def send_400_response(self, msg: str) -> None:
        self._refuse(HttpProblem("BadRequest", "this is not HTTP that can be read, or its head is too large"))

    def _await_head(self) -> None:
        if self._head_task is None:
            self._head_task = self.loop.call_later(LONGEST_HEAD, self._cut)

    def _stop_waiting(self) -> None:
        if self._head_task is not None:
            self._head_task.cancel()
            self._head_task = None

    def _cut(self) -> None:
        if not self.transport.is_closing():
            self._refuse(HttpProblem("TooSlow", f"the request's head was not there after {LONGEST_HEAD:g} s"))

    def _refuse(self, error: HttpProblem) -> None:
        """Past h11, which may have given the connection up."""
        self._stop_waiting()
        problem = problem_of(error, _CHANCE.nonce())
        body = json.dumps(problem.body).encode()
        headers = {
            **problem.headers, "Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Connection": "close",
        }  # fmt: skip
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        phrase = STATUS_PHRASES[problem.status].decode()
        self.transport.write(f"HTTP/1.1 {problem.status} {phrase}\r\n{head}\r\n".encode() + body)
        self.transport.close()
