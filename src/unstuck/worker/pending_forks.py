"""Executors that the zygote has not been told to fork yet, each with the descriptors it will get."""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from collections.abc import Sequence

from unstuck.executor.messages import Fork, pack
from unstuck.executor.page import SharedPage, memory_file, page_size
from unstuck.records import dataclass
from unstuck.worker.dumps import Dumps
from unstuck.worker.member import Member
from unstuck.worker.output_pipe import OutputPipe
from unstuck.worker.zygote_link import ZygoteLink

#: Room in a shared page beyond two attempts per slot: what a supervisor may feed ahead.
AHEAD = 4096


@dataclass(slots=True)
class PendingFork:
    member: Member
    slots: int
    descriptors: tuple[int, ...]


def prepare_fork(
    executor: int, alone: bool, slots: int, lease_until: float, now: float, *, log_json: bool = False
) -> PendingFork:
    """Its descriptors, both ends of each; nothing stays open if one of them cannot be had."""
    cells = 2 * slots + AHEAD
    with contextlib.ExitStack() as undo:
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        undo.callback(theirs.close)
        page_fd = memory_file(f"unstuck-page-{executor}", page_size(cells))
        undo.callback(os.close, page_fd)
        page = SharedPage(page_fd)
        undo.callback(page.close)
        stack = memory_file(f"unstuck-stack-{executor}")
        undo.callback(os.close, stack)
        their_stack = os.dup(stack)
        undo.callback(os.close, their_stack)
        output, their_output = os.pipe()
        undo.callback(close_all, (output, their_output))
        ours.setblocking(False)
        page.grant(lease_until)
        output_pipe = OutputPipe(output, f"executor {executor}", as_json=log_json)
        member = Member(executor, alone, ours, page, Dumps(stack), output_pipe, now, list(range(cells)))
        undo.pop_all()
    return PendingFork(member, slots, (theirs.detach(), page_fd, their_stack, their_output))


class PendingForks:
    """In the order in which they were added."""

    def __init__(self) -> None:
        self._waiting: deque[PendingFork] = deque()

    def add(self, fork: PendingFork) -> None:
        self._waiting.append(fork)

    def send(self, link: ZygoteLink) -> list[Member]:
        """Those that the zygote has been told to start."""
        sent: list[Member] = []
        while self._waiting:
            fork = self._waiting[0]
            frame = pack([Fork(fork.member.number, fork.member.alone, fork.slots)])
            if not link.ask(frame, fork.descriptors):
                break
            self._waiting.popleft()
            close_all(fork.descriptors)
            sent.append(fork.member)
        return sent

    def withdraw(self, member: Member) -> bool:
        """Whether there was still time to."""
        for fork in tuple(self._waiting):
            if fork.member is member:
                self._waiting.remove(fork)
                close_all(fork.descriptors)
                return True
        return False

    def __contains__(self, member: Member) -> bool:
        return any(fork.member is member for fork in self._waiting)


def close_all(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        os.close(fd)
