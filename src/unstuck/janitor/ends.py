"""Jobs that ended -> jobs of what follows them, once for each (job, run, follower).

Where no code follows ends this is one small look per sweep. Where some does, the feed is looked at every second by
every worker and server; one of them at a time goes through it. What cannot be made (the follower is on the blacklist,
no key may sign it) is written down with its reason, and keeps nothing else from being made. What a full queue
refuses, or somebody who holds a row keeps from being stored, is put off, and tried again for a day. A page that is
too much for one call is read in smaller ones; one end that fails alone is passed by, with a notification.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import NamedTuple

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.ends import MOST_RESULT, STATES, EndedJob, kinds_of
from unstuck.model.errors import StoreBusy, StoreError, StoreLocked, TooManyQueued
from unstuck.model.job import NewJob
from unstuck.model.lifecycle import EventKind
from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.store.port import EndFacts, EndsPage, FeedEvent, FollowedEnd, Follower, LateEnd, Store
from unstuck.telemetry import emit

#: Seconds between two looks, where something follows ends.
EVERY = 1.0
#: Seconds after which another goes on with the page of a reader that has died.
HOLD = 10.0
#: Seconds until what a full queue refuses is tried again for the first time, and how long it is.
FIRST_AGAIN = 15.0
KEPT_TRYING = 86400.0
#: So many of those are taken at once.
_LATE = 100

#: The job of a follower about an end; what a submit would refuse, it raises.
MakeJob = Callable[[str, EndedJob], NewJob]


class _Read(NamedTuple):
    """What became of a page, and whether more of the feed is there."""

    moved: int
    is_last: bool


@dataclass(slots=True)
class _Room:
    """Of one batch: the queues of tenants that turned out to be full, and what was said. `puts_off`: what finds no
    room is tried again later; else it is refused."""

    puts_off: bool = True
    full: dict[tuple[str, str], str] = field(default_factory=dict)
    is_part: bool = False


class EndsDuty(SweepDuty):
    name = "ends"
    #: Places in the feed, of which few are ends.
    most = 1000

    def __init__(self, store: Store, times: Times, make: MakeJob, holder: str) -> None:
        super().__init__(store, times)
        self._make = make
        self._holder = holder
        self._rest = times.sweep

    @property
    def every(self) -> float:
        return self._rest

    def tick(self, now: float, budget: Budget) -> int:
        self._rest = self._times.sweep  # should this turn fail
        moved = self._catch_up(budget)
        followers = self._store.followers()
        if not followers:
            self._store.stop_reading_ends()
            return moved
        kinds = kinds_of(each.follows for each in followers)
        while (page := self._read(kinds, followers, budget)) is not None:
            moved += page.moved
            if page.is_last or budget.is_over():
                break
        self._rest = min(EVERY, self._times.sweep)
        return moved

    # --- the feed -------------------------------------------------------------------------------------------------
    def _read(self, kinds: Sequence[str], followers: Sequence[Follower], budget: Budget) -> _Read | None:
        """The next page, and the place in the feed behind it; None: there is none, or another reads."""
        page: EndsPage | None = None
        asked = 0

        def follow(most: int) -> int:
            nonlocal page, asked
            page, asked = None, most
            page = self._store.read_ends(self._holder, HOLD, kinds, most, self._times.feed_retention)
            return 0 if page is None else self._follow(page, followers)

        try:
            moved = budget.call(self._batch, follow)
        except Exception as problem:
            if _is_away(problem) or asked > 1 or page is None:
                raise
            moved = self._pass_by(page, followers, problem)
        if page is None or not self._store.ends_read(self._holder, page):
            return None
        return _Read(moved, page.is_last)

    def _follow(self, page: EndsPage, followers: Sequence[Follower]) -> int:
        met = _met(page, followers)
        if not met:
            return 0
        runs = {(event.job or "", event.run or 0) for event, _ in met}
        facts = {(each.job, each.run): each for each in self._store.end_facts(sorted(runs), MOST_RESULT)}
        hidden = self._store.redactions()
        followed: list[FollowedEnd] = []
        for event, follower in met:
            known = facts.get((event.job or "", event.run or 0))
            if known is not None and not known.is_made:
                one = FollowedEnd(known.job, known.run, follower)
                is_hidden = bool(hidden[event.workflow or ""])
                followed.append(self._made(one, partial(_ended, event, known, is_hidden=is_hidden)))
        return self._write(followed, _Room())

    def _pass_by(self, page: EndsPage, followers: Sequence[Follower], problem: Exception) -> int:
        """The one place of a page that cannot be followed."""
        met = [FollowedEnd(event.job or "", event.run or 0, follower) for event, follower in _met(page, followers)]
        return self._write([self._refused(one, problem) for one in met], _Room())

    def _catch_up(self, budget: Budget) -> int:
        """What was put off: by now there may be room."""
        moved = 0
        while late := self._store.late_ends(_LATE):
            for puts_off in (True, False):
                some = [each for each in late if (each.late < KEPT_TRYING) is puts_off]
                moved += self._write([self._late(each) for each in some], _Room(puts_off))
            if budget.is_over():
                break
        return moved

    # --- what is made ---------------------------------------------------------------------------------------------
    def _late(self, late: LateEnd) -> FollowedEnd:
        return self._made(FollowedEnd(late.job, late.run, late.follower, is_late=True), lambda: late.known)

    def _made(self, one: FollowedEnd, ended: Callable[[], EndedJob]) -> FollowedEnd:
        """Whatever is wrong with this one, a row that was damaged among it: the others' place is behind it."""
        try:
            known = ended()
            return replace(one, ended=known, made=self._make(one.follower, known))
        except StoreError:
            raise
        except Exception as error:
            return self._refused(one, error)

    def _write(self, followed: Sequence[FollowedEnd], room: _Room) -> int:
        """All at once; what is refused is found by halves, and keeps nothing else back. What is meant for a queue
        that turned out to be full is put off with the first."""
        late = [replace(each, reason=said) for each in followed if (said := _full(each, room)) is not None]
        now = [each for each in followed if _full(each, room) is None]
        if late:
            self._put_off(late)
        if not now:
            return 0
        try:
            return self._store.follow_ends(now, is_part=room.is_part)
        except Exception as error:
            if _is_away(error):
                raise
            room.is_part = True
            if len(now) > 1:
                middle = len(now) // 2
                return self._write(now[:middle], room) + self._write(now[middle:], room)
            return self._alone(now[0], error, room)

    def _alone(self, one: FollowedEnd, error: Exception, room: _Room) -> int:
        """It cannot be stored, or not now."""
        if one.made is None:
            self._tell(one, f"{one.reason}; nor can that be written: {_said(error)}")
            return 0
        if not room.puts_off or not isinstance(error, TooManyQueued | StoreBusy):
            return self._write([self._refused(one, error)], room)
        if isinstance(error, TooManyQueued):
            room.full[one.made.tenant, one.made.queue] = _said(error)
        self._put_off([replace(one, reason=_said(error))])
        return 0

    def _put_off(self, followed: Sequence[FollowedEnd]) -> None:
        """Those that were before are so already, by whoever took them."""
        new = [replace(each, made=None, again=FIRST_AGAIN) for each in followed if not each.is_late]
        for each in new:
            emit("end_put_off", job=each.job, follower=each.follower, problem=each.reason)
        self._write(new, _Room())

    def _refused(self, one: FollowedEnd, error: Exception) -> FollowedEnd:
        self._tell(one, _said(error))
        return FollowedEnd(one.job, one.run, one.follower, reason=_said(error), is_late=one.is_late)

    def _tell(self, one: FollowedEnd, reason: str) -> None:
        """That it cannot be told keeps nothing back either."""
        emit("end_not_followed", level=logging.WARNING, job=one.job, follower=one.follower, problem=reason)
        message = f"{one.follower} was to run after job {one.job} (run {one.run}), and made no job: {reason}"
        try:
            self._store.notify("An end was not followed", message, f"/jobs/{one.job}")
        except Exception as problem:
            if _is_away(problem):
                raise


def _is_away(error: Exception) -> bool:
    """Whether no end is to blame for it."""
    return isinstance(error, StoreError) and (not isinstance(error, StoreBusy) or isinstance(error, StoreLocked))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _full(one: FollowedEnd, room: _Room) -> str | None:
    """Why there is no room for it, as far as is known."""
    return None if one.made is None else room.full.get((one.made.tenant, one.made.queue))


def _met(page: EndsPage, followers: Sequence[Follower]) -> list[tuple[FeedEvent, str]]:
    """Each end with each that asked for it. What follows ends is followed by nothing, whoever asked for it."""
    names = {each.workflow for each in followers}
    return [
        (event, each.workflow)
        for event in page.events
        if event.workflow not in names
        for each in followers
        if each.meets(event)
    ]


def _ended(event: FeedEvent, facts: EndFacts, *, is_hidden: bool) -> EndedJob:
    left_out = None
    if facts.is_large:
        left_out = "too large"
    elif is_hidden and facts.result is not None:
        left_out = "redacted"
    has_result = facts.result is not None and left_out is None
    return EndedJob(
        id=facts.job,
        workflow=event.workflow or "",
        tenant=event.tenant or "",
        queue=event.queue or "",
        state=STATES[EventKind(event.kind)],
        run=facts.run,
        ended_at=event.at,
        error_type=event.data.get("error_type"),
        error=event.data.get("error_message"),
        result=json.loads(facts.result) if has_result and facts.result is not None else None,
        result_left_out=left_out,
    )
