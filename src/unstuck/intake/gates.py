"""Gates: what an operator may shut or limit, checked at the door: names, numbers, times that make sense."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, get_args

from unstuck.intake.submit import UNSAID, Unsaid
from unstuck.model.errors import InvalidInput, UnknownTarget, UnknownTenant, quoted
from unstuck.model.job import DEFAULT_TENANT
from unstuck.model.limits import parse_rate
from unstuck.model.payload import check_instant, check_name, check_wording, plain_text
from unstuck.model.policy import LONGEST
from unstuck.store.port import BY_CODE, EVERY, Limit, LimitKind, LimitPart, Pause, PauseKind, Store, TenantRecord

_MOST = 1_000_000_000
_MOST_WEIGHT = 1_000_000
_MOST_LISTED = 100_000
_SHORTEST = 0.001
#: Which of them may be about all tenants.
_OF_EVERY_TENANT = {"pause": ("queue", "workflow"), "limit": ("queue", "workflow", "workflow_key", "key")}


class Gates:
    """Pauses, limits and weights. `tenant` is whose they are unless a verb names another or EVERY ("*")."""

    def __init__(self, store: Store, *, tenant: str = DEFAULT_TENANT, by: str = "app") -> None:
        self._store = store
        self._tenant = tenant
        self._by = by

    # --- pauses -------------------------------------------------------------------------------------------------
    def pause(
        self,
        kind: PauseKind,
        name: str,
        *,
        tenant: str | None = None,
        lasting: float | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> Pause:
        """Nothing new starts there: for `lasting` seconds, until that instant, or until a person lifts it."""
        _check_kind(kind, get_args(PauseKind), "a pause")
        name = check_name(name, kind)
        whose, who, why = self._whose("pause", kind, tenant), self._who(by), check_wording(reason, "reason")
        end = self._end(lasting, until)
        return self._store.pause(Pause(kind, name, whose, who, None, end, why, is_appointed=until is not None))

    def unpause(self, kind: PauseKind, name: str, *, tenant: str | None = None) -> bool:
        """False when nothing was paused. UnknownTarget, UnknownTenant for what nobody ever used."""
        _check_kind(kind, get_args(PauseKind), "a pause")
        name, whose = check_name(name, kind), self._whose("pause", kind, tenant)
        if self._store.unpause(kind, name, whose, by=self._by):
            return True
        if kind == "target" and self._store.target(whose, name) is None:
            raise UnknownTarget(name)
        if kind == "tenant":
            self.tenant(name)
        return False

    def pauses(self, *, tenant: str | None = None) -> list[Pause]:
        """Those in force that shut something of this tenant; EVERY: all there are."""
        return self._store.pauses(self._listed(tenant))

    def _end(self, lasting: float | None, until: datetime | None) -> datetime | None:
        if lasting is not None and until is not None:
            raise InvalidInput("a pause takes lasting=… or until=…, not both")
        if lasting is not None:
            _check_seconds(lasting, "lasting")
            return self._store.now() + timedelta(seconds=lasting)
        if until is None:
            return None
        end = check_instant(until, "until")
        now = self._store.now() - timedelta(seconds=self._store.clock_stand().ahead)
        if end <= now:
            raise InvalidInput(
                f"a pause until {end.isoformat()} would have ended already: the store's clock says {now.isoformat()}"
            )
        return end

    # --- limits -------------------------------------------------------------------------------------------------
    def limit(
        self,
        kind: LimitKind,
        name: str,
        *,
        tenant: str | None = None,
        concurrency: int | None = None,
        rate: str | None = None,
        max_queued: int | None = None,
        by: str | None = None,
    ) -> Limit:
        """Replaces what was set for it. Not given: not limited."""
        limit = self._asked(kind, name, tenant, by, concurrency, rate, max_queued)
        if not limit.counts_something:
            raise InvalidInput("a limit needs concurrency, rate or max_queued; to lift one, remove it")
        return self._store.set_limit(limit)

    def change_limit(
        self,
        kind: LimitKind,
        name: str,
        *,
        tenant: str | None = None,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        max_queued: int | Unsaid | None = UNSAID,
        by: str | None = None,
    ) -> Limit | None:
        """What is not said stays as it stands; None lifts that part. With nothing left the limit is lifted.
        Answers what holds now: None, or what the code says."""
        parts: dict[LimitPart, Any] = {"concurrency": concurrency, "rate": rate, "max_queued": max_queued}
        said = {part: value for part, value in parts.items() if not isinstance(value, Unsaid)}
        if not said:
            raise InvalidInput("a change of a limit says concurrency, rate or max_queued; None lifts one of them")
        limit = self._asked(kind, name, tenant, by, *(said.get(part) for part in parts))
        return self._store.change_limit(limit, said.keys())

    def _asked(
        self, kind: LimitKind, name: str, tenant: str | None, by: str | None, concurrency: Any, rate: Any, most: Any
    ) -> Limit:
        """The limit as it is asked for, checked."""
        (name, whose), who = self._limited(kind, name, tenant), self._who(by)
        if who == BY_CODE:
            raise InvalidInput(f"by={quoted(who)} is how limits of the code are signed; say who sets this one")
        _check_family(kind, name)
        _check_numbers({"concurrency": concurrency, "max_queued": most})
        if most is not None and kind not in ("queue", "tenant"):
            raise InvalidInput(f"max_queued is a limit of a queue or a tenant; a {kind} has none")
        starts, per = parse_rate(rate) if rate is not None else (None, None)
        return Limit(kind, name, whose, who, concurrency, starts, per, most)

    def unlimit(self, kind: LimitKind, name: str, *, tenant: str | None = None) -> bool:
        """False when nobody had set one. A limit of the code holds again at once."""
        return self._store.remove_limit(kind, *self._limited(kind, name, tenant), by=self._by)

    def limits(self, *, tenant: str | None = None) -> list[Limit]:
        """Those that count something of this tenant; EVERY: all there are."""
        return self._store.limits(self._listed(tenant))

    def _limited(self, kind: LimitKind, name: str, tenant: str | None) -> tuple[str, str]:
        """The name and its owner, checked."""
        _check_kind(kind, get_args(LimitKind), "a limit")
        noun = "workflow" if kind == "workflow_key" else kind
        named = plain_text(name) if _is_each(kind, name) else check_name(name, noun)
        return named, self._whose("limit", kind, tenant)

    # --- tenants ------------------------------------------------------------------------------------------------
    def weigh(self, tenant: str, weight: int, *, by: str | None = None) -> TenantRecord:
        """How many turns it gets for each turn of a tenant of weight 1."""
        tenant, who = check_name(tenant, "tenant"), self._who(by)
        if not _is_whole(weight) or not 1 <= weight <= _MOST_WEIGHT:
            raise InvalidInput(f"weight={quoted(weight)} is not a whole number between 1 and {_MOST_WEIGHT}")
        return self._store.set_tenant(tenant, weight, who)

    def tenants(self, *, after: str = "", limit: int = 100) -> list[TenantRecord]:
        """By name, above `after`: all that have a weight of their own or ever had a job."""
        if not _is_whole(limit) or not 1 <= limit <= _MOST_LISTED:
            raise InvalidInput(f"limit={quoted(limit)} is not a whole number between 1 and {_MOST_LISTED}")
        return self._store.tenants(check_wording(after, "after") or "", limit)

    def tenant(self, name: str) -> TenantRecord:
        name = check_wording(name, "tenant") or ""
        found = self._store.tenant(name)
        if found is None and name != DEFAULT_TENANT:
            raise UnknownTenant(name)
        return found or TenantRecord(DEFAULT_TENANT)

    # --- steps --------------------------------------------------------------------------------------------------
    def _who(self, by: str | None) -> str:
        return check_wording(by, "by") or self._by

    def _whose(self, what: str, kind: str, tenant: str | None) -> str:
        if tenant == EVERY:
            if kind not in _OF_EVERY_TENANT[what]:
                raise InvalidInput(f"a {what} of kind {kind} is about one tenant; name it instead of '*'")
            return EVERY
        return check_name(self._tenant if tenant is None else tenant, "tenant")

    def _listed(self, tenant: str | None) -> str | None:
        return None if tenant == EVERY else self._tenant if tenant is None else check_name(tenant, "tenant")


def _check_kind(kind: str, known: tuple[str, ...], what: str) -> None:
    if not isinstance(kind, str) or kind not in known:
        raise InvalidInput(f"{what} cannot be of kind {quoted(kind)}; it can: {', '.join(known)}")


def _is_each(kind: str, name: str) -> bool:
    """Whether it means each tenant, or each key (of a family), by itself."""
    if not isinstance(name, str):
        return False
    if kind == "key" and name.endswith(":*") and len(name) > 2 and ":" not in name[:-2]:
        check_name(name[:-2], "key family")
        return True
    return kind in ("tenant", "key") and name == EVERY


def _check_family(kind: str, name: str) -> None:
    """Not in `_limited`: one that was set before this was refused can still be lifted."""
    if kind == "key" and name.endswith(":*") and ":" in name[:-2]:
        family = name.split(":", 1)[0]
        raise InvalidInput(
            f"no key belongs to {quoted(name)}: the family of a key is what stands before its first colon; "
            f"limit {quoted(family + ':*')}, or one whole key"
        )


def _check_numbers(numbers: Mapping[str, Any]) -> None:
    for name, value in numbers.items():
        if value is not None and (not _is_whole(value) or not 1 <= value <= _MOST):
            raise InvalidInput(f"{name}={quoted(value)} is not a whole number between 1 and {_MOST}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_seconds(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _SHORTEST <= value <= LONGEST:
        raise InvalidInput(
            f"{name}={quoted(value)} is not a number of seconds between {_SHORTEST:g} and {LONGEST:.0f}"
        )
