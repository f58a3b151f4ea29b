"""A fleet and everything that was heard from it: the supervisor of these tests."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.support.eventually import eventually
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.logs import as_text
from unstuck.model.policy import Policy
from unstuck.worker.fleet import Fleet
from unstuck.worker.processes import (
    ExecutorDied,
    ExecutorReady,
    Finished,
    FleetEvent,
    HandlerOutput,
    Imported,
    ImportFailed,
    Recalled,
    Started,
)

E = TypeVar("E")
APP = "tests.executor.apps:app"


class Watch:
    """Hears its fleet while it waits; keeps every event."""

    #: Which run of its job an attempt belongs to.
    run_number = 2
    token = 7

    def __init__(self, mode: str = "fork", app: str = APP, **options: Any) -> None:
        settings: dict[str, Any] = {"slots": 8, "pulse": 0.05, "kill_grace": 2.0, "import_limit": 20.0}
        self.incarnation = f"test-{os.getpid()}-{time.monotonic_ns()}"
        self.fleet = Fleet(
            app,
            incarnation=self.incarnation,
            fork=None if mode == "fork" else False,
            **{**settings, **options},
        )
        self.events: list[FleetEvent] = []
        self._jobs = 0
        self._executors = 0
        self.fleet.start()

    def wait(self, check: Callable[[], E | None], within: float = 15.0, every: float = 0.2) -> E:
        """Hear until the answer is there."""
        until = time.monotonic() + within
        while (answer := check()) is None:
            left = until - time.monotonic()
            if left <= 0:
                heard = [event for event in self.events if not isinstance(event, Imported)]
                raise AssertionError(f"not within {within:g} s; heard {heard[-10:]}")
            self.events += self.fleet.hear(min(left, every))
        return answer

    def first(self, kind: type[E], **facts: Any) -> E | None:
        for event in self.events:
            if isinstance(event, kind) and all(getattr(event, name) == fact for name, fact in facts.items()):
                return event
        return None

    def hear_one(self, kind: type[E], within: float = 15.0, **facts: Any) -> E:
        return self.wait(lambda: self.first(kind, **facts), within)

    def hear_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.events += self.fleet.hear(left)

    def executor(self, *, alone: bool = False) -> int:
        """A new one, ready."""
        self._executors += 1
        self.fleet.spawn(self._executors, alone=alone)
        self.hear_one(ExecutorReady, executor=self._executors)
        return self._executors

    def pid(self, executor: int) -> int:
        return next(view.pid for view in self.fleet.views() if view.executor == executor)

    def job(self, workflow: str, *args: Any, tenant: str = "default", **policy: Any) -> ClaimedJob:
        self._jobs += 1
        return ClaimedJob(
            ref=AttemptRef(self._jobs, self.token, f"claim-{self._jobs}"),
            id=f"job-{self._jobs}",
            run=self.run_number,
            tenant=tenant,
            queue="default",
            workflow=workflow,
            payload=json.dumps([args, {}]),
            policy=Policy(**policy),
            attempt=3,
            alone=False,
        )

    def feed(self, executor: int, workflow: str, *args: Any, tenant: str = "default", **policy: Any) -> AttemptRef:
        job = self.job(workflow, *args, tenant=tenant, **policy)
        self.fleet.feed(executor, [job])
        return job.ref

    def run(self, executor: int, workflow: str, *args: Any, tenant: str = "default", **policy: Any) -> Finished:
        return self.finished(self.feed(executor, workflow, *args, tenant=tenant, **policy))

    def result(self, executor: int, workflow: str, *args: Any, **options: Any) -> Any:
        finished = self.run(executor, workflow, *args, **options)
        return json.loads(finished.outcome.result)  # type: ignore[union-attr,arg-type]

    def begin(self, executor: int, workflow: str, *args: Any, **options: Any) -> AttemptRef:
        """Fed and started; of one that is over as quickly its end may be all that is heard."""
        ref = self.feed(executor, workflow, *args, **options)
        self.wait(lambda: self.first(Started, ref=ref) or self.first(Finished, ref=ref))
        return ref

    def finished(self, ref: AttemptRef, within: float = 15.0) -> Finished:
        return self.hear_one(Finished, within, ref=ref)

    def died(self, executor: int, within: float = 15.0) -> ExecutorDied:
        return self.hear_one(ExecutorDied, within, executor=executor)

    def recalled(self, ref: AttemptRef) -> Recalled:
        return self.wait(lambda: next((e for e in self.events if isinstance(e, Recalled) and ref in e.refs), None))

    def said(self, ref: AttemptRef, kind: str) -> list[str]:
        return [e.text for e in self.events if isinstance(e, HandlerOutput) and e.ref == ref and e.kind == kind]

    def output(self, finished: Finished) -> str:
        """For people, as the store's readers give it."""
        return as_text(self.framed(finished))

    def framed(self, finished: Finished) -> str:
        return "".join(self.said(finished.ref, "output")) + (finished.output or "")

    def imported(self) -> Imported:
        return self.hear_one(Imported)

    def import_failed(self, within: float = 15.0) -> ImportFailed:
        return self.hear_one(ImportFailed, within)

    def close(self) -> None:
        self.fleet.close()


def stop(pid: int) -> None:
    """STOP it and wait until none of its threads runs any more: the signal takes a moment to reach them all."""
    os.kill(pid, signal.SIGSTOP)
    eventually(
        lambda: all(_state(f"/proc/{pid}/task/{thread}") in "Tt" for thread in os.listdir(f"/proc/{pid}/task"))
    )


def _state(folder: str) -> str:
    with open(f"{folder}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def is_gone(pid: int) -> bool:
    """Ended; a zombie that nobody has reaped yet counts as such."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
