"""How a process becomes an executor, forked or started as a program of its own."""

from __future__ import annotations

import faulthandler
import functools
import os
import socket

from unstuck.executor import process
from unstuck.executor.main import Executor
from unstuck.executor.page import SharedPage
from unstuck.executor.setup import ExecutorSetup
from unstuck.executor.tagging import ProcessTag, TagPlace
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What every executor is given, in the order it travels."""

    socket: int
    page: int
    stack: int
    output: int


def begin(
    fds: Descriptors,
    executor: int,
    incarnation: str,
    parent: int,
    slots: int,
    pulse: float,
    alone: bool,
    place: TagPlace,
) -> Executor:
    """Turn this process into an executor: own session, clean signals, streams and tags."""
    process.lead_session()
    process.die_with_parent(parent)
    process.reset_signals()
    process.join_streams(fds.output)
    tag = ProcessTag(place, incarnation, executor)
    faulthandler.enable(file=fds.stack, all_threads=True)
    # What handlers fork would leave its own crash report there, and the next death would be taken for it.
    os.register_at_fork(after_in_child=functools.partial(faulthandler.enable, file=2))
    page = SharedPage(fds.page)
    os.close(fds.page)
    os.register_at_fork(after_in_child=page.detach)
    wire = socket.socket(fileno=fds.socket)
    return Executor(ExecutorSetup(wire, page, fds.stack, slots, pulse, alone, tag))
