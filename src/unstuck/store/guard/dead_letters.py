"""Dead letters: written in the transaction that ends what they are about, with one notification of each cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from unstuck.store.database import Transaction
from unstuck.store.guard import audit
from unstuck.store.port import NewLetter
from unstuck.store.rows import packed, span

#: Seconds.
LIFE: Final = 86400.0
LINK: Final = "/platform/dead-letters"


def add(t: Transaction, letters: Sequence[NewLetter], life: float = LIFE) -> None:
    """One of each run; a repeat adds nothing."""
    if not letters:
        return
    t.run("add_dead_letters", rows=packed([asdict(letter) for letter in letters]), life=span(life))
    for tenant, workflow, reason in sorted({(each.tenant, each.workflow, each.reason) for each in letters}):
        message = f"jobs of {workflow} are dead letters: {reason}"
        audit.notify(t, f"Dead letters: {reason}", message, LINK, "warning", tenant, workflow)
