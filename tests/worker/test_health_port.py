"""A worker's port for probes and Prometheus: who may ask what, and that nobody can hold it up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx2
import pytest

from unstuck.clock import MachineClock
from unstuck.model.errors import InvalidInput, StoreUnavailable, Unauthenticated
from unstuck.worker import health_port
from unstuck.worker.health_port import HealthAnswers, HealthPort


class Worker:
    is_ready = True
    text = "unstuck_worker_ready 1\n"

    def metrics(self) -> tuple[str, str]:
        if not self.text:
            raise InvalidInput("metrics need prometheus-client")
        return self.text, "text/plain; version=0.0.4; charset=utf-8"

    def refusal(self, key: str, address: str) -> str | None:
        if key == "away":
            raise StoreUnavailable("no database")
        if key == "tenant":
            return "the key of acme is for a part of the platform"
        if key != "good":
            raise Unauthenticated("no such key")
        return None


@contextmanager
def port_of(worker: Worker, host: str = "127.0.0.1") -> Iterator[httpx2.Client]:
    """A client of it, on this machine."""
    answers = HealthAnswers(lambda: worker.is_ready, worker.metrics, worker.refusal)
    port = HealthPort(host, 0, answers, MachineClock())
    port.start()
    try:
        with httpx2.Client(base_url=port.url.replace("0.0.0.0", "127.0.0.1"), timeout=20) as asked:
            yield asked
    finally:
        port.close()


def test_it_answers_what_probes_and_prometheus_ask() -> None:
    worker = Worker()
    with port_of(worker) as asked:
        assert asked.get("/healthz").json() == {"alive": True}
        assert asked.get("/readyz").json() == {"ready": True}
        told = asked.get("/metrics")
        assert (told.status_code, told.text) == (200, worker.text)
        assert told.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        worker.is_ready = False
        answer = asked.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"ready": False})
        assert asked.get("/healthz").status_code == 200
        assert asked.get("/other").status_code == 404
        assert asked.post("/healthz").status_code == 405
        assert asked.head("/healthz").text == ""
        worker.text = ""
        answer = asked.get("/metrics")
        assert (answer.status_code, answer.text) == (501, "metrics need prometheus-client\n")
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"http://127.0.0.1:{asked.base_url.port}/healthz")


def test_on_this_machine_a_name_that_was_rebound_to_it_is_refused() -> None:
    with port_of(Worker()) as asked:
        for path in ("/readyz", "/metrics"):
            for host in ("evil.example.com", "evil.example.com:80", ""):
                assert asked.get(path, headers={"host": host}).status_code == 403
            for host in ("localhost", "localhost:9", "127.0.0.1:1", "[::1]:7", "[::1]"):
                assert asked.get(path, headers={"host": host}).status_code == 200


def test_elsewhere_all_but_liveness_needs_a_key() -> None:
    """Check 26."""
    with port_of(Worker(), "0.0.0.0") as asked:
        assert asked.get("/healthz").status_code == 200
        for path in ("/readyz", "/metrics"):
            assert asked.get(path).status_code == 401
            for key, told in (("bad", "no such key"), ("tenant", "part of the platform"), ("away", "nobody can say")):
                answer = asked.get(path, headers={"authorization": f"Bearer {key}"})
                assert answer.status_code == 401
                assert told in answer.text
            assert asked.get(path, headers={"authorization": "Bearer good"}).status_code == 200
            assert asked.get(path, headers={"authorization": "Basic good"}).status_code == 401


def test_who_says_nothing_or_too_much_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_port, "PATIENCE", 0.3)
    with port_of(Worker()) as asked:
        place = ("127.0.0.1", asked.base_url.port)
        silent = [socket.create_connection(place) for _ in range(health_port.THREADS)]
        slow = socket.create_connection(place)
        slow.sendall(b"GET /he")
        with socket.create_connection(place) as long, suppress(OSError):
            long.sendall(b"GET /" + b"x" * 40_000)
            long.settimeout(5)
            assert long.recv(100) == b""
        for each in (*silent, slow):
            each.settimeout(5)
            with suppress(ConnectionResetError):
                assert each.recv(100) == b""
            each.close()
        assert asked.get("/healthz").status_code == 200


def test_a_port_that_is_taken_is_told_at_once() -> None:
    answers = HealthAnswers(lambda: True, Worker().metrics, Worker().refusal)
    with port_of(Worker()) as asked:
        taken = asked.base_url.port or 0
        with pytest.raises(InvalidInput, match="choose another --health-port"):
            HealthPort("127.0.0.1", taken, answers, MachineClock())
    with pytest.raises(InvalidInput, match=r"--health-host no\.such\.host\.invalid"):
        HealthPort("no.such.host.invalid", 0, answers, MachineClock())
