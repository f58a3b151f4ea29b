"""What an App offers besides its workflows: a property for each noun.

A noun is imported when it is first asked for: every executor imports the App, and most ask for none.

Written by `docs/draw_faces.py` from the table of operations; a test compares the two. Change operations/ instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstuck.app.engine import Engine

if TYPE_CHECKING:
    from unstuck.app.nouns import Limits, Pauses, Queues, Targets, Tenants, Workflows


class Face(Engine):
    """An Engine with a property for each noun."""

    @property
    def limits(self) -> Limits:
        """How many run at once, start in a time, or wait. Those of keys are set here, others with their noun."""
        from unstuck.app.nouns import Limits

        return Limits(self)

    @property
    def pauses(self) -> Pauses:
        """Everything that somebody paused, in one list. Set with their noun: queues, targets, tenants, workflows."""
        from unstuck.app.nouns import Pauses

        return Pauses(self)

    @property
    def queues(self) -> Queues:
        """What waits where, who serves it, and what shuts or limits it."""
        from unstuck.app.nouns import Queues

        return Queues(self)

    @property
    def targets(self) -> Targets:
        """Where jobs run one at a time; whose turn it is, and what blocks."""
        from unstuck.app.nouns import Targets

        return Targets(self)

    @property
    def tenants(self) -> Tenants:
        """Whose jobs; their shares, pauses and limits."""
        from unstuck.app.nouns import Tenants

        return Tenants(self)

    @property
    def workflows(self) -> Workflows:
        """What can be run, as its workers registered it; pause and limit it."""
        from unstuck.app.nouns import Workflows

        return Workflows(self)
