"""What this process has to say to its supervisor. Any thread puts it here; the control thread takes and sends it."""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from unstuck.executor.messages import Begun


class Outbox:
    """Messages in the order in which they were put, and the pipe that wakes the control thread for them."""

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        #: Attempts that have begun and whose begin was not told yet, with the instant.
        self._begun: dict[int, float] = {}
        self.wake_in, self._wake_out = os.pipe()
        os.set_blocking(self.wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._is_asleep = False
        self._is_gathering = False
        #: There is a message that cannot wait until others have come.
        self.is_urgent = False

    def __bool__(self) -> bool:
        return bool(self._messages)

    def put(self, message: Any) -> None:
        """Without waking the control thread: by that thread itself, or before a ring."""
        self._messages.append(message)

    def say(self, message: Any) -> None:
        self._messages.append(message)
        self.ring_if_asleep()

    def hurry(self) -> None:
        """Somebody waits for the answer to what was put last. Said first, then looked: `gather` does it the other way
        round."""
        self.is_urgent = True
        if self._is_asleep or self._is_gathering:
            self.ring()

    def note_begin(self, number: int, at: float) -> None:
        """No ring: the supervisor sees it in the page, too, and the end of a short job says it all."""
        self._begun[number] = at

    def drop_begin(self, number: int) -> None:
        self._begun.pop(number, None)

    def ring_if_asleep(self) -> None:
        if self._is_asleep:
            self.ring()

    def ring(self) -> None:
        self._is_asleep = self._is_gathering = False
        try:
            os.write(self._wake_out, b"!")
        except BlockingIOError:
            pass

    # by the control thread

    def fall_asleep(self) -> bool:
        """Says so first, then looks again: a message is either seen here or rings. False: there is one."""
        self._is_asleep = True
        if self._messages:
            self._is_asleep = False
        return self._is_asleep

    def gather(self) -> bool:
        """Rest, and be woken only for what is urgent. False: something is."""
        self._is_gathering = True
        if self.is_urgent:
            self._is_gathering = False
        return self._is_gathering

    def wake_up(self) -> None:
        self._is_asleep = self._is_gathering = False

    def take_all(self) -> list[Any]:
        """Begins come first and are looked for last: so none is told after another message of its attempt."""
        self.is_urgent = False
        messages, taken = self._messages, []
        while messages:
            taken.append(messages.popleft())
        # The end of one of them may drop it meanwhile.
        untold = [(number, self._begun.pop(number, None)) for number in self._begun.copy()]
        return [Begun(number, at) for number, at in untold if at is not None] + taken
