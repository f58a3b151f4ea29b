"""DeliveryTurn: who has a webhook, what is sent there next, and what follows from each try.

A sender has a webhook by a lease, in the database's time, and renews it with each try that it settles. Every write of
it asks for that lease: a sender that was frozen while another took over writes nothing. What it sent meanwhile was
sent twice, under the same id. The verdicts are `model.webhooks.judge`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstuck.model.payload import clean_text
from unstuck.model.spelling import about, given, screen
from unstuck.model.webhooks import (
    EXCERPT,
    LONGEST_ERROR,
    DeliveryAttempt,
    DeliveryState,
    TryOutcome,
    TryVerdict,
    WebhookStanding,
    WebhookState,
    attempts_json,
    attempts_of,
    judge,
)
from unstuck.store.database import Row, Transaction
from unstuck.store.deliver import webhooks
from unstuck.store.guard import audit
from unstuck.store.port.webhooks import ENGINE, DeliveryTurn, SettledTry, WebhookName
from unstuck.store.rows import instant, instant_or_none, microseconds, span

DISABLED = "Webhook disabled"
GIVEN_UP = "A webhook's delivery was given up"
ASIDE = "A webhook's delivery is set aside"
#: Seconds until what is set aside is tried again: as long as it has been, and no less and no more than this.
SOONEST = 60.0
LATEST = 6 * 3600.0
#: Seconds: all that is due there is held by somebody, or set aside.
_HELD_REST = 1.0


def next_in(t: Transaction) -> float | None:
    row = t.one("next_webhook")
    assert row is not None
    return None if row["due_at"] is None else max(0, row["due_at"] - row["now"]) / 1_000_000


def lease(
    t: Transaction,
    name: str,
    lasting: float,
    most: int,
    spared: Sequence[int],
    only: int | None,
    doubtful: bool | None,
) -> list[DeliveryTurn]:
    whom = {"most": most, "spared": list(spared), "only": only, "doubtful": _flag(doubtful)}
    rows = t.all("lease_webhooks", lease=name, lasting=span(lasting), **whom)
    found = [_next(t, row["id"], name) for row in sorted(rows, key=lambda row: int(row["id"]))]
    return [sending for sending in found if sending is not None]


def leasable(t: Transaction, most: int, spared: Sequence[int], doubtful: bool | None) -> list[WebhookName]:
    whom = {"most": most, "spared": list(spared), "doubtful": _flag(doubtful)}
    return webhooks.names_of(t.all("leasable_webhooks", **whom))


def _flag(doubtful: bool | None) -> int | None:
    return None if doubtful is None else int(doubtful)


def _next(t: Transaction, webhook: int, lease: str) -> DeliveryTurn | None:
    """What is sent there now; where there is nothing, the lease ends."""
    row = t.one("lock_leased_webhook", webhook=webhook, lease=lease)
    if row is None:
        return None
    due = t.one("due_delivery", webhook=webhook) if _may_send(row) else None
    if due is None:
        t.run("release_webhook", webhook=webhook, lease=lease)
        if _may_send(row) and row["due_at"] is not None:
            _rest_if_held(t, webhook)
        return None
    secrets = [row["secret"]]
    if row["old_secret"] is not None and row["old_secret_until"] > row["now"]:
        secrets.append(row["old_secret"])
    return DeliveryTurn(
        lease=lease,
        webhook=webhook,
        name=row["name"],
        tenant=row["tenant"],
        url=row["url"],
        secrets=tuple(secrets),
        delivery=due["id"],
        message=due["message"],
        kind=due["kind"],
        body=due["body"],
        tries=due["tries"],
        is_aside=bool(due["is_aside"]),
    )


def _may_send(row: Row) -> bool:
    return bool(row["state"] == WebhookState.ACTIVE and row["rest_until"] <= row["now"])


def _rest_if_held(t: Transaction, webhook: int) -> None:
    """Something is due that nobody could take: it is looked for again a little later, and not all the time."""
    ahead = t.one("next_delivery", webhook=webhook)
    if ahead is not None and ahead["due_at"] is not None and ahead["due_at"] <= ahead["now"]:
        t.run("rest_webhook", webhook=webhook, lasting=span(_HELD_REST))


def settle(
    t: Transaction, sending: DeliveryTurn, outcome: TryOutcome, lasting: float, fraction: float, go_on: bool
) -> SettledTry:
    row = t.one("lock_leased_webhook", webhook=sending.webhook, lease=sending.lease)
    if row is None:
        return SettledTry(None)
    delivery = t.one("lock_delivery", delivery=sending.delivery)
    verdict = None
    if delivery is not None:  # else it was forgotten meanwhile
        verdict = _settle(t, row, delivery, outcome, lasting, fraction)
    if sending.is_aside:
        t.run("drop_delivery_aside", delivery=sending.delivery)
    following = _next(t, sending.webhook, sending.lease) if go_on else None
    if not go_on:
        t.run("release_webhook", webhook=sending.webhook, lease=sending.lease)
    if verdict is None:
        return SettledTry(DeliveryState.WAITING, following)
    return SettledTry(verdict.state, following, verdict.disabled)


def _settle(
    t: Transaction, row: Row, delivery: Row, outcome: TryOutcome, lasting: float, fraction: float
) -> TryVerdict:
    now = instant(row["now"])
    before = WebhookStanding(
        failures=row["failures"],
        failing_since=instant_or_none(row["failing_since"]),
        tries=delivery["tries"],
        tried_since=instant_or_none(delivery["tried_since"]),
    )
    verdict = judge(outcome, before, now, webhooks.rules(t), fraction)
    after, error = verdict.standing, _error(outcome)
    assert after.tried_since is not None
    attempt = DeliveryAttempt(now, outcome.status, error, clean_text(outcome.excerpt, EXCERPT), outcome.took_ms)
    facts: dict[str, Any] = {"status": outcome.status, "error": error}
    t.run(
        "settle_delivery",
        delivery=delivery["id"],
        state=str(verdict.state),
        due_at=None if verdict.next_at is None else microseconds(verdict.next_at),
        tries=after.tries,
        tried_since=microseconds(after.tried_since),
        attempts=attempts_json([*attempts_of(delivery["attempts"]), attempt]),
        **facts,
    )
    if verdict.state is not DeliveryState.WAITING:
        webhooks.seat(t, row["id"], {delivery["about"]}, is_replay=False)
    t.run(
        "settle_webhook",
        webhook=row["id"],
        failures=after.failures,
        failing_since=None if after.failing_since is None else microseconds(after.failing_since),
        rest_until=0 if verdict.rest_until is None else microseconds(verdict.rest_until),
        taken=int(outcome.is_taken),
        lasting=span(lasting),
        **facts,
    )
    _tell(t, row, delivery, verdict, outcome)
    return verdict


def _error(outcome: TryOutcome) -> str | None:
    return None if outcome.error is None else clean_text(outcome.error, LONGEST_ERROR)


def _tell(t: Transaction, row: Row, delivery: Row, verdict: TryVerdict, outcome: TryOutcome) -> None:
    """What somebody has to look at, once for as long as nobody takes note."""
    name, tenant = row["name"], row["tenant"]
    whose = given("--tenant", tenant)
    if verdict.disabled is not None and row["state"] == WebhookState.ACTIVE:
        webhooks.become(t, row["id"], WebhookState.DISABLED, ENGINE, verdict.disabled)
        message = (
            f"webhook {name} of tenant {tenant} is sent nothing any more: {verdict.disabled}; what waits stays. Once "
            f"its receiver works: {about('unstuck webhooks enable', name, whose)}"
        )
        audit.notify(t, DISABLED, message, screen("webhooks", name), "error", tenant)
    elif verdict.state is DeliveryState.FAILED:
        message = (
            f"webhook {name} of tenant {tenant}: {delivery['kind']} was not taken for days, and is tried no more "
            f"({outcome.sentence}): {about('unstuck deliveries show', str(delivery['id']), whose)}"
        )
        audit.notify(t, GIVEN_UP, message, screen("webhooks", name), "warning", tenant)


def set_aside(t: Transaction, sending: DeliveryTurn, problem: str) -> None:
    """What is wrong with this one alone keeps back nothing but what is about the same; it is tried again. The webhook
    is given back for the next."""
    if t.one("lock_leased_webhook", webhook=sending.webhook, lease=sending.lease) is None:
        return  # another has it by now, and finds out for itself
    said = clean_text(problem, LONGEST_ERROR)
    again = {"soonest": span(SOONEST), "latest": span(LATEST)}
    t.run("set_delivery_aside", delivery=sending.delivery, error=said, **again)
    whose = given("--tenant", sending.tenant)
    message = (
        f"webhook {sending.name} of tenant {sending.tenant}: what came of {sending.kind} cannot be written; it is "
        f"set aside, and sent again now and then: {said}: "
        f"{about('unstuck deliveries show', str(sending.delivery), whose)}"
    )
    t.apart(lambda: audit.notify(t, ASIDE, message, screen("webhooks", sending.name), "error", sending.tenant))
    t.run("release_webhook", webhook=sending.webhook, lease=sending.lease)


def release(t: Transaction, sending: DeliveryTurn, rest: float) -> None:
    t.run("release_webhook", webhook=sending.webhook, lease=sending.lease)
    if rest > 0:
        t.run("rest_webhook", webhook=sending.webhook, lasting=span(rest))


def forget(t: Transaction, retention: float, batch: int, past: int) -> int:
    """The oldest first. A row of a webhook that somebody holds stays for now: who waited behind it is seated under
    that lock."""
    rows = t.all("ownerless_deliveries", batch=batch, past=past)
    if not rows:
        t.run("forget_webhooks")
        t.run("forget_deliveries_aside", batch=batch)
        rows = t.all("forgettable_deliveries", retention=span(retention), batch=batch, past=past)
    if not rows:
        return 0
    asked = sorted({row["webhook"] for row in rows})
    free = {row["id"] for row in t.all("lock_free_webhooks", webhooks=asked)}
    chosen = [row for row in rows if row["webhook"] in free]
    gone = t.run("forget_deliveries", deliveries=[row["id"] for row in chosen])
    for webhook in sorted(free):
        abouts = {row["about"] for row in chosen if row["webhook"] == webhook and row["state"] == "WAITING"}
        if abouts:
            webhooks.seat(t, webhook, abouts, is_replay=False)
            t.run("wake_webhook", webhooks=[webhook])
    return gone
