"""The attempts in this process, shared by its threads: which are here, which have not begun, what is told of them.

An attempt is taken from `unbegun` by the thread that begins it, gives it back or cancels it first: dict.pop decides
races. The end of an attempt, and every message about it while it runs, are put into the outbox under one lock: so
nothing is told of an attempt after its end.
"""

from __future__ import annotations

import threading
from typing import Any

from unstuck.executor.attempt import Attempt, End
from unstuck.executor.messages import FlowCallMessage, GivenBack, Question, Return, Say
from unstuck.executor.outbox import Outbox

#: Output is streamed at most so often per attempt.
STREAM_EVERY = 1.0


class Attempts:
    def __init__(self, outbox: Outbox) -> None:
        self.here: dict[int, Attempt] = {}
        self.unbegun: dict[int, Attempt] = {}
        self._outbox = outbox
        self._lock = threading.Lock()

    def accept(self, attempt: Attempt) -> None:
        self.here[attempt.number] = attempt
        self.unbegun[attempt.number] = attempt

    def take(self, attempt: Attempt) -> bool:
        """To begin it. False: it was given back, cancelled or begun by another thread."""
        return self.unbegun.pop(attempt.number, None) is not None

    def give_back(self, numbers: list[int]) -> None:
        """Those of them that have not begun."""
        back = [number for number in numbers if self.unbegun.pop(number, None) is not None]
        for number in back:
            self.here.pop(number, None)
        self._outbox.put(GivenBack(back))

    def give_up(self, attempt: Attempt) -> None:
        """The supervisor withdrew it before its handler's first line."""
        self.here.pop(attempt.number, None)
        attempt.let_go()
        self._outbox.say(GivenBack([attempt.number]))

    def post(self, number: int, serial: int, question: Question) -> bool:
        """False: the attempt has ended, and nothing is asked for it any more, also not by a thread it left behind."""
        if not self.tell(number, FlowCallMessage(number, serial, question)):
            return False
        self._outbox.hurry()
        return True

    def tell(self, number: int, message: Any) -> bool:
        with self._lock:
            if number not in self.here:
                return False
            self._outbox.put(message)
        return True

    def tell_end(self, attempt: Attempt, end: End) -> None:
        with self._lock:
            if attempt.number in self.here:
                if attempt.progress is not None:
                    self._outbox.put(Say(attempt.number, "progress", attempt.progress))
                if attempt.unsaid_span is not None and not isinstance(end, Return):
                    self._outbox.put(Say(attempt.number, "span", attempt.unsaid_span))
                self._outbox.drop_begin(attempt.number)
                self._outbox.put(end)
                del self.here[attempt.number]

    def report_running(self, now: float) -> None:
        """Progress and output of those that run."""
        # A copy is made in one piece; over an iterator a finalizer could let another thread in.
        for attempt in self.here.copy().values():
            if attempt.progress is not None or attempt.output is not None or attempt.unsaid_span is not None:
                with self._lock:
                    if attempt.number in self.here:
                        self._report(attempt, now)

    def _report(self, attempt: Attempt, now: float) -> None:
        if attempt.progress is not None:
            text, attempt.progress = attempt.progress, None
            self._outbox.put(Say(attempt.number, "progress", text))
        if attempt.unsaid_span is not None:
            text, attempt.unsaid_span = attempt.unsaid_span, None
            self._outbox.put(Say(attempt.number, "span", text))
        if attempt.output is not None and now >= attempt.streamed_at + STREAM_EVERY:
            attempt.streamed_at = now
            if text := attempt.output.stream():
                self._outbox.put(Say(attempt.number, "output", text))
