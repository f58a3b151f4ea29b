"""The journal: what earlier attempts of this run have left, and what this attempt asks of the database.

It is loaded once, page by page, by the first call that needs it; calls that come meanwhile wait for that. A question
that was sent stays sent: if its caller is cut off, the same use of the same name takes over its answer.
"""

from __future__ import annotations

import threading

from unstuck.executor.flow.calls import FlowCalls, PendingAnswer
from unstuck.executor.flow.rules import FlowRules, HandlerContext
from unstuck.executor.messages import Fenced, JournalPage, LoadJournal, Question, RefusedMessage, Reply
from unstuck.model import errors
from unstuck.model.errors import Cancelled, UnstuckError
from unstuck.model.waits import Child, WaitRecord

_LOST = "another worker may own this job now"


class AttemptJournal:
    def __init__(self, context: HandlerContext, calls: FlowCalls, rules: FlowRules, is_first: bool) -> None:
        self._context = context
        self.calls = calls
        self._rules = rules
        #: By name and ordinal; waits by key.
        self.steps: dict[tuple[str, int], str] = {}
        self.waits: dict[str, WaitRecord] = {}
        self.children: dict[tuple[str, int], Child] = {}
        # Reentrant: the collector may close a coroutine here that was loading the journal.
        self._lock = threading.RLock()
        self._recorded = 0
        #: The first attempt of a job finds nothing, and need not ask.
        self._is_loaded = is_first
        #: Calls that wait while another one loads the journal; None while none does.
        self._latecomers: list[PendingAnswer] | None = None
        #: Sent and not answered yet, even if the caller was cut off: what a step gave, and where the answer arrives.
        self._sent: dict[tuple[str, str, int], tuple[str, PendingAnswer]] = {}

    async def load(self) -> None:
        self._rules.go_on()
        while not self._is_loaded:
            answer: PendingAnswer | None = None
            with self._lock:
                if self._latecomers is None:
                    self._latecomers = []
                else:
                    answer = PendingAnswer()
                    self._latecomers.append(answer)
            if answer is not None:
                await self.calls.wait(answer)
                self._rules.go_on()
                continue
            try:
                await self._load_pages()
            finally:
                with self._lock:
                    late, self._latecomers = self._latecomers, None
                for answer in late:
                    answer.put(None)
        await self._rules.let_park()

    async def _load_pages(self) -> None:
        after: int | None = 0
        while after is not None:
            answer = await self.ask(LoadJournal(after))
            assert isinstance(answer, JournalPage)
            page = answer.journal
            self.steps.update({(step.name, step.ordinal): step.result for step in page.steps})
            self.waits.update({record.wait.key: record for record in page.waits})
            self.children.update({(child.name, child.ordinal): child for child in page.children})
            after = page.after
        self._recorded = len(self.steps)
        self._is_loaded = True

    @property
    def recorded(self) -> int:
        """How many steps are recorded, by this attempt and those before it."""
        with self._lock:
            return self._recorded

    def count_step(self) -> None:
        with self._lock:
            self._recorded += 1

    def sent_before(self, kind: str, name: str, ordinal: int) -> PendingAnswer | None:
        """By a call of the same use that was cut off since; its answer is still to come, or came too late."""
        sent = self._sent.get((kind, name, ordinal))
        return None if sent is None else sent[1].follow()

    def send(self, kind: str, name: str, ordinal: int, question: Question, text: str = "") -> PendingAnswer:
        # The function of a step may have forked, and this be the child.
        self._context._check_process()
        answer = self.calls.send(question)
        self._sent[kind, name, ordinal] = (text, answer)
        return answer

    async def receive(self, kind: str, name: str, ordinal: int, pending: PendingAnswer) -> tuple[str, Reply]:
        answer = await self.calls.wait(pending)
        text, _ = self._sent.pop((kind, name, ordinal))
        return text, self._obey(answer)

    async def ask(self, question: Question) -> Reply:
        self._context._check_process()
        return self._obey(await self.calls.ask(question))

    def _obey(self, answer: Reply | None) -> Reply:
        if answer is None:
            self._rules.stop()
        if isinstance(answer, Fenced):
            self._context.has_lost_lease = True
            raise Cancelled(_LOST)
        if isinstance(answer, RefusedMessage):
            raise _error(answer.type, answer.message)
        self._rules.go_on()
        return answer


def _error(kind: str, message: str) -> UnstuckError:
    """What the database refused, as the same error here; its own attributes stayed behind."""
    found = getattr(errors, kind, None)
    known = found if isinstance(found, type) and issubclass(found, UnstuckError) else UnstuckError
    error = known.__new__(known, message)
    error.args = (message,)
    return error
