"""What handlers print, log and report as progress: collected by the main thread, written by the settler's.

It is written before the report that ends its attempt. What cannot be written now is tried again, and given up in the
end: it must not keep the end of its attempt from being written.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from unstuck.clock import Clock
from unstuck.model.job import AttemptRef
from unstuck.store.port import AttemptOutput, Verdict, WorkerPort
from unstuck.telemetry import emit
from unstuck.worker.write_retries import TRIES, pause_after


class HandlerOutputWriter:
    def __init__(self, store: WorkerPort, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        #: Not written yet: outputs joined, progress replaced.
        self._unwritten: dict[AttemptRef, AttemptOutput] = {}
        #: How many characters of their outputs are stored for certain. Of the settler's thread, as is the next.
        self._stored: dict[AttemptRef, int] = {}
        #: What could not be written: when to try again, and how often that was in vain.
        self._retries: dict[AttemptRef, tuple[float, int]] = {}

    def add(self, ref: AttemptRef, kind: str, text: str) -> None:
        said = AttemptOutput(ref, progress=text) if kind == "progress" else AttemptOutput(ref, output=text)
        with self._lock:
            self._unwritten[ref] = _joined(self._unwritten.get(ref), said)

    # by the settler's thread

    def due(self) -> list[float]:
        """When to write next; an instant long past if there is something new."""
        with self._lock:
            return [self._retries.get(ref, (0.0, 0))[0] for ref in self._unwritten]

    def write(self, most: int) -> None:
        """All but what could not be written a moment ago, at most `most` attempts in one call."""
        said = self._take()
        for start in range(0, len(said), most):
            some = said[start : start + most]
            try:
                verdicts = self._store.keep_output(
                    [replace(remark, at=self._stored.get(remark.ref, 0)) for remark in some]
                )
            except Exception:
                self._keep(said[start:])
                raise
            for remark, verdict in zip(some, verdicts, strict=True):
                if verdict is Verdict.BUSY:
                    self._try_later(remark)
                else:
                    self._stored[remark.ref] = self._stored.get(remark.ref, 0) + len(remark.output or "")
                    self._retries.pop(remark.ref, None)

    @property
    def is_late(self) -> bool:
        """Whether anything could not be written; while nothing is, no attempt need be asked about."""
        return bool(self._retries)

    def is_owed(self, ref: AttemptRef) -> bool:
        """Whether output of this attempt is to be written before its end. It is given up after some tries."""
        if ref not in self._retries:
            return False
        if self._retries[ref][1] < TRIES:
            return True
        with self._lock:
            self._unwritten.pop(ref, None)
        del self._retries[ref]
        emit("remark_lost", level=logging.WARNING, job=ref.job, token=ref.token)
        return False

    def next_try(self, ref: AttemptRef) -> float | None:
        retry = self._retries.get(ref)
        return None if retry is None else retry[0]

    def forget(self, refs: Iterable[AttemptRef]) -> None:
        """The ends of these attempts are written."""
        if self._stored:
            for ref in refs:
                self._stored.pop(ref, None)

    def _take(self) -> list[AttemptOutput]:
        with self._lock:
            now = self._clock.boot()
            ready = [ref for ref in self._unwritten if self._retries.get(ref, (0.0, 0))[0] <= now]
            return [self._unwritten.pop(ref) for ref in ready]

    def _try_later(self, remark: AttemptOutput) -> None:
        _, tries = self._retries.get(remark.ref, (0.0, 0))
        self._retries[remark.ref] = self._clock.boot() + pause_after(tries), tries + 1
        self._keep([remark])

    def _keep(self, said: Sequence[AttemptOutput]) -> None:
        with self._lock:
            for remark in said:
                self._unwritten[remark.ref] = _joined(remark, self._unwritten.get(remark.ref))


def _joined(earlier: AttemptOutput | None, later: AttemptOutput | None) -> AttemptOutput:
    """Both, as one: no chunk of output is lost, the last progress counts."""
    if earlier is None or later is None:
        either = earlier or later
        assert either is not None
        return either
    output = (
        None if earlier.output is None and later.output is None else (earlier.output or "") + (later.output or "")
    )
    return AttemptOutput(earlier.ref, output, earlier.progress if later.progress is None else later.progress)
