"""What an executor process is given at its start."""

from __future__ import annotations

import socket

from unstuck.executor.page import SharedPage
from unstuck.executor.tagging import ProcessTag
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorSetup:
    """`stack`: the descriptor that stacks are written to. `slots`: jobs at a time. `pulse`: seconds between two
    reports. `alone`: one job at a time, on the main thread."""

    wire: socket.socket
    page: SharedPage
    stack: int
    slots: int
    pulse: float
    alone: bool
    tag: ProcessTag
