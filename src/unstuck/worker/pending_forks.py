"""Executors that are still to be ordered from the zygote, each with the descriptors it will get."""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from unstuck.executor.messages import Fork, pack
from unstuck.executor.page import SharedPage, memory_file, page_size
from unstuck.worker.dumps import Dumps
from unstuck.worker.member import Member
from unstuck.worker.spill import Spill
from unstuck.worker.zygote_link import ZygoteLink

#: Room in a shared page beyond two attempts per slot: what a supervisor may feed ahead.
AHEAD = 4096


@dataclass(slots=True)
class Birth:
    member: Member
    slots: int
    descriptors: tuple[int, ...]


def conceive(executor: int, alone: bool, slots: int, lease_until: float, now: float) -> Birth:
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
        spill = Spill(output, f"executor {executor}")
        member = Member(executor, alone, ours, page, Dumps(stack), spill, now, list(range(cells)))
        undo.pop_all()
    return Birth(member, slots, (theirs.detach(), page_fd, their_stack, their_output))


class Births:
    """First come, first born."""

    def __init__(self) -> None:
        self._waiting: deque[Birth] = deque()

    def add(self, birth: Birth) -> None:
        self._waiting.append(birth)

    def order(self, link: ZygoteLink) -> list[Member]:
        """Those that the zygote has been told to start."""
        ordered: list[Member] = []
        while self._waiting:
            birth = self._waiting[0]
            frame = pack([Fork(birth.member.number, birth.member.alone, birth.slots)])
            if not link.ask(frame, birth.descriptors):
                break
            self._waiting.popleft()
            close_all(birth.descriptors)
            ordered.append(birth.member)
        return ordered

    def call_off(self, member: Member) -> bool:
        """Whether there was still time to."""
        for birth in tuple(self._waiting):
            if birth.member is member:
                self._waiting.remove(birth)
                close_all(birth.descriptors)
                return True
        return False

    def __contains__(self, member: Member) -> bool:
        return any(birth.member is member for birth in self._waiting)


def close_all(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        os.close(fd)
