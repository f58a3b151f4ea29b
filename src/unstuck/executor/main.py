"""One executor process: what each of its threads runs, and how they are put together.

| thread | runs | file |
| --- | --- | --- |
| main | the app's hooks; the event loop with coroutine handlers; all jobs, if it is *alone* | `main_thread.py` |
| control | input and output with the supervisor, the pulse; never user code | `control_thread.py` |
| workers (`unstuck-job-N`) | sync handlers | `crew.py`, `execution.py` |
| `unstuck-interrupt` | repeats a signal that found code which must be spared | `interrupt.py` |
| `unstuck-children` | ends the processes that ended attempts have started | `children.py` |

They share the attempts (`attempts.py`), the messages to the supervisor (`outbox.py`) and the page (`page.py`).
"""

from __future__ import annotations

import os

from unstuck.executor.attempts import Attempts
from unstuck.executor.collector_pause import CollectorPause
from unstuck.executor.control_thread import ControlThread
from unstuck.executor.crew import Crew
from unstuck.executor.describe import describe
from unstuck.executor.execution import Execution
from unstuck.executor.interrupt import Interrupter
from unstuck.executor.main_thread import MainThread
from unstuck.executor.messages import Failed, Ready, pack
from unstuck.executor.outbox import Outbox
from unstuck.executor.setup import ExecutorSetup
from unstuck.model.workflow import Registry


class Executor:
    """Made on the main thread of its process."""

    def __init__(self, setup: ExecutorSetup) -> None:
        self._setup = setup
        self._outbox = Outbox()
        self._attempts = Attempts(self._outbox)
        #: Over whatever a thread of ours does that others depend on.
        self._gc_pause = CollectorPause()
        self._execution = Execution(setup, self._outbox, self._attempts, self._gc_pause)
        self._crew = Crew(setup.slots, self._execution.run)
        self._interrupter = Interrupter(setup.page, self._attempts.here, setup.stack, self._outbox.say)

    def fail(self, error: str) -> None:
        """Say why this executor cannot begin, and end."""
        wire = self._setup.wire
        wire.settimeout(5.0)
        try:
            wire.sendall(pack([Failed(error)]))
        finally:
            os._exit(1)

    def serve(self, registry: Registry) -> None:
        """Run until drained; never returns."""
        shared = self._setup, self._outbox, self._attempts, self._execution, self._interrupter
        main = MainThread(*shared, registry)
        try:
            main.run_start_hooks()
        except BaseException as error:
            _, _, stack = describe(error)
            self.fail(f"an on_start hook failed:\n{stack}")
        main.prepare()
        self._outbox.put(Ready())
        ControlThread(*shared, self._crew, main, self._gc_pause, registry).start()
        main.serve()
