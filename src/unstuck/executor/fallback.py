"""Subprocess executors where forking is not safe: each is a program of its own and imports the app itself."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

from unstuck.executor.process import EXECUTOR_TAG
from unstuck.executor.tagging import TagPlace, tag_value
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class ProgramSetup:
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


def start(setup: ProgramSetup) -> int:
    """Start one; the caller closes its own descriptors."""
    for fd in (setup.socket, setup.page, setup.stack, setup.output):
        os.set_inheritable(fd, True)
    argv = [sys.executable, "-m", "unstuck.executor.fallback", json.dumps(asdict(setup))]
    tag = tag_value(setup.incarnation, setup.executor)
    return os.posix_spawn(sys.executable, argv, {**os.environ, EXECUTOR_TAG: tag})


def run(setup: ProgramSetup) -> None:
    # Imported here: the guard needs only `start`, and stays small without asyncio.
    from unstuck.executor.bootstrap import Descriptors, begin
    from unstuck.executor.capture import route_streams
    from unstuck.executor.describe import describe
    from unstuck.executor.loading import load_registry

    for fd in (setup.socket, setup.page, setup.stack, setup.output):
        os.set_inheritable(fd, False)
    fds = Descriptors(setup.socket, setup.page, setup.stack, setup.output)
    executor = begin(
        fds, setup.executor, setup.incarnation, setup.parent, setup.slots, setup.pulse, setup.alone, TagPlace()
    )
    try:
        route_streams()
        sys.argv = ["unstuck"]
        registry = load_registry(setup.app)
    except BaseException as error:
        executor.fail(f"the app could not be imported:\n{describe(error)[2]}")
    executor.serve(registry)


if __name__ == "__main__":
    run(ProgramSetup(**json.loads(sys.argv[1])))
