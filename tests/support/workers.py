"""Real worker processes for journeys: started, watched and ended by the test that started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.support.warm import PATHS, Forked, warm_process
from unstuck.model.job import WorkerRecord
from unstuck.model.times import Times
from unstuck.store.port import Store

ROOT = Path(__file__).parents[2]

#: All times divided, all inequalities kept.
COMPRESSED = Times(
    lease=6.0,
    beat=1.0,
    margin=1.5,
    sweep=0.5,
    poll=0.2,
    cancel_poll=0.4,
    grace=0.5,
    kill_grace=0.5,
    pulse=0.1,
    unresponsive=1.0,
    frozen=2.0,
    drain=20.0,
    store_call=0.9,
    slack=0.5,
    offer_ack=1.0,
    import_limit=20.0,
)

_MAIN = """
import json, logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(threadName)s %(message)s")
from unstuck.assembly.worker import WorkerOptions, build_worker
from unstuck.model.times import Times
options = json.loads(sys.argv[1])
options["times"] = Times(**options["times"])
options["queues"] = tuple(options.get("queues", ()))
if "signing" in options:
    from unstuck.signing import SignatureRule, SigningKeys, read_keys
    given, options["signing_file"] = options["signing"], options["signing"].get("file")
    options["signing"] = SigningKeys(read_keys(given["file"]), map(SignatureRule.of, given.get("required", ())))
sys.exit(build_worker(WorkerOptions(**options)).run())
"""


@dataclass
class Worker:
    name: str
    process: subprocess.Popen[bytes] | Forked
    log: Path
    times: Times = field(default=COMPRESSED)
    #: It asks a server, and not the database.
    is_far: bool = False

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """The supervisor alone, as the out-of-memory killer would."""
        self.process.kill()
        self.process.wait()

    def kill_all(self) -> None:
        """Supervisor, zygote and executors, as a crash of their container would. The first does nothing any more
        while the others are looked for."""
        self.process.send_signal(signal.SIGSTOP)
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for child in family:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                pass
        self.process.wait()

    def wait(self, timeout: float = 30.0) -> int:
        return self.process.wait(timeout)

    def record(self, store: Store) -> WorkerRecord | None:
        return next((w for w in store.workers() if w.pid == self.process.pid), None)

    def executors(self, store: Store) -> list[int]:
        record = self.record(store)
        return [e["pid"] for e in record.info.get("executors", []) if e["pid"]] if record else []


@contextmanager
def workers(url: str, folder: Path, **variables: str) -> Iterator[Any]:
    """Gives a function that starts workers with these environment variables; ends them all, and shows what they
    said if the test failed."""
    started: list[Worker] = []

    def start(
        name: str = "",
        *,
        app: str = "tests.journeys.apps:app",
        times: Times = COMPRESSED,
        before: str = "",
        **more: Any,
    ) -> Worker:
        """`before`: what its supervisor runs before it is one, and before it imports anything of ours."""
        name = name or f"w{len(started) + 1}"
        options = {"app": app, "database": url, "name": name, "times": asdict(times), "concurrency": 4, **more}
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            words = ["-c", before + _MAIN, json.dumps(options)]
            environment = os.environ | PATHS | variables
            process: subprocess.Popen[bytes] | Forked
            if before:
                process = subprocess.Popen(
                    [sys.executable, *words], cwd=ROOT, env=environment, stdout=out, stderr=out
                )
            else:
                process = warm_process().start(words, ROOT, environment, out.fileno(), out.fileno())
        worker = Worker(name, process, log, times, is_far="server" in more)
        started.append(worker)
        return worker

    try:
        yield start
    finally:
        for worker in started:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()
            print(f"----- {worker.name}: exit {worker.process.returncode}\n{worker.log.read_text()[-6000:]}")
