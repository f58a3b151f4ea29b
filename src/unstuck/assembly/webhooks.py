"""What sends to webhooks, beside every worker and server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstuck.assembly.store import open_store
from unstuck.model.times import Times
from unstuck.sealing import Sealer

if TYPE_CHECKING:
    from unstuck.deliver.sender import Sender


def webhook_sender(database: str, times: Times, sealer: Sealer) -> Sender:
    """What sends to webhooks, on a store of its own: a receiver that keeps it waiting keeps nobody else."""
    from unstuck.chance import SystemChance
    from unstuck.clock import MachineClock
    from unstuck.deliver.dialler import WebhookDialler
    from unstuck.deliver.sender import Sender

    clock = MachineClock()
    store = open_store(database, times, application="unstuck deliver")
    return Sender(store, WebhookDialler(clock=clock), sealer, clock, SystemChance())
