"""Jobs that ended -> jobs of what follows them, once for each (job, run, follower).

Where no code follows ends this is one small look per sweep. Where some does, the feed is looked at every second by
every worker and server; one of them at a time goes through it. What cannot be made (the follower is on the blacklist,
a queue is full, no key may sign it) is written down with its reason, and keeps nothing else from being made.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.ends import MOST_RESULT, STATES, EndedJob, kinds_of
from unstuck.model.errors import StoreError
from unstuck.model.job import NewJob
from unstuck.model.lifecycle import EventKind
from unstuck.model.times import Times
from unstuck.store.port import EndFacts, EndsPage, FeedEvent, FollowedEnd, Follower, Store
from unstuck.telemetry import emit

#: Seconds between two looks, where something follows ends.
EVERY = 1.0
#: Seconds after which another goes on with the page of a reader that has died.
HOLD = 10.0

#: The job of a follower about an end; what a submit would refuse, it raises.
MakeJob = Callable[[str, EndedJob], NewJob]


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
        followers = self._store.followers()
        if not followers:
            self._store.stop_reading_ends()
            return 0
        moved = 0
        kinds = kinds_of(each.follows for each in followers)
        while True:
            page = self._store.read_ends(self._holder, HOLD, kinds, self.most, self._times.feed_retention)
            if page is None:
                break
            moved += self._follow(page, followers)
            if not self._store.ends_read(self._holder, page) or page.is_last or budget.is_over():
                break
        self._rest = min(EVERY, self._times.sweep)
        return moved

    def _follow(self, page: EndsPage, followers: Sequence[Follower]) -> int:
        names = {each.workflow for each in followers}
        met = [
            (event, each.workflow)
            for event in page.events
            if event.workflow not in names  # what follows ends is followed by nothing, whoever asked for it
            for each in followers
            if each.meets(event)
        ]
        if not met:
            return 0
        runs = {(event.job or "", event.run or 0) for event, _ in met}
        facts = {(each.job, each.run): each for each in self._store.end_facts(sorted(runs), MOST_RESULT)}
        hidden = self._store.redactions()
        followed: list[FollowedEnd] = []
        for event, follower in met:
            known = facts.get((event.job or "", event.run or 0))
            if known is not None and not known.is_made:
                followed.append(self._followed(follower, event, known, is_hidden=bool(hidden[event.workflow or ""])))
        return self._write(followed)

    def _followed(self, follower: str, event: FeedEvent, facts: EndFacts, *, is_hidden: bool) -> FollowedEnd:
        """Whatever is wrong with this one, a row that was damaged among it: the others' place is behind it."""
        try:
            ended = _ended(event, facts, is_hidden=is_hidden)
            return FollowedEnd(facts.job, facts.run, follower, self._make(follower, ended))
        except StoreError:
            raise
        except Exception as error:
            return self._refused(FollowedEnd(facts.job, facts.run, follower), error)

    def _write(self, followed: Sequence[FollowedEnd]) -> int:
        """All at once; what is refused is found by halves, and keeps nothing else back."""
        if not followed:
            return 0
        try:
            return self._store.follow_ends(followed)
        except StoreError:
            raise
        except Exception as error:
            if len(followed) > 1:
                middle = len(followed) // 2
                return self._write(followed[:middle]) + self._write(followed[middle:])
            [one] = followed
            if one.made is None:
                raise
            return self._store.follow_ends([self._refused(one, error)])

    def _refused(self, one: FollowedEnd, error: Exception) -> FollowedEnd:
        reason = f"{type(error).__name__}: {error}"
        emit("end_not_followed", level=logging.WARNING, job=one.job, follower=one.follower, problem=reason)
        message = f"{one.follower} was to run after job {one.job} (run {one.run}), and made no job: {reason}"
        self._store.notify("An end was not followed", message, f"/jobs/{one.job}")
        return FollowedEnd(one.job, one.run, one.follower, reason=reason)


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
