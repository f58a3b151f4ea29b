"""unstuck worker --server: a real worker by TLS, with a key that grants a part, until that key is revoked."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import httpx2
import trustme

from tests.cli.command import APP, Command
from tests.client.tls import TlsFront
from tests.server.conftest import running
from tests.support.eventually import eventually
from tests.tiers import slow
from unstuck.assembly.server import ServerOptions
from unstuck.assembly.store import open_store
from unstuck.model.keys import id_in
from unstuck.model.times import Times
from unstuck.operations import keys
from unstuck.operations.table import Caller


@slow
def test_a_worker_of_a_part_by_tls_until_its_key_is_revoked(unstuck: Command, tmp_path: Path) -> None:
    log, authority, ca = tmp_path / "worker.log", trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    assert unstuck.url is not None
    unstuck("db", "migrate")
    store = open_store(unstuck.url, Times())
    key = keys.create(Caller(store, "ada"), "gpu-1", role="worker", workflows=["last_until"]).key
    reader = keys.create(Caller(store, "ada"), "grafana", role="reader").key
    tenants = keys.create(Caller(store, "ada", "acme"), "acme", role="reader").key
    options = ServerOptions(unstuck.url, port=0)
    with running(options) as site, TlsFront(site.url, authority.issue_cert("localhost")) as front:
        flags = ["--server", f"https://localhost:{front.port}", "--ca", str(ca), "--health-port", "0"]
        with log.open("wb") as sink:
            process = subprocess.Popen(
                unstuck.words("worker", APP, *flags, "--health-host", "0.0.0.0", "--drain", "5s"),
                cwd=tmp_path,
                env=unstuck.environment() | {"UNSTUCK_KEY": key, "UNSTUCK_DATABASE": ""},
                stdin=subprocess.DEVNULL,
                stderr=sink,
            )
        try:
            eventually(lambda: [w for w in store.workers() if w.serves], timeout=60)
            (worker,) = store.workers()
            assert worker.serves["workflows"] == ["last_until"]
            assert "not_granted" in log.read_text()
            assert front.trusted > 0
            port = re.search(r"http://0\.0\.0\.0:(\d+)", log.read_text())
            assert port
            url = f"http://127.0.0.1:{port.group(1)}"
            eventually(lambda: httpx2.get(f"{url}/readyz", headers=bearer(reader)).status_code == 200, timeout=30)
            assert "unstuck_worker_ready 1" in httpx2.get(f"{url}/metrics", headers=bearer(reader)).text
            assert httpx2.get(f"{url}/healthz").status_code == 200
            mistyped = reader[:-1] + ("x" if reader[-1] != "x" else "y")
            for other, said in ((key, "role reader"), (tenants, "part of the platform"), (mistyped, "")):
                answer = httpx2.get(f"{url}/metrics", headers=bearer(other))
                assert answer.status_code == 401
                assert said in answer.text
            job = unstuck.enqueue("last_until", str(tmp_path / "never"))
            eventually(lambda: unstuck("jobs", "show", job, "--json").object["state"] == "RUNNING", timeout=30)
            unstuck("keys", "revoke", id_in(key) or "")
            revoked_at = time.monotonic()
            eventually(lambda: "key_refused" in log.read_text(), timeout=20)
            assert time.monotonic() - revoked_at < 8.0  # five seconds, and what a busy machine adds
            assert process.wait(30) == 5
            assert log.read_text().splitlines()[-1].startswith("unstuck: this API key does not work; ")
        finally:
            process.kill()
            process.wait(10)
            store.close()


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}
