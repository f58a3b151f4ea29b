"""Publishing: what a handler tells everybody who follows the feed. No handler ever reads it back."""

from __future__ import annotations

import itertools
from typing import Any

from unstuck.executor.flow.journal import AttemptJournal
from unstuck.executor.flow.rules import FlowRules
from unstuck.executor.messages import Publish
from unstuck.model.news import check_place, publication


class FlowPublishing:
    def __init__(self, rules: FlowRules, journal: AttemptJournal) -> None:
        self._rules = rules
        self._journal = journal
        self._places = itertools.count(1)

    def publish(self, kind: str, data: Any, topic: str | None, ttl: float | None) -> Any:
        """Allowed inside of a step, too: nothing of it is ever read back by a handler."""
        self._rules.go_on()
        given = publication(kind, {} if data is None else data, topic, ttl)
        place = next(self._places)
        check_place(place)
        return self._rules.run("publish", self._tell(Publish(place, given)))

    async def _tell(self, question: Publish) -> None:
        await self._journal.ask(question)
