"""Claim: ready -> running, one attempt per row, never more than each share, never past a gate that is shut.

Theory of operation. Shares of routes that no limit counts are claimed first, by one statement that waits for nobody;
it looks at pauses and at the blacklist itself and leaves alone every route that has a limit, so that one set a moment
ago is not overlooked. Shares of limited routes are counted, in a transaction of their own: lock the limits that apply
(before all other locks), count what runs in a second statement, because the first took its snapshot before it locked,
cut the shares to what is left, then claim. Nobody waits for a limit: a route whose limit another transaction
holds gets no room, and the answer says so. The next claim from these limits counts what this one opened.

Both answer before they commit, and a worker that has stopped reading would keep what it was about to get from
everybody. So an answer carries no more bytes than fit into a socket's buffers; if it would, it comes without its
texts, and those are read once the claim is committed, chunk by chunk, for as long as one call may take and up to so
much. What does not come by then was claimed in vain: it goes back to the queue (`Claimed.left_out`), and the claimer
asks for fewer.

A claim that fails although the store answers is taken apart: each route for itself, then the jobs of those that
failed, until it is known which of them cannot be claimed. Those are set aside, stay where they are, and claims leave
them out; each is tried again alone, by the next claim from its route that has a slot for it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from unstuck.clock import boot
from unstuck.model.errors import StoreBusy, StoreError
from unstuck.model.job import AttemptRef
from unstuck.store.database import Database, Row, StoreSlow, Transaction
from unstuck.store.guard.bisection import AWAY, PIECES, SLOW, bisect_batch
from unstuck.store.guard.isolation import IMPATIENCE, RETRIED, problem_of, set_aside
from unstuck.store.life.claim_step import (
    _BEGINNING,
    _END,
    CLAIM_BYTES,
    DUTY,
    ClaimAsk,
    end_stays_alone,
    open_counted,
    open_some,
    question,
)
from unstuck.store.order.name_ids import NameIds
from unstuck.store.port import Claimed, Share
from unstuck.store.rows import claimed_of
from unstuck.telemetry import emit

#: Read in one call after the commit, a single larger payload aside: a link with 1 MB/s manages it in time.
CHUNK_BYTES = 512 << 10
NOT_READ = "its payload could not be read in time"
#: How long a claim may take, where most take milliseconds, before one of its jobs must be what takes so long; twice
#: that where it is about a single job. So the others are with their worker within a second.
QUICK = 0.25
#: Seconds for which the limit stays raised if all claims are slow, and not one job.
_LENIENT_FOR = 60.0
#: Seconds to find the culprits, and how many are blamed at a time: if that many fail, likely all do.
_WITHIN = 1.0
#: How long routes of a slow failure are claimed job by job, and how many at most then.
_CAREFUL_FOR = 10.0
_AT_ONCE = 20
_MOST_BLAMED = 5
#: How often somebody looks whether one of those is due for another try, and how long they are tried.
_LOOK_ASIDE_EVERY = 1.0
_TRY_FOR = 0.1


class Claims:
    """Shared by threads without a lock: what it remembers only makes it quicker."""

    def __init__(self, database: Database, name_ids: NameIds) -> None:
        self._database = database
        self._name_ids = name_ids
        self._looked_aside_at = boot()
        self._pace = _Pace(database.store_call)

    def claim(self, worker: int, claim: str, shares: Sequence[Share], data: str) -> Claimed:
        opening = _Opening(self._database, ClaimAsk(worker, claim, data), self._pace)
        wanted = self._try_again(opening, _together(shares))
        # What no limit counts first: it waits for nobody.
        for is_limited in (False, True):
            some = [share for share in wanted if share.is_limited is is_limited]
            try:
                opening.take(some)
            except Exception as error:
                if not opening.rows:
                    raise
                # What is open already must reach its worker. If the rest was opened unbeknown to us, a beat finds it
                # and gives it back.
                emit("claim_in_part", level=logging.WARNING, claim=claim, error=str(error))
                opening.held |= {share.route for share in some if is_limited}
        whole, rest = _read_on(self._database, worker, claim, sorted(opening.rows, key=_place))
        policies = self._name_ids.policies(self._database, {row["policy"] for row in whole})
        routes = self._name_ids.routes(self._database, {row["route"] for row in whole})
        jobs = [claimed_of(row, claim, routes[row["route"]], policies[row["policy"]]) for row in whole]
        left_out = [AttemptRef(row["id"], row["token"], claim) for row in rest]
        return Claimed(jobs, opening.held, left_out, opening.in_parts)

    def _try_again(self, opening: _Opening, shares: list[Share]) -> list[Share]:
        """Some of what was set aside, each alone; what is left to claim then. Once one comes home the next are tried
        at once, else after a second."""
        began = boot()
        if began < self._looked_aside_at + _LOOK_ASIDE_EVERY:
            return shares
        self._looked_aside_at = began
        left = {share.route: share for share in shares}
        came_home = False
        due = self._database.read(lambda t: t.all("unclaimable_due", batch=RETRIED))
        for row in due:
            share = left.get(row["route"])
            if share is None or share.limit <= 0:
                continue
            if boot() >= began + _TRY_FOR:
                break
            place = _place_of(row)
            if opening.try_again(replace(share, limit=1, floor=place, last=place), row["job"]):
                left[share.route] = replace(share, limit=share.limit - 1)
                came_home = True
        if came_home:
            self._looked_aside_at = float("-inf")
        return [share for share in left.values() if share.limit > 0]


class _Pace:
    """How long a claim may take, and of which routes single jobs are claimed."""

    def __init__(self, store_call: float) -> None:
        self._most = store_call / 2
        self._quick = min(QUICK, store_call / 3)
        self._allowed = self._quick
        self._lenient_until = 0.0
        #: Routes in which one job is slow and was not found yet, and until when: workers that take the same many
        #: again and again, and hold them for long each time, would never find it.
        self._careful: dict[int, float] = {}

    @property
    def stop_after(self) -> float:
        if boot() >= self._lenient_until:
            self._allowed = self._quick
        return self._allowed

    def be_lenient(self) -> None:
        """Nobody was slow, so everybody is."""
        self._allowed = min(self._most, 2 * self.stop_after)
        self._lenient_until = boot() + _LENIENT_FOR

    def is_careful(self, route: int) -> bool:
        return self._careful.get(route, 0.0) > boot()

    def be_careful(self, routes: Iterable[int]) -> None:
        self._careful |= dict.fromkeys(routes, boot() + _CAREFUL_FOR)

    def relax(self, routes: Iterable[int]) -> None:
        for route in routes:
            self._careful.pop(route, None)


class _Opening:
    """What one call opens, by one statement or, if that fails, by several."""

    def __init__(self, database: Database, ask: ClaimAsk, pace: _Pace) -> None:
        self._database = database
        self._ask = ask
        self._pace = pace
        self.rows: list[Row] = []
        #: Routes that got no room because another transaction holds one of their limits.
        self.held: frozenset[int] = frozenset()
        #: Whether some of it could not be opened at once.
        self.in_parts = False

    def take(self, shares: list[Share]) -> None:
        """All of them limited, or none."""
        careful = [share for share in shares if self._pace.is_careful(share.route)]
        at_once = [share for share in shares if share not in careful] if careful else shares
        if at_once:
            began = boot()
            try:
                self._open(at_once)
            except AWAY:
                raise
            except Exception as error:
                self._take_in_parts(at_once, error, is_slow=boot() - began > SLOW)
        if careful:
            self._take_in_parts(careful)

    def try_again(self, share: Share, job: int) -> bool:
        """A job in quarantine is tried alone; whether an attempt was opened."""

        def work(t: Transaction) -> tuple[list[Row], frozenset[int]]:
            rows, held = self._step(t, [share], without="")
            for row in rows:
                t.run("leave_quarantine", duty=DUTY, item=row["id"])
            return rows, held

        before = len(self.rows)
        try:
            self._note(self._database.write(work, patience=IMPATIENCE))
        except AWAY:
            raise
        except Exception as error:
            self._set_aside({job: error})
        return len(self.rows) > before

    def _open(self, shares: Sequence[Share]) -> None:
        stop_after = self._pace.stop_after
        if not self._database.one_table_per_statement and not any(share.is_limited for share in shares):
            rows = self._database.once("claim", stop_after=stop_after, **question(self._now(), shares))
            end_stays_alone(self._database, rows)
            self._note((rows, frozenset()))
        else:
            self._note(self._database.write(lambda t: self._step(t, shares), stop_after=stop_after))

    def _open_part(self, shares: Sequence[Share], *, is_single: bool = False) -> None:
        stop_after = self._pace.stop_after * (2 if is_single else 1)
        part = self._database.write(lambda t: self._step(t, shares), patience=IMPATIENCE, stop_after=stop_after)
        self._note(part)

    def _step(self, t: Transaction, shares: Sequence[Share], without: str = DUTY) -> tuple[list[Row], frozenset[int]]:
        ask = replace(self._now(), without=without)
        if any(share.is_limited for share in shares):
            return open_counted(t, ask, list(shares))
        return open_some(t, ask, shares), frozenset()

    def _now(self) -> ClaimAsk:
        return replace(self._ask, opened=len(self.rows))

    def _note(self, opened: tuple[list[Row], frozenset[int]]) -> None:
        rows, held = opened
        self.rows += rows
        self.held |= held

    # --- what cannot be claimed -----------------------------------------------------------------------------------

    def _take_in_parts(
        self, shares: Sequence[Share], error: Exception | None = None, *, is_slow: bool = True
    ) -> None:
        """By routes first, unless they are few and failures slow; then, of those that failed, by jobs. Without an
        error, because there was a slow one lately: each job by itself from the start."""
        self.in_parts = True
        before = len(self.rows)
        failed: Collection[Share] = shares
        try:
            if error is not None and len(shares) > (PIECES if is_slow else 1):
                failed = bisect_batch(shares, self._open_part, within=_WITHIN, most=len(shares), pieces=PIECES)
            if is_slow:
                self._pace.be_careful(share.route for share in failed)
            blamed = self._take_jobs(failed, singly=error is None)
        except Exception:
            if len(self.rows) == before:
                raise
            return
        if blamed and len(self.rows) == before and not self._is_their_fault(blamed.values()):
            raise next(iter(blamed.values()))
        if is_slow and error is not None and not blamed:
            self._pace.be_lenient()
        is_aside = self._set_aside(blamed)
        if is_aside and error is not None:
            self._pace.relax(share.route for share in failed)
        if not is_aside and len(self.rows) == before:
            raise next(iter(blamed.values()))

    def _take_jobs(self, shares: Iterable[Share], *, singly: bool) -> dict[int, Exception]:
        """The first jobs of these routes, but for those that cannot be claimed: these are the answer."""
        places = [(share, place) for share in shares for place in self._first_of(share, singly=singly)]
        if not places:
            self._open_part(list(shares))  # if it fails again, that is no job's fault

        def open_some(some: Sequence[tuple[Share, tuple[int, int]]]) -> None:
            parts: dict[Share, list[tuple[int, int]]] = {}
            for share, place in some:
                parts.setdefault(share, []).append(place)
            spans = [replace(s, limit=len(few), floor=few[0], last=few[-1]) for s, few in parts.items()]
            self._open_part(spans, is_single=len(some) == 1)

        pieces = len(places) if singly else PIECES
        failed = bisect_batch(places, open_some, within=_WITHIN, most=_MOST_BLAMED, pieces=pieces)
        return {job: error for (_, (_, job)), error in failed.items()}

    def _first_of(self, share: Share, *, singly: bool) -> list[tuple[int, int]]:
        rank, job = share.floor or _BEGINNING
        most = min(share.limit, _AT_ONCE) if singly else share.limit
        facts = {"route": share.route, "rank": rank, "job": job, "most": most}
        found = [_place_of(row) for row in self._database.read(lambda t: t.all("ready_jobs", **facts))]
        return [place for place in found if place <= (share.last or _END)]

    def _is_their_fault(self, errors: Iterable[Exception]) -> bool:
        """Nobody could be claimed. That a lock is held or the disk is full says nothing about jobs, nor does it that
        a statement was slow where all are."""
        self._database.write(lambda t: t.run("probe"), patience=IMPATIENCE)
        return all(isinstance(error, StoreSlow) or not isinstance(error, StoreBusy) for error in errors)

    def _set_aside(self, blamed: Mapping[int, Exception]) -> bool:
        """What is opened must reach its worker, whether or not this can be written."""
        errors = {job: problem_of(error) for job, error in blamed.items()}
        try:
            return not set_aside(self._database, DUTY, errors, f"worker {self._ask.worker}")
        except Exception as error:
            emit("quarantine_failed", level=logging.WARNING, jobs=len(errors), error=str(error))
            return False


def _read_on(database: Database, worker: int, claim: str, rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows with their texts, and those whose texts did not come in time."""
    until = boot() + database.store_call
    # Nothing new: there was nothing, the gates were shut, or this claim id had its answer before.
    whole, rest = _parted(rows or _chunk(database, worker, claim, _BEGINNING))
    while rest and boot() < until and sum(len(row["payload"]) for row in whole) < CLAIM_BYTES:
        try:
            more, rest = _parted(_chunk(database, worker, claim, _place(whole[-1]) if whole else _BEGINNING))
        except StoreError:
            if not whole:
                raise
            break
        whole += more
    return whole, rest


def _parted(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Up to the first that came without its texts, and from there on."""
    whole = next((place for place, row in enumerate(rows) if row["payload"] is None), len(rows))
    return rows[:whole], rows[whole:]


def _place(row: Row) -> tuple[int, int]:
    return row["rank"], row["id"]


def _place_of(row: Row) -> tuple[int, int]:
    return row["rank"], row["job"]


def _chunk(database: Database, worker: int, claim: str, after: tuple[int, int]) -> list[Row]:
    rank, job = after
    facts = {"worker": worker, "claim": claim, "rank": rank, "job": job, "room": CHUNK_BYTES}
    return database.read(lambda t: t.all("claimed_jobs", **facts))


def _together(shares: Iterable[Share]) -> list[Share]:
    """One share per route: what several allow is added up, from the lowest floor on."""
    found: dict[int, Share] = {}
    for share in shares:
        if share.limit <= 0:
            continue
        other = found.get(share.route)
        found[share.route] = share if other is None else _sum(share, other)
    return list(found.values())


def _sum(one: Share, other: Share) -> Share:
    floor = None if one.floor is None or other.floor is None else min(one.floor, other.floor)
    last = None if one.last is None or other.last is None else max(one.last, other.last)
    return Share(one.route, one.limit + other.limit, floor, one.is_limited or other.is_limited, last)
