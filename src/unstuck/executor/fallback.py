"""Subprocess executors where forking is not safe: each is a program of its own and imports the app itself."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass

from unstuck.executor.marking import Place, mark_value
from unstuck.executor.process import EXECUTOR_TAG


@dataclass(frozen=True, slots=True)
class Start:
    """What a subprocess executor is told; the descriptors are inherited under these numbers."""

    app: str
    incarnation: str
    executor: int
    parent: int
    slots: int
    pulse: float
    alone: bool
    socket: int
    page: int
    stack: int
    output: int


def start(order: Start) -> int:
    """Start one; the caller closes its own descriptors."""
    for fd in (order.socket, order.page, order.stack, order.output):
        os.set_inheritable(fd, True)
    argv = [sys.executable, "-m", "unstuck.executor.fallback", json.dumps(asdict(order))]
    mark = mark_value(order.incarnation, order.executor)
    return os.posix_spawn(sys.executable, argv, {**os.environ, EXECUTOR_TAG: mark})


def run(order: Start) -> None:
    # Imported here: the guard needs only `start`, and stays small without asyncio.
    from unstuck.executor.attempt import describe
    from unstuck.executor.bootstrap import Descriptors, begin
    from unstuck.executor.capture import route_streams
    from unstuck.executor.loading import load_registry

    for fd in (order.socket, order.page, order.stack, order.output):
        os.set_inheritable(fd, False)
    fds = Descriptors(order.socket, order.page, order.stack, order.output)
    executor = begin(
        fds, order.executor, order.incarnation, order.parent, order.slots, order.pulse, order.alone, Place()
    )
    try:
        route_streams()
        sys.argv = ["unstuck"]
        registry = load_registry(order.app)
    except BaseException as error:
        executor.fail(f"the app could not be imported:\n{describe(error)[2]}")
    executor.serve(registry)


if __name__ == "__main__":
    run(Start(**json.loads(sys.argv[1])))
