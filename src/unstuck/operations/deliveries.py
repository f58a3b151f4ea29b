"""Deliveries: what is sent to webhooks, and what came of each try."""

from __future__ import annotations

from typing import Any

from unstuck.model.errors import InvalidInput, UnknownDelivery, UnknownWebhook, quoted
from unstuck.model.payload import check_wording
from unstuck.model.webhooks import DeliveryState
from unstuck.operations.kinds import Cursor, number_of, whole_number
from unstuck.operations.table import READER, Caller, operation
from unstuck.operations.webhooks import known
from unstuck.views import Page
from unstuck.views.webhooks import DeliveryDetailsView, DeliveryView

_MOST = 1000


@operation(role=READER, whose="any", paged="after", errors=(UnknownWebhook,))
def list_(
    caller: Caller,
    *,
    webhook: str | None = None,
    state: str | None = None,
    job: str | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> Page[DeliveryView]:
    """What was sent, is to be sent, or was given up, the newest first; of one `webhook`, in one `state`, about one
    `job`."""
    most = whole_number(limit, "limit", least=1, most=_MOST)
    found = caller.store.deliveries(
        caller.listed,
        webhook=None if webhook is None else known(caller, webhook).number,
        state=_state(state),
        job=check_wording(job, "job"),
        before=number_of(after),
        limit=most,
    )
    items = tuple(DeliveryView.of(record) for record in found)
    return Page(items=items, next=str(found[-1].number) if len(found) == most else None)


@operation(role=READER, whose="any", errors=(UnknownDelivery,), command="deliveries show")
def get(caller: Caller, number: int) -> DeliveryDetailsView:
    """One delivery: what is sent, and what came of each try."""
    found = caller.store.delivery(caller.listed, whole_number(number, "number", least=0, most=2**63 - 1))
    if found is None:
        raise UnknownDelivery(number)
    return DeliveryDetailsView.whole(found)


def _state(asked: Any) -> DeliveryState | None:
    if asked is None:
        return None
    try:
        return DeliveryState(str(asked).upper())
    except ValueError:
        raise InvalidInput(f"state={quoted(asked)} is not one of {', '.join(DeliveryState)}") from None
