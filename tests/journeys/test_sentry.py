"""The recipe for Sentry of docs/tracing.md: the error of a handler arrives at a receiver, with the job as tags."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from examples.sentry_app import app as sentry_app

from tests.journeys.conftest import Jobs, only_here, only_sqlite
from tests.support.eventually import eventually
from tests.support.workers import Worker
from unstuck.executor.leftovers import ALLOWED
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

#: It is about what a handler sends.
pytestmark = only_here


class Receiver(ThreadingHTTPServer):
    """What Sentry's server would get."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Envelopes)
        self.events: list[dict[str, Any]] = []

    @property
    def dsn(self) -> str:
        return f"http://public@127.0.0.1:{self.server_address[1]}/1"


class _Envelopes(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        items = [json.loads(line) for line in body.splitlines() if line.startswith(b"{")]
        self.server.events += [item for item in items if "exception" in item]
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


@only_sqlite
def test_errors_arrive_with_their_job(
    start: Callable[..., Worker], db: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of functions and of coroutines; and Sentry's own thread is not taken for something that a job left behind."""
    monkeypatch.setenv("SENTRY_DSN", receiver.dsn)
    worker = start(app="examples.sentry_app:app", processes=1)
    jobs = Jobs(db, sentry_app)
    ids = [jobs.enqueue(workflow, 7) for workflow in ("charge", "charge_later")]
    for job in ids:
        jobs.until(job, JobState.FAILED, within=30)
    eventually(lambda: len(receiver.events) == 2, timeout=15)
    events = {event["tags"]["job"]: event for event in receiver.events}
    assert sorted(events) == sorted(ids)
    for job, workflow in zip(ids, ("charge", "charge_later"), strict=True):
        event = events[job]
        assert {"workflow": workflow, "tenant": "default", "attempt": "1"}.items() <= {
            name: str(value) for name, value in event["tags"].items()
        }.items()
        [thrown] = event["exception"]["values"]
        assert (thrown["type"], thrown["value"][:11]) == ("ValueError", "order 7 has")
        assert thrown["stacktrace"]["frames"][-1]["function"] == workflow
    # A second job of the same process, after the look at what the first have left.
    threading.Event().wait(2 * ALLOWED)
    jobs.until(jobs.enqueue("charge", 8), JobState.FAILED, within=30)
    worker.terminate()
    assert worker.wait() == 0
    assert "left_behind" not in worker.log.read_text()
