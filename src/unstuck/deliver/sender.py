"""Sender: sends what waits for webhooks, a thread for each that has something to send.

One thread looks when something is due, leases some webhooks and gives each to a thread of its own, a few at once.
That one sends a delivery after the other, in the order that the store gives, settles each before the next, and gives
the webhook back after some seconds, so that one with much to send takes its turns like the others. There is no
leader: every worker and server has a sender, and a lease in the database says who has which webhook. A sender that
dies leaves its lease to run out; what it had sent and not settled is sent again, under the same id.

What is wrong here and not there, a database that is away, a secret that cannot be opened, counts against no receiver.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, Final

from unstuck.chance import Chance
from unstuck.clock import Clock, wall
from unstuck.deliver.dialler import WebhookDialler
from unstuck.model.errors import SecretNotOpened, StoreBusy, StoreError, StoreLocked
from unstuck.model.spelling import screen
from unstuck.model.webhooks import DeliveryState, TryOutcome, WebhookRules, secret_place, signed_headers
from unstuck.sealing import Sealer
from unstuck.store.port import DeliveryTurn, SettledTry, Store, WebhookName
from unstuck.telemetry import emit

#: Webhooks that one process sends to at once.
MOST_AT_ONCE: Final = 8
#: Of these to such whose last try failed: each may take its whole time again, and the others must not wait for it.
MOST_DOUBTFUL: Final = 4
#: Seconds of one turn.
TURN: Final = 5.0
#: A lease lasts a try's time and so many seconds more, for what is written about it.
SPARE: Final = 20.0
#: Between two looks while something waits; where nothing does, the janitor wakes it (`janitor/webhooks.py`).
LOOK_EVERY: Final = 1.0
SLEEP: Final = 60.0
#: Seconds that a webhook rests whose secret cannot be opened here, or whose tries cannot be written: what was sent is
#: sent again. And one whose own row cannot be written: it was sent nothing.
LEFT_ALONE: Final = 60.0
NOT_LEASED: Final = 5.0
_LONGEST_TROUBLE_REST: Final = 10.0
#: So often a row that somebody holds is asked for.
_MOST_BUSY: Final = 3


class Sender:
    """`start()` and `close()` as whatever lives beside a worker or server."""

    def __init__(self, store: Store, dialler: WebhookDialler, sealer: Sealer, clock: Clock, chance: Chance) -> None:
        self._store = store
        self._dialler = dialler
        self._sealer = sealer
        self._clock = clock
        self._chance = chance
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._looker = threading.Thread(target=self._run, name="unstuck-deliver", daemon=True)
        self._lock = threading.Lock()
        #: Each with whether its webhook's last try had failed.
        self._threads: dict[threading.Thread, bool] = {}
        self._failures = 0
        #: By number: until when it is left to others. Threads that send write it: under the lock.
        self._spared: dict[int, float] = {}

    def start(self) -> None:
        self._looker.start()

    def wake(self) -> None:
        """Something may be due; from any thread."""
        self._wake.set()

    def close(self, within: float = 2.0) -> None:
        """No new try begins. One under way has a moment; its lease runs out by itself."""
        self._stopping.set()
        self._wake.set()
        until = self._clock.boot() + within
        with self._lock:
            threads = [self._looker, *self._threads]
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - self._clock.boot()))
        self._store.close()

    # --- the looker -----------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                rest = self.look()
                self._failures = 0
            except Exception as error:
                rest = self._trouble(error)
            self._clock.wait(self._wake, rest)
            self._wake.clear()

    def _trouble(self, error: Exception) -> float:
        self._failures += 1
        if not isinstance(error, StoreError):
            logging.getLogger("unstuck").exception("the sender of webhooks failed")
        if self._failures in (1, 10, 100) or self._failures % 1000 == 0:
            emit("store_trouble", level=logging.WARNING, loop="deliver", error=str(error), times=self._failures)
        return min(_LONGEST_TROUBLE_REST, 0.1 * 2.0 ** min(self._failures, 10))

    def look(self) -> float:
        """Begin what is due, as far as there is room; how long until the next look."""
        ahead = self._store.next_webhook()
        if ahead is None:
            return SLEEP
        if ahead > 0:
            return min(ahead, LOOK_EVERY)
        with self._lock:
            room, doubtful = MOST_AT_ONCE - len(self._threads), MOST_DOUBTFUL - sum(self._threads.values())
        rules = self._store.webhook_rules()
        # The doubtful first: those that always have something to send would leave them no place.
        begun = self._begin_some(rules, min(room, doubtful), is_doubtful=True)
        begun += self._begin_some(rules, room - begun, is_doubtful=False)
        return 0.05 if begun else LOOK_EVERY

    def _begin_some(self, rules: WebhookRules, most: int, *, is_doubtful: bool) -> int:
        if most <= 0:
            return 0
        now, lasting, lease = self._clock.boot(), rules.timeout + SPARE, self._chance.nonce()
        with self._lock:
            self._spared = {number: until for number, until in self._spared.items() if until > now}
            spared = list(self._spared)
        try:
            leased = self._store.lease_webhooks(lease, lasting, most, spared, doubtful=is_doubtful)
        except Exception as error:
            if _is_away(error):
                raise
            whom = self._store.leasable_webhooks(most, spared, doubtful=is_doubtful)
            leased = self._lease_apart(lease, lasting, whom)
        for sending in leased:
            self._begin(sending, rules, now, is_doubtful)
        return len(leased)

    def _lease_apart(self, lease: str, lasting: float, whom: Sequence[WebhookName]) -> list[DeliveryTurn]:
        """Each by itself: one whose row cannot be written is left alone for a while, and keeps no other waiting."""
        leased: list[DeliveryTurn] = []
        for webhook in whom:
            try:
                leased += self._store.lease_webhooks(lease, lasting, 1, only=webhook.number)
            except Exception as error:
                if _is_away(error):
                    raise
                self._spare(webhook.number, NOT_LEASED)
                problem = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                emit("webhook_not_served", level=logging.WARNING, webhook=webhook.name, error=problem)
                message = f"webhook {webhook.name} of tenant {webhook.tenant} is sent nothing for now: {problem}"
                self._store.notify("Webhook cannot be served", message, screen("webhooks", webhook.name), "error")
        return leased

    def _spare(self, webhook: int, lasting: float = LEFT_ALONE) -> None:
        with self._lock:
            self._spared[webhook] = self._clock.boot() + lasting

    def _begin(self, sending: DeliveryTurn, rules: WebhookRules, leased_at: float, is_doubtful: bool) -> None:
        thread = threading.Thread(
            target=self._serve,
            args=(sending, rules, leased_at),
            name=f"unstuck-deliver-{sending.webhook}",
            daemon=True,
        )
        with self._lock:  # which it takes to leave
            thread.start()
            self._threads[thread] = is_doubtful

    # --- one webhook's turn ---------------------------------------------------------------------------------------
    def _serve(self, sending: DeliveryTurn, rules: WebhookRules, leased_at: float) -> None:
        try:
            self.serve(sending, rules, leased_at)
        except Exception as error:
            self._spare(sending.webhook)
            if not isinstance(error, StoreError):
                logging.getLogger("unstuck").exception("webhook %s could not be served", sending.name)
            emit("webhook_not_served", level=logging.WARNING, webhook=sending.name, error=str(error) or repr(error))
        finally:
            with self._lock:
                self._threads.pop(threading.current_thread(), None)
            self._wake.set()

    def serve(self, sending: DeliveryTurn, rules: WebhookRules, leased_at: float) -> None:
        """One delivery after the other until nothing is due, or its turn is over."""
        until = leased_at + TURN
        following: DeliveryTurn | None = sending
        while following is not None:
            present = following
            try:
                outcome = self._try(present, rules)
                if outcome is None:
                    return
                lease_ends = leased_at + rules.timeout + SPARE
                leased_at = self._clock.boot()
                go_on = not self._stopping.is_set() and leased_at < until
                settled = self._settle(present, outcome, rules, lease_ends, go_on)
            except Exception as error:
                if _is_away(error):
                    raise
                self._set_aside(present, error)
                return
            self._tell(present, outcome, settled)
            following = settled.next

    def _set_aside(self, sending: DeliveryTurn, error: Exception) -> None:
        """This one delivery is to blame, a trigger that refuses its row say: all others go on."""
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        emit(
            "delivery_set_aside", level=logging.ERROR, webhook=sending.name, message=sending.message, problem=problem
        )
        self._store.set_delivery_aside(sending, problem)

    def _try(self, sending: DeliveryTurn, rules: WebhookRules) -> TryOutcome | None:
        """None: it cannot be signed here, and was given back."""
        try:
            place = secret_place(sending.tenant, sending.name)
            secrets = [self._sealer.open(kept, place) for kept in sending.secrets]
        except SecretNotOpened as problem:
            self._spare(sending.webhook)
            emit("webhook_secret_closed", level=logging.ERROR, webhook=sending.name, problem=str(problem))
            message = (
                f"webhook {sending.name} of tenant {sending.tenant} cannot be signed for by a process: {problem}"
            )
            self._store.notify("Webhook cannot be signed for", message, screen("webhooks", sending.name), "error")
            self._store.release_webhook(sending)
            return None
        body = sending.body.encode()
        headers = signed_headers(sending.message, int(wall().timestamp()), body, secrets)
        return self._dialler.post(sending.url, headers, body, allow=rules.allow, within=rules.timeout)

    def _settle(
        self, sending: DeliveryTurn, outcome: TryOutcome, rules: WebhookRules, lease_ends: float, go_on: bool
    ) -> SettledTry:
        """Again while the store is away and the lease lasts: what is not written is sent again."""
        tries = 0
        while True:
            try:
                lasting, fraction = rules.timeout + SPARE, self._chance.fraction()
                return self._store.settle_try(sending, outcome, lasting, fraction, go_on=go_on)
            except StoreError as error:
                tries += 1
                if tries >= _MOST_BUSY and not _is_away(error):
                    raise  # somebody holds the row, or it is too slow
                rest = min(2.0, 0.1 * 2.0**tries)
                if self._clock.boot() + rest >= lease_ends or self._stopping.is_set():
                    raise
                self._clock.wait(self._stopping, rest)

    def _tell(self, sending: DeliveryTurn, outcome: TryOutcome, settled: SettledTry) -> None:
        if settled.state is None:
            emit("webhook_lease_lost", level=logging.WARNING, webhook=sending.name)
            return
        facts: dict[str, Any] = {
            "webhook": sending.name,
            "tenant": sending.tenant,
            "kind": sending.kind,
            "message": sending.message,
        }
        if settled.state is DeliveryState.DELIVERED:
            emit("delivered", level=logging.DEBUG, **facts, outcome="delivered")
            return
        emit("delivery_failed", **facts, outcome="failed", tries=sending.tries + 1, problem=outcome.sentence)
        if settled.disabled is not None:
            emit("webhook_disabled", level=logging.WARNING, webhook=sending.name, why=settled.disabled)


def _is_away(error: Exception) -> bool:
    """Whether no delivery is to blame for it."""
    return isinstance(error, StoreError) and (not isinstance(error, StoreBusy) or isinstance(error, StoreLocked))
