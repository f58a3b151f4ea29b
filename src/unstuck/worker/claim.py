"""Free slots -> claimed jobs: what to ask for, in which order, and how often when there is nothing.

The claimer never asks for more than there is room. It looks over the fronts (the first due job of every route that no
gate shuts) when it has nothing better to do and at least twice a second; one question tells before whether there is
anything to look at, in the timers, in the inbox or on the routes, and when the next timer is due. It claims from the
last view of the fronts in between, until a claim brings less than it asked for. Within one view a claim goes on where
the last one from that route ended (its floor): rows that others took a moment ago need not be walked over again, not
even while an old transaction keeps the database from clearing them away. Everything it remembers
(`known_routes`) is a hint: the claim itself decides in the database.

An idle claimer sleeps until somebody hints at work, a timer is due or the poll's time is over. Most hints name their
route: it is claimed from at once, and once it gives less than it was asked for nothing of what was hinted is left, so
that the claimer sleeps on. A hint at routes of others wakes nobody for long. One without a name mostly means the
route that gave jobs last: it is claimed from, and all is looked over before the next sleep. What another process sets
to an earlier time than the one it sleeps for, or forgets to hint at, is seen by the poll.

A look over very many routes takes several turns. Meanwhile those that gave jobs lately, and those that are new, are
looked at in each turn: thousands of routes that nobody here serves must not keep their jobs waiting.

What no limit counts is claimed first and by itself. A limited route whose limit another session holds gives nothing;
it is asked again after a moment, which grows while the limit stays held. All else that is done here beside the claim
(registering, declaring schedules, the question what is due, timers, the inbox, weights) may fail without stopping it:
see `troubles`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from unstuck.chance import Chance
from unstuck.clock import Clock
from unstuck.model.errors import OutcomeUnknown, StoreBusy, StoreUnavailable
from unstuck.model.job import ClaimedJob
from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.store.port import Claimed, ClaimPort, Due, Hint, Share
from unstuck.telemetry import emit
from unstuck.worker.known_routes import KnownRoutes
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.served import Served
from unstuck.worker.shares import FreeRoom, Turns, divide
from unstuck.worker.side_tasks import SideTasks
from unstuck.worker.verifier import Verifier

BATCH = 400
_LOOK_EVERY = 0.5
#: While there are more routes than one look shows: jobs on the others must not wait for long.
_TURN_PAGE_EVERY = 0.1
#: But no oftener than this: so many times what the last look took, which grows with what it has to count.
_LOOKS_APART = 8.0
#: Timers that are due and do not move, because somebody holds them, are tried again after so many seconds, or after a
#: poll's time if that is shorter; those that come due one after the other go together.
_RELEASE_EVERY = 0.5
_RELEASE_SOON = 0.05
_INGESTS = 10
_INGEST_BATCH = 1000
_INGEST_BACK = 1000
_WEIGH_EVERY = 5.0
_VAIN_CLAIMS = 8
#: Seconds for which a limit that another session holds is left alone: at first, and at the longest.
_HELD_FOR = 0.002
_HELD_FOR_LONG = 0.25
#: So often in vain, about two seconds: no claim holds a limit for that long.
_HELD_TOO_OFTEN = 14
#: How often newcomers are listened for, and how long, while all known work waits for room of another kind.
_STAND_BY = 0.05
_LISTEN_FOR = 0.02


class Claimer:
    def __init__(
        self,
        store: ClaimPort,
        worker: int,
        ledger: Ledger,
        pace: Pace,
        times: Times,
        clock: Clock,
        chance: Chance,
        *,
        name: str,
        before_first: Callable[[], None],
        landed: Callable[[], None],
        verifier: Verifier | None = None,
    ) -> None:
        self._store = store
        self._worker = worker
        self._name = name
        self._ledger = ledger
        self._times = times
        self._clock = clock
        self._chance = chance
        self._before_first = before_first
        self._landed = landed
        self._verifier = verifier
        self._known = KnownRoutes(store, pace, clock)
        self._served: Served | None = None
        self._registered: Served | None = None
        self._is_registered = False
        self._is_declared = False
        self._is_first = True
        self._is_open = True
        self._looked_at = float("-inf")
        #: What share of a poll's time passes until the next look.
        self._jitter = 1.0
        self._looked_for = 0.0
        self._release_at = float("-inf")
        #: When the next timer is due, as far as the last look knows.
        self._timer_at = float("inf")
        #: What the last wait heard, and whether all that was hinted since the last look is taken.
        self._hint: Hint | None = None
        self._is_taken = False
        #: Whether a claim came home without what was there, because another one held it or it was taken apart.
        self._has_left = False
        self._ingested = 0
        self._turns = Turns()
        self._weighed_at = float("-inf")
        self._in_vain = 0
        #: Whether limits gave less than the last claim asked of them.
        self._is_short = False
        #: Whether the last claim could have brought more, if there had been more.
        self._was_thorough = False
        self._most = BATCH
        self._side_tasks = SideTasks(clock)
        #: Routes whose limits another session held, when to ask for them again, and how often that was in vain.
        self._held: frozenset[int] = frozenset()
        self._held_until = float("-inf")
        self._collisions = 0

    # --- from other threads -------------------------------------------------------------------------------------
    def serve(self, served: Served) -> None:
        self._served = served
        self._ledger.has_room.set()

    def shun(self, workflows: frozenset[str]) -> None:
        """Leave these to others for now: what is claimed and cannot run here would only go back and come again."""
        if workflows != self._known.shunned:
            self._known.shunned = workflows
            self._ledger.has_room.set()

    def close(self) -> None:
        """No claim begins from now on; what one under way brings is given back by the supervisor."""
        self._is_open = False
        self._ledger.has_room.set()

    @property
    def troubles(self) -> dict[str, Trouble]:
        """What does not work beside the claim: its name and its last error, until it works again."""
        return self._side_tasks.troubles

    # --- the loop -----------------------------------------------------------------------------------------------
    def tick(self) -> float:
        """One round; the answer is how long to rest."""
        if self._verifier is not None:
            self._verifier.look()
        try:
            return self._round()
        except StoreUnavailable:
            self._side_tasks.forgive()
            raise

    def _round(self) -> float:
        served = self._served
        if not self._is_open or served is None:
            self._clock.wait(self._ledger.has_room, self._times.poll)
            self._ledger.has_room.clear()
            return 0.0
        self._prepare(served)
        room = self._ledger.room()
        if room.total <= 0:
            if not self._clock.wait(self._ledger.has_room, self._times.poll):
                self._store.stay_awake()
            return 0.0
        now = self._clock.boot()
        if self._follow_hint(room, now, served):
            return 0.0
        if self._may_sleep_on(now):
            self._idle()
            return 0.0
        self._look(now, served)
        if shares := self._shares(room):
            gave = self._claim(shares, now)
            self._known.look_again([share for share in shares if share.route in gave], served)
            if self._known.bids:
                self._store.stay_awake()
        elif self._known.bids:
            self._stand_by()
        else:
            self._idle()
        return 0.0

    def _prepare(self, served: Served) -> None:
        if self._registered is not served:
            self._known.bids = {}
            self._registered = served
            self._is_registered = self._is_declared = False
        if not self._is_registered:
            # What could not be written stands as another worker wrote it, and we serve by that.
            self._is_registered = self._side_tasks.do("registration", lambda: self._register(served)) is not None
        if self._is_registered and not self._is_declared:
            # Behind the worker's own row: which version decides depends on who serves.
            self._is_declared = self._side_tasks.do("schedules", lambda: self._declare(served)) is not None
        if self._is_first:
            # A contended first sweep must not keep us from working; a store that is away is waited for.
            self._side_tasks.do("first sweep", self._before_first, sparing=StoreBusy)
            self._is_first = False

    def _register(self, served: Served) -> bool:
        workflows, queues = tuple(served.workflows.values()), sorted(served.queues)
        declared = served.declared
        app = None if declared is None else declared.app
        held = self._store.register_workflows(workflows, worker=self._worker, queues=queues, app=app)
        if held:
            raise StoreBusy(
                f"somebody holds the rows of these workflows or of their limits: {', '.join(sorted(held))}"
            )
        return True

    def _declare(self, served: Served) -> bool:
        """What is refused is told there, and is no trouble of ours."""
        if (said := served.declared) is not None:
            self._store.declare_schedules(said.app, said.origin, said.code_version, said.schedules)
        return True

    # --- the look -----------------------------------------------------------------------------------------------
    def _look(self, now: float, served: Served) -> None:
        turn = max(_TURN_PAGE_EVERY, _LOOKS_APART * self._looked_for)
        every = min(turn, _LOOK_EVERY) if self._known.looked_to else _LOOK_EVERY
        if self._known.bids and now - self._looked_at < every:
            return
        due = self._side_tasks.do("due", lambda: self._store.due(self._ingest_after))
        moved = self._tend(due, now)
        self._known.forget_barren(now)
        began = self._clock.boot()
        is_worth_it = due is None or due.has_ready or moved
        self._known.bids = self._known.next_bids(served) if is_worth_it else {}
        self._forget_held()
        self._has_left = self._has_left and bool(self._known.bids)
        if self._known.bids or self._fails("weights"):
            self._side_tasks.do("weights", lambda: self._weigh(now))
        self._looked_for = self._clock.boot() - began
        self._looked_at = now
        self._jitter = 0.9 + 0.1 * self._chance.fraction()

    def _tend(self, due: Due | None, now: float) -> bool:
        """What time and others have left to do before a claim; whether jobs may have become ready by it. Where the
        question itself fails, all of it is tried."""
        moved = False
        if (due is None or due.has_timers or self._fails("timers")) and now >= self._release_at:
            # The janitor does it as well; here it lets delayed jobs and retries start on time.
            moved = bool(self._side_tasks.do("timers", self._store.release_due))
            self._release_at = self._clock.boot() + (
                _RELEASE_SOON if moved else min(_RELEASE_EVERY, self._times.poll)
            )
        if due is None or due.has_news or self._fails("inbox"):
            moved = self._side_tasks.do("inbox", self._ingest) is not None or moved
        ahead = None if due is None else due.timer_in
        self._timer_at = float("inf") if ahead is None else max(now + ahead, self._release_at)
        return moved

    def _fails(self, side_task: str) -> bool:
        """Then it is tried also where nothing asks for it: else its trouble would be told for ever."""
        return side_task in self._side_tasks.troubles

    @property
    def _ingest_after(self) -> int:
        """Numbers commit late, so we go back a little each time; what is later still, the janitor finds: it looks
        from the start."""
        return max(0, self._ingested - _INGEST_BACK)

    def _ingest(self) -> bool:
        """Targets get their heads before we look for them."""
        for _ in range(_INGESTS):
            found = self._store.ingest(self._ingest_after, _INGEST_BATCH)
            self._ingested = max(self._ingested, found.last)
            if found.entries < _INGEST_BATCH:
                break
        return True

    def _weigh(self, now: float) -> None:
        if now - self._weighed_at >= _WEIGH_EVERY:
            self._turns.weights = self._store.weights()
            self._weighed_at = now

    # --- a hint -------------------------------------------------------------------------------------------------
    def _follow_hint(self, room: FreeRoom, now: float, served: Served) -> bool:
        """Nothing was there a moment ago, so what came is where the hint says, or else most likely where jobs came
        from last; whether it is, or nowhere here. Who takes jobs one by one looks first which is the eldest."""
        hint, self._hint = self._hint, None
        if hint is None or room.in_order:
            return False
        routes = self._known.familiar if hint.routes is None else self._known.ours(hint.routes, served)
        self._is_taken = hint.routes is not None and not routes
        self._known.bids = self._known.likely_bids(routes, served)
        shares = self._shares(room)
        gave = self._claim(shares, now) if shares else set()
        if not gave:
            # Another worker has it, or it is elsewhere: that says nothing about these routes.
            self._known.barren.difference_update(share.route for share in shares)
            self._known.bids = {}
        elif hint.routes is not None:
            self._is_taken = gave.issuperset(routes) and not self._known.bids and self._was_thorough
        return bool(gave) or self._is_taken

    def _may_sleep_on(self, now: float) -> bool:
        """Without a look: nothing of what was hinted is left, and what nobody hints at was looked for lately. What is
        hinted from now on ends the sleep at once. What a claim had to leave nobody hints at again."""
        is_taken, self._is_taken = self._is_taken, False
        return is_taken and not self._has_left and now < self._sleep_until

    # --- the claim ----------------------------------------------------------------------------------------------
    def _shares(self, room: FreeRoom) -> list[Share]:
        slots = min(room.slots, self._most)
        room = replace(room, slots=slots, ahead=min(room.ahead, self._most - slots))
        held = self._held if self._clock.boot() < self._held_until else frozenset()
        bids = [bid for bid in self._known.bids.values() if bid.route not in held]
        # The slots that a limit left empty are for those that no limit counts, before thousands that wait for it are
        # asked one after the other.
        free = [bid for bid in bids if not bid.is_limited] if self._is_short and not room.in_order else []
        return divide(free or bids, room, self._turns)

    def _claim(self, shares: Sequence[Share], now: float) -> set[int]:
        """In two parts: what no limit counts is here before anything can go wrong with the others.

        Returns the routes that gave jobs.
        """
        free = [share for share in shares if not share.is_limited]
        limited = [share for share in shares if share.is_limited]
        jobs = self._take(free) if free else Claimed()
        self._is_short = False
        self._was_thorough = not (limited or jobs.in_parts or jobs.left_out)
        self._has_left = self._has_left or jobs.in_parts or not jobs
        if limited:
            if jobs:
                self._landed()
            counted = self._side_tasks.do("limited claim", lambda: self._take(limited))
            if counted is None:
                counted = Claimed(held=frozenset(share.route for share in limited))
            self._mind_held(counted)
            self._is_short = len(counted) < sum(share.limit for share in limited)
            jobs = Claimed([*jobs, *counted], counted.held, [*jobs.left_out, *counted.left_out])
        # A quarter more each time: what is asked for beyond what can be read was claimed in vain.
        self._most = max(1, len(jobs)) if jobs.left_out else min(BATCH, self._most + self._most // 4 + 1)
        got = Counter([job.route for job in jobs])
        self._remember(shares, jobs, got, now)
        if jobs:
            # Last: whoever is woken by it wants the interpreter.
            self._landed()
        return set(got)

    def _take(self, shares: Sequence[Share]) -> Claimed:
        claim = self._chance.nonce()
        self._ledger.announce(claim)
        if not self._is_open:
            # Closed before the main thread could see our announcement: it may count on nothing being under way.
            self._ledger.give_up(claim)
            return Claimed()
        jobs = self._ask(claim, shares)
        self._ledger.admit(claim, self._verified(claim, jobs), self._clock.boot())
        if jobs:
            # A line per claim: at full speed one per job would cost more than running it.
            first = jobs[0]
            facts = {"worker": self._name, "jobs": len(jobs), "job": first.id, "workflow": first.workflow}
            emit("acquired", level=logging.DEBUG, **facts)
        return jobs

    def _verified(self, claim: str, jobs: Claimed) -> Sequence[ClaimedJob]:
        """What may run of it. If nobody can tell, nothing may: it goes back with the next beat."""
        if self._verifier is None:
            return jobs
        try:
            return self._verifier.admitted(claim, jobs)
        except Exception:
            self._ledger.give_up(claim)
            raise

    def _mind_held(self, jobs: Claimed) -> None:
        """Workers that claim from one limit at once take it from each other: a worker that missed it asks again
        soon, at another moment than the others do. A limit that is kept locked must not be asked all the time."""
        self._collisions = self._collisions + 1 if jobs.held and not jobs else 0
        self._held = jobs.held
        self._side_tasks.tell("limits", self._whose_limits() if self._collisions >= _HELD_TOO_OFTEN else None)
        rest = min(_HELD_FOR_LONG, self._times.poll, _HELD_FOR * 2 ** min(self._collisions, 10))
        self._held_until = self._clock.boot() + rest * (0.5 + self._chance.fraction())

    def _forget_held(self) -> None:
        """Once nothing waits there, others may have claimed it: then no claim of ours would find the limit free."""
        if self._held and not self._known.looked_to and self._known.bids.keys().isdisjoint(self._held):
            self._mind_held(Claimed())
            self._side_tasks.tell("limited claim", None)

    def _whose_limits(self) -> str:
        names = sorted({route.workflow for number in self._held if (route := self._known.routes.get(number))})
        return f"somebody keeps a limit locked that counts these workflows: {', '.join(names[:10])}"

    def _remember(self, shares: Sequence[Share], jobs: Claimed, got: Mapping[int, int], now: float) -> None:
        """Whose turn it was, where each route's next claim begins, and which routes gave nothing. `got`: how many
        jobs each route gave."""
        tenants = {
            share.route: self._known.bids[share.route].tenant for share in shares if share.route not in jobs.held
        }
        by_tenant: Counter[str] = Counter()
        for route in got.keys() & tenants.keys():
            by_tenant[tenants[route]] += got[route]
        self._turns.served(tenants.values(), by_tenant)
        self._known.remember(shares, jobs, tenants.keys(), now)
        if not jobs.held:
            self._rest_if_in_vain(bool(jobs), now)
        self._known.drop_spent(shares, jobs, got)

    def _rest_if_in_vain(self, brought: bool, now: float) -> None:
        """An old view promised what others took: look again. A fresh view that brings nothing is no reason to spin,
        unless there are other routes to ask."""
        if brought:
            self._in_vain = 0
        elif now - self._looked_at <= 0:
            self._in_vain += 1
            if self._in_vain >= _VAIN_CLAIMS or self._known.bids.keys() <= self._known.barren:
                self._in_vain = 0
                self._idle()

    def _ask(self, claim: str, shares: Sequence[Share]) -> Claimed:
        try:
            try:
                return self._store.claim(self._worker, claim, shares)
            except OutcomeUnknown:
                # The same id: it answers with what the first call opened, if it did.
                emit("claim_repeated", claim=claim)
                return self._store.claim(self._worker, claim, shares)
        except Exception:
            self._ledger.give_up(claim)
            self._most = max(1, self._most // 4)  # what a slow store cannot answer in time would never come
            raise

    def _stand_by(self) -> None:
        """There is work, but not for the kind of room we have, or its limit is held. Room of another kind ends it at
        once; newcomers must not be hidden by what we know."""
        held_for = min(self._held_until - self._clock.boot(), _STAND_BY) if self._held else 0.0
        if held_for > 0:
            is_news = self._store.wait_for_work(held_for)
        elif self._clock.wait(self._ledger.has_room, _STAND_BY):
            return
        else:
            is_news = self._store.wait_for_work(_LISTEN_FOR)
        if is_news:
            self._known.bids = {}

    def _idle(self) -> None:
        is_empty, self._known.bids = not self._known.bids, {}
        hint = self._store.wait_for_work(max(0.0, self._sleep_until - self._clock.boot()))
        self._hint = hint if is_empty else None

    @property
    def _sleep_until(self) -> float:
        """A poll after the last look, a little earlier lest workers march in step, or when the next timer is due."""
        return min(self._looked_at + self._times.poll * self._jitter, self._timer_at)
