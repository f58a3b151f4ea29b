"""Hooks: where other systems' deliveries come in, `POST /hooks/{id}`. Nobody shows a key here: a signature says who
sent it, and until that is known a stranger costs next to nothing.

Theory of operation. The hooks there are stand in a *book* in memory, which is compared with the database once in
some seconds however many ask: what a stranger sends opens no transaction. The body is read by the loop, within the
hook's own limit of bytes and of time, so a slow sender holds no thread. Then a thread verifies the signature by the
book. Only what holds is asked of the database: its job is stored with the line about it, in one transaction, and
answered once it is durable. A hook that was edited meanwhile is read again, and the delivery judged anew.

Refusals of deliveries whose sender is known are written one by one. Of all others few are: a line for each would let
anybody fill a disk. They are counted, and the next line that is written stands for them.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from unstuck.clock import Clock
from unstuck.intake.hooks import job_of, opened_secrets
from unstuck.intake.signing import SigningDoor, tell_refused
from unstuck.model import hooks
from unstuck.model.errors import (
    OutcomeUnknown,
    SecretNotOpened,
    SignatureRefused,
    StoreError,
    TooManyAttempts,
    TooManyQueued,
    UnstuckError,
)
from unstuck.model.hooks import Delivery, DeliveryProblem, DeliveryRefused, HookRules
from unstuck.operations.keyring import Throttle
from unstuck.operations.table import Caller
from unstuck.records import dataclass
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.problems import HttpProblem, problem_of
from unstuck.server.rates import Rates
from unstuck.store.port import HookDelivered, HookRecord, HookRefusal, NewHookDelivery, Store, asking_from

PREFIX = "/hooks/"
#: Seconds for which the book is believed.
FRESH = 5.0
#: And for which it is believed by whoever finds nothing in it, or no secret that holds.
SOON = 0.5
#: Hooks that the book holds; those made last are left out.
MOST_HOOKS = 20_000
_PAGE = 1000
#: Lines about strangers that a hook writes at once, and one more each so many seconds.
LINES = 10
LINE_EVERY = 6.0
#: Hooks whose lines about strangers are counted.
_MOST_COUNTED = 1000
#: Seconds after which the sender of a paused hook may come again.
PAUSED_FOR = 300
_TRIES = 3
_NOT_SIGNED = "its signature does not hold, or is too old"


@dataclass(frozen=True, slots=True)
class _Known:
    """A hook as the book has it, its secrets opened."""

    hook: HookRecord
    secrets: tuple[tuple[str, datetime | None], ...]
    problem: str | None = None

    def accepted(self, now: datetime) -> list[str]:
        return [text for text, until in self.secrets if until is None or until > now]


class HookBook:
    """Every hook there is, as of a moment ago. Safe to share between threads."""

    def __init__(self, base: Callable[[], Caller], clock: Clock) -> None:
        self._base = base
        self._clock = clock
        self._reading = threading.Lock()
        self._read_at: float | None = None
        self._store: Store | None = None
        self._stamp: tuple[Any, ...] | None = None
        self._known: dict[str, _Known] = {}
        self.rules = HookRules()
        #: So many seconds is the engine's time ahead of the database's clock, by which senders sign.
        self.ahead = 0.0

    @property
    def is_fresh(self) -> bool:
        return self._age < FRESH

    @property
    def _age(self) -> float:
        return float("inf") if self._read_at is None else self._clock.boot() - self._read_at

    def get(self, uid: str) -> _Known | None:
        return self._known.get(uid)

    def read(self, older: float = FRESH) -> bool:
        """Compare it with the database if it is older than that; whether it was. StoreError if nobody can say."""
        if self._age < older:
            return False
        with self._reading:
            if self._age < older:
                return False
            asked, caller = self._clock.boot(), self._base()
            store = caller.store
            stamp = store.hooks_stamp()
            if stamp != self._stamp or store is not self._store:
                self._known = {known.hook.uid: known for known in self._all(caller)}
                self._stamp, self._store = stamp, store
            self.rules, self.ahead = store.hook_rules(), store.clock_stand().ahead
            self._read_at = asked
            return True

    def _all(self, caller: Caller) -> list[_Known]:
        found: list[_Known] = []
        after, sealer = 0, caller.sealer()
        while len(found) < MOST_HOOKS:
            page = caller.store.hooks(None, after, _PAGE)
            for hook in page:
                try:
                    found.append(_Known(hook, tuple(opened_secrets(hook, sealer))))
                except SecretNotOpened as error:
                    found.append(_Known(hook, (), str(error)))
            if len(page) < _PAGE:
                return found
            after = page[-1].number
        return found


class HookDoor:
    """Answers deliveries. `signing`: the keys of this process, by which it signs what the engine makes."""

    def __init__(self, base: Callable[[], Caller], clock: Clock, rates: Rates | None) -> None:
        self._base = base
        self._rates = rates
        self.book = HookBook(base, clock)
        self._throttle = Throttle(clock)
        self._strangers = _Strangers(clock)

    @staticmethod
    def uid_of(exchange: Exchange) -> str | None:
        """The hook that is asked for; None: it is something else that is asked for."""
        path = exchange.own_path
        if exchange.method != "POST" or not path.startswith(PREFIX) or "/" in path[len(PREFIX) :]:
            return None
        return path[len(PREFIX) :]

    def most_bytes(self, uid: str) -> int:
        known = self.book.get(uid)
        return hooks.USUAL_BYTES if known is None else known.hook.spec.max_bytes

    # --- on a thread ----------------------------------------------------------------------------------------------

    def answer(self, uid: str, exchange: Exchange) -> HttpAnswer:
        for _ in range(_TRIES):
            known = self.book.get(uid)
            if known is None:
                if uid.startswith(hooks.ID_BEGINNING) and self.book.read(SOON):
                    continue  # it may have been made a moment ago
                return self._nobody(exchange)
            if (answer := self._try(known, exchange)) is not None:
                return answer
            self.book.read(0.0)
        raise HttpProblem("Overloaded", "the hook is changed all the time")

    def refused_body(self, uid: str, exchange: Exchange, error: HttpProblem) -> None:
        """A body that was too large, or came too slowly: its sender is not known."""
        problem = DeliveryProblem.TOO_LARGE if error.code == "TooLarge" else DeliveryProblem.TOO_SLOW
        if (known := self.book.get(uid)) is not None and error.code in ("TooLarge", "TooSlow"):
            status = problem_of(error, "").status
            self._note_stranger(
                known.hook, HookRefusal(known.hook.number, problem, str(error), status, None, exchange.address)
            )

    def _nobody(self, exchange: Exchange) -> HttpAnswer:
        """As much work as for a hook that is there, and the same rate."""
        hooks.burn(exchange.body)
        self._failed(exchange)
        raise HttpProblem("NotFound", "there is nothing at this path")

    def _try(self, known: _Known, exchange: Exchange) -> HttpAnswer | None:
        """None: the hook is not any more as the book has it."""
        caller, hook = self._base(), known.hook
        delivery = Delivery(exchange.body, exchange.headers, exchange.query)
        note = HookRefusal(hook.number, "", "", 0, None, exchange.address, len(exchange.body))
        if known.problem is not None:
            self._note_stranger(hook, replace(note, problem="secret_not_opened", reason=known.problem, status=503))
            raise HttpProblem("NotReady", "the hook cannot verify deliveries now", Retry_After=str(PAUSED_FOR))
        now = caller.store.likely_now()
        try:
            at, window = now.timestamp() - self.book.ahead, self.book.rules.window
            key = hooks.verified(hook.spec, known.accepted(now), delivery, at, window)
        except DeliveryRefused as refused:
            if self.book.read(SOON) and self.book.get(hook.uid) != known:
                return None  # its secret may have been rotated a moment ago
            self._note_stranger(hook, replace(note, problem=refused.problem, reason=str(refused), status=401))
            self._failed(exchange)
            raise HttpProblem("NotSigned", _NOT_SIGNED) from None
        if self._rates is not None:
            self._rates.take(f"hook {hook.uid}")
        try:
            return self._accept(caller, hook, delivery, key, exchange)
        except (DeliveryRefused, UnstuckError, HttpProblem) as error:
            self._note(caller, replace(note, key=key), error)
            raise _told(error) from None

    def _accept(
        self, caller: Caller, hook: HookRecord, delivery: Delivery, key: str, exchange: Exchange
    ) -> HttpAnswer | None:
        if hook.paused_at is not None:
            raise DeliveryRefused(DeliveryProblem.PAUSED, "the hook is paused")
        job = job_of(caller.store, hook, delivery, key, caller.times.max_timeout)
        job.trace = exchange.trace
        try:
            signed = SigningDoor(caller.signing(), caller.store).made(job, "hook")
        except SignatureRefused as error:
            tell_refused(caller.store, error, f"hook {hook.name}")
            raise
        new = NewHookDelivery(hook, key, signed, exchange.address, len(exchange.body))
        with asking_from(None, exchange.address):
            found = _delivered(caller.store, new)
        if found is None:
            return None
        told = {"id": key.removeprefix("id:"), "job": found.delivery.job}
        return HttpAnswer.of(told, 202 if found.is_new else 200)

    # --- what is written about refusals ---------------------------------------------------------------------------

    def _note(self, caller: Caller, note: HookRefusal, error: Exception) -> None:
        """One whose sender is known. That it cannot be written changes nothing of the refusal."""
        if isinstance(error, StoreError):
            return
        is_ours = isinstance(error, DeliveryRefused)
        reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
        problem = error.problem if isinstance(error, DeliveryRefused) else DeliveryProblem.NOT_ACCEPTED
        status = problem_of(_told(error), "").status
        self._write(caller, replace(note, problem=problem, reason=reason, status=status))

    def _note_stranger(self, hook: HookRecord, note: HookRefusal) -> None:
        if (calls := self._strangers.line(hook.number)) is not None:
            self._write(self._base(), replace(note, calls=calls))

    def _write(self, caller: Caller, note: HookRefusal) -> None:
        try:
            caller.store.refuse_hook_deliveries([note])
        except StoreError as error:
            logging.getLogger("unstuck").warning("a refused delivery could not be written: %s", error)

    def _failed(self, exchange: Exchange) -> None:
        """Whoever fails too often is told so; deliveries that are signed pass all the same."""
        address = exchange.address or ""
        try:
            self._throttle.check(address, None)
        except TooManyAttempts as error:
            wait = str(max(1, round(error.retry_after)))
            raise HttpProblem("TooManyRequests", "too many deliveries that do not hold", Retry_After=wait) from None
        self._throttle.failed(address, None)


def _delivered(store: Store, new: NewHookDelivery) -> HookDelivered | None:
    try:
        return store.deliver_to_hook(new)
    except OutcomeUnknown:  # under the same key: a second one finds the first
        return store.deliver_to_hook(new)


def _told(error: Exception) -> Exception:
    """As HTTP answers it: a sender is nobody of ours, and learns no names of queues, rules or keys."""
    match error:
        case DeliveryRefused(problem=DeliveryProblem.PAUSED):
            return HttpProblem("Paused", str(error), Retry_After=str(PAUSED_FOR))
        case DeliveryRefused():
            return HttpProblem("Refused", str(error))
        case TooManyQueued():
            wait = str(max(1, round(error.retry_after)))
            return HttpProblem("TooManyRequests", "too many jobs wait", Retry_After=wait)
        case StoreError() | HttpProblem():
            return error
        case _:
            return HttpProblem("Refused", f"it was not accepted: {type(error).__name__}")


class _Strangers:
    """How many lines may be written about deliveries whose sender is not known, hook by hook."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: Of each hook: lines that may be written, as of when, and calls that no line stands for yet.
        self._left: OrderedDict[int, tuple[float, float, int]] = OrderedDict()

    def line(self, hook: int) -> int | None:
        """For how many calls a line is to stand that is written now; None: none is to be written."""
        now = self._clock.boot()
        with self._lock:
            left, at, calls = self._left.pop(hook, (float(LINES), now, 0))
            left, calls = min(float(LINES), left + (now - at) / LINE_EVERY), calls + 1
            is_allowed = left >= 1
            self._left[hook] = (left - 1, now, 0) if is_allowed else (left, now, calls)
            if len(self._left) > _MOST_COUNTED:
                self._left.popitem(last=False)
        return calls if is_allowed else None
