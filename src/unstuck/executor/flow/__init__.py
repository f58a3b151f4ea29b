"""Durable flow, as a handler uses it through its Context: steps, waits, children, budget, partial results.

Theory of operation. An attempt finds what earlier attempts have left for it in the journal, which is loaded at the
first call of this kind (`journal`). A finished step gives what it gave then (`steps`); an answered wait gives its
answer (`waits`); any other wait lets the steps under way end (`parking`) and unwinds the handler: from then on every
call here raises again (`rules`), and whatever the handler does with that, its attempt ends *parked*. Questions to the
database, and their answers, go by way of the supervisor (`calls`).

Every verb is a coroutine. Where a loop runs it is the caller's to await (`promise`); elsewhere it is run to its end
right here, since without a loop nothing in it ever suspends: it blocks.

| file | holds |
| --- | --- |
| `rules` | where a call may be made, when it must stop, that it is awaited |
| `calls` | a question to the supervisor, and the wait for its answer |
| `journal` | what earlier attempts have left; questions that this attempt has sent |
| `ordinals` | which use of a name this is: by name and ordinal an attempt finds what is its own |
| `steps`, `step_function` | a step; how its function is called |
| `waits`, `parking` | events, approvals, times; how an attempt comes to park |
| `children`, `results` | spawn and gather; what ended children give |
| `meter`, `partials`, `publishing` | what was spent; partial results; what is told to everybody |
| `arguments` | checks of what the handler gave |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unstuck.executor.flow.calls import FlowCalls
from unstuck.executor.flow.children import FlowChildren
from unstuck.executor.flow.journal import AttemptJournal
from unstuck.executor.flow.meter import FlowMeter
from unstuck.executor.flow.ordinals import Ordinals
from unstuck.executor.flow.parking import Parking
from unstuck.executor.flow.partials import FlowPartials
from unstuck.executor.flow.publishing import FlowPublishing
from unstuck.executor.flow.rules import FlowRules, HandlerContext
from unstuck.executor.flow.steps import FlowSteps
from unstuck.executor.flow.waits import FlowWaits
from unstuck.model.waits import Wait


class Flow:
    """The durable flow of one attempt. `is_first`: no attempt of its job came before. `is_home`: whether this is the
    handler's own thread. `is_beside`: whether this is a task on its loop that is not the handler's own. `abandon`:
    called when the attempt parks."""

    def __init__(
        self,
        context: HandlerContext,
        calls: FlowCalls,
        pack: Callable[[Any], str],
        max_result: int,
        *,
        is_first: bool,
        is_home: Callable[[], bool],
        is_beside: Callable[[], bool],
        abandon: Callable[[], None],
    ) -> None:
        self.calls = calls
        self._parking = parking = Parking(calls)
        self._rules = rules = FlowRules(context, parking, is_home=is_home, is_beside=is_beside)
        self._journal = journal = AttemptJournal(context, calls, rules, is_first)
        ordinals = Ordinals()
        self.steps = FlowSteps(context, rules, journal, parking, ordinals, pack, max_result)
        self.waits = FlowWaits(context, rules, journal, parking, ordinals, abandon)
        self.children = FlowChildren(context, rules, journal, self.waits, ordinals)
        self.meter = FlowMeter(rules, journal)
        self.partials = FlowPartials(rules, journal, pack)
        self.publishing = FlowPublishing(rules, journal)

    @property
    def parked(self) -> Wait | None:
        return self._parking.parked

    def check_awaited(self) -> None:
        """At the handler's end: every call that it made was awaited."""
        self._rules.check_awaited()
