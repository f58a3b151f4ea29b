"""The supervisor: lives one incarnation after the other until it is asked to stop.

An incarnation whose lease was lost is dead for good: its executors are killed, its late writes are fenced. What the
process can do is begin anew, under a new name, with new executors: a laptop that slept needs no one to restart it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from unstuck.model.times import Times
from unstuck.telemetry import emit
from unstuck.worker.incarnation import Incarnation
from unstuck.worker.parts import End
from unstuck.worker.shutdown import Shutdown, signals_handled


class Beside(Protocol):
    """What lives as long as the worker, whatever becomes of its incarnations."""

    def start(self) -> None: ...

    def close(self) -> None: ...


class Supervisor:
    """`run()` blocks until the worker has left and answers its exit code; `stop()` may be called from anywhere."""

    def __init__(self, begin: Callable[[Shutdown], Incarnation], times: Times, beside: Sequence[Beside] = ()) -> None:
        self._begin = begin
        self._shutdown = Shutdown(times)
        self._present: Incarnation | None = None
        self._beside = beside

    @property
    def held(self) -> int:
        """Attempts that it holds now."""
        return 0 if self._present is None else self._present.state.ledger.held

    def run(self) -> int:
        for each in self._beside:
            each.start()
        try:
            return self._run()
        finally:
            for each in self._beside:
                each.close()

    def _run(self) -> int:
        with signals_handled(self._shutdown, self._nudge):
            while True:
                self._present = self._begin(self._shutdown)
                end = self._present.run()
                if end is End.LEFT or self._shutdown.is_asked:
                    return self._shutdown.exit_code
                emit("begins_anew", level=logging.WARNING)

    def stop(self) -> None:
        """As a first TERM; called again, as a second."""
        self._shutdown.ask()
        self._nudge()

    def _nudge(self) -> None:
        if self._present is not None:
            self._present.nudge()
