"""Partial results: values that a job gives before its end. No handler ever reads them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unstuck.executor.flow.arguments import stored_text
from unstuck.executor.flow.journal import AttemptJournal
from unstuck.executor.flow.rules import FlowRules
from unstuck.executor.messages import KeepPart
from unstuck.model.parts import called, check_part
from unstuck.model.payload import check_name


class FlowPartials:
    def __init__(self, rules: FlowRules, journal: AttemptJournal, pack: Callable[[Any], str]) -> None:
        self._rules = rules
        self._journal = journal
        self._pack = pack

    def partial(self, name: str, value: Any) -> Any:
        """Allowed inside of a step, too: nothing of it is ever read back by a handler."""
        self._rules.go_on()
        name = check_name(name, "partial result")
        text = stored_text(self._pack, value, called(name))
        check_part(name, text)
        return self._rules.run("partial", self._keep(name, text))

    async def _keep(self, name: str, text: str) -> None:
        await self._journal.ask(KeepPart(name, text))
