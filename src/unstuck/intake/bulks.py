"""Bulks: a verb over all the jobs that a filter wants; checked at the door, carried out by janitors."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.chance import Chance, SystemChance
from unstuck.model.bulk import BulkOptions, BulkState, BulkVerb, Counted, check_options
from unstuck.model.call import check_argument
from unstuck.model.errors import InvalidInput, OutcomeUnknown, UnknownBulk, quoted
from unstuck.model.job import DEFAULT_TENANT
from unstuck.model.lifecycle import JobState, Shown
from unstuck.model.payload import check_instant, check_text, check_wording
from unstuck.store.port import BulkRecord, JobFilter, NewBulk, Store

_MOST_LISTED = 10_000
_LARGEST = (1 << 63) - 1
_TEXTS = ("workflow", "queue", "error_type", "target", "tag")
_INSTANTS = ("before", "since")


class BulkVerbs:
    """Bulks of one tenant's jobs; `by` goes into the history of each job and into the audit."""

    def __init__(
        self, store: Store, *, tenant: str = DEFAULT_TENANT, by: str = "app", chance: Chance | None = None
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._by = by
        self._chance = chance or SystemChance()

    def count(self, filter: JobFilter) -> Counted:
        """How many jobs a bulk would be about, before it is started. Counting is bounded: the number is exact, or
        there are at least so many."""
        return self._store.count_matching(self._tenant, check_filter(filter))

    def start(
        self,
        verb: BulkVerb | str,
        filter: JobFilter,
        *,
        reason: str | None = None,
        from_start: bool = False,
        force: bool = False,
        expected: int | None = None,
        everything: bool = False,
        by: str | None = None,
    ) -> BulkRecord:
        """It is durable when this returns; workers carry it out. `expected`: how many the caller has counted, and
        OtherCount if others match. A filter that wants every job is refused unless `everything` is said."""
        checked = check_filter(filter)
        if is_everything(checked) and not everything:
            raise InvalidInput("this filter matches every job: a filter that matches everything needs to say so")
        options = BulkOptions(check_wording(reason, "reason"), _flag(from_start, "from_start"), _flag(force, "force"))
        bulk = NewBulk(
            key=self._chance.nonce(),
            tenant=self._tenant,
            verb=_verb(verb),
            filter=checked,
            by=check_wording(by, "by") or self._by,
            options=options,
            expected=None if expected is None else _whole(expected, "expected", least=0),
        )
        check_options(bulk.verb, options, are_letters=checked.letter is not None)
        try:
            return self._store.start_bulk(bulk)
        except OutcomeUnknown:  # a repeat of the same key is the same bulk
            return self._store.start_bulk(bulk)

    def get(self, number: int) -> BulkRecord:
        found = self._store.bulk(self._tenant, _whole(number, "bulk"))
        if found is None:
            raise UnknownBulk(number)
        return found

    def list(
        self, *, state: BulkState | str | None = None, before: int | None = None, limit: int = 100
    ) -> list[BulkRecord]:
        """The newest first; `before` is the number of the last one of the page before."""
        return self._store.bulks(
            self._tenant,
            state=None if state is None else _state(state),
            before=None if before is None else _whole(before, "before"),
            limit=_whole(limit, "limit", most=_MOST_LISTED),
        )

    def cancel(self, number: int, *, by: str | None = None) -> BulkRecord:
        """It does nothing more; what it has done stays done. BulkEnded if it has ended otherwise."""
        who = check_wording(by, "by") or self._by
        try:
            return self._store.cancel_bulk(self._tenant, _whole(number, "bulk"), who)
        except OutcomeUnknown:  # one that is cancelled may be cancelled again
            return self._store.cancel_bulk(self._tenant, number, who)


def check_filter(filter: Any) -> JobFilter:
    """As it may be frozen: of the right types, and storable."""
    if not isinstance(filter, JobFilter):
        raise InvalidInput(f"filter={quoted(filter)} is not a JobFilter")
    for state in filter.states:
        if not isinstance(state, JobState | Shown):
            raise InvalidInput(f"states: {quoted(state)} is not a state")
    checked: dict[str, Any] = {name: _text(getattr(filter, name), name) for name in _TEXTS}
    checked |= {name: _instant(getattr(filter, name), name) for name in _INSTANTS}
    argument = None if filter.argument is None else check_argument(filter.argument)
    return JobFilter(
        states=tuple(filter.states), newest_first=False, argument=argument, letter=filter.letter, **checked
    )


def _text(value: Any, what: str) -> str | None:
    text = check_wording(value, what)
    if text is not None:
        check_text(text, what)
    return text


def _instant(value: Any, what: str) -> datetime | None:
    return None if value is None else check_instant(value, what)


def is_everything(filter: JobFilter) -> bool:
    said = ("argument", "letter", *_TEXTS, *_INSTANTS)
    return not filter.states and all(getattr(filter, name) is None for name in said)


def _verb(verb: Any) -> BulkVerb:
    try:
        return BulkVerb(verb)
    except ValueError:
        raise InvalidInput(f"there is no bulk of {quoted(verb)}; known: {', '.join(BulkVerb)}") from None


def _state(state: Any) -> BulkState:
    try:
        return BulkState(state)
    except ValueError:
        raise InvalidInput(f"a bulk is never {quoted(state)}; known: {', '.join(BulkState)}") from None


def _flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{what}={quoted(value)} is neither True nor False")
    return value


def _whole(value: Any, what: str, *, least: int = 1, most: int = _LARGEST) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{what}={quoted(value)} is not a whole number between {least} and {most}")
    return value
