"""Leaps of the database's clock: who notices them, and what is done about them.

Theory of operation. The engine's time is the database's clock plus `ahead` (see the migration of unstuck_clock). A
worker remembers how the engine's time and its own BOOTTIME belonged together, and compares them whenever an answer
carries a `now`: each beat, and each look or lock by which time does something to jobs. A reading that neither the
time passed nor the time the answer took can explain undoes the transaction that met it; whoever met it takes the
leap out of the engine's time, under the lock of one row, and tries again. So no decision is made by a clock that has
leapt, and everything that is a distance stays what it was. What was written in the leapt time before anybody looked
(a beat at most) keeps it.

Two witnesses are never further apart than a step that is no leap: they follow the clock only as fast as clocks drift,
and who begins learns from those of his machine, or lets himself be told for a while. Of two who disagree all the same
the one is right with whom a worker of the machine agrees that began before (its row says what it saw, and when by
BOOTTIME).

Whose own time stood still (a machine that was paused) sees a leap where there is none. A worker of another machine
that has renewed meanwhile is the voucher against it: then it believes the database.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import NamedTuple

from unstuck import machine
from unstuck.clock import boot
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.rows import span
from unstuck.telemetry import emit

#: A step below this is no leap: the engine's time follows it, and the margin of a lease covers it. In microseconds.
TOLERANCE = 1_000_000
#: How far two clocks that run freely may drift apart, per microsecond.
_DRIFT = 500e-6
#: An answer with a larger error tells the time too badly to go by it from then on; in microseconds.
_SHARP = 50_000
#: How often what is known follows the drift, and how long who has learned it from nobody may err; in seconds.
_FOLLOWED_EVERY = 5.0
_YOUTH = 10.0
#: Who vouches has been there for so long: one that has just begun knows no better. In microseconds.
_SETTLED = 30_000_000
#: The error of a reading that a worker left behind: between its BOOTTIME and the database's lay a store call.
LEFT_BEHIND = 3_000_000
_MICROSECONDS = 1e6
#: Who expects nothing takes every time for right.
EVER = (0, 1 << 62)


class Leapt(Exception):
    """An answer's `now` cannot be: nothing that was decided by it may be committed."""


class _Reading(NamedTuple):
    """The engine's time at an instant of BOOTTIME, give or take."""

    now: float
    boot: float
    error: float


class Witness:
    """What one process remembers of the engine's time. Of any thread."""

    def __init__(self) -> None:
        self.name, self.boot_id = machine.host(), machine.boot_id()
        self.begun = boot()
        self._known: _Reading | None = None
        self._young_until = 0.0
        #: What it learned has held for a while, or comes from one of this machine.
        self._is_settled = False
        #: How many leaps were mended before it learned the time, and `ahead` as it was then; None: it was not told.
        self.leaps: int | None = None
        self.ahead: int | None = None
        self._lock = threading.Lock()

    def leap(self, now: int, sent: float, received: float) -> int:
        """By how much this reading, taken between two instants of BOOTTIME, is beyond all that explains it, in
        microseconds; 0: it is as it should be."""
        with self._lock:
            known = self._known
            if known is None:
                self._known = _reading(now, sent, received)
                self._young_until = received + _YOUTH
                return 0
            error = known.error + TOLERANCE + _drift(known, sent)
            if _at(known, sent) - error <= now <= _at(known, received) + error:
                if received - known.boot >= _FOLLOWED_EVERY or known.error > _SHARP:
                    self._known = _followed(known, _reading(now, sent, received))
                self._is_settled = self._is_settled or sent >= self._young_until
                return 0
            return round(now - _at(known, (sent + received) / 2))

    def may_err(self, stand: Row, reading: _Reading) -> bool:
        """Who has no past may have learned the time from a clock that had leapt; others have mended that since. How
        old it is says nothing: a program that enqueued once, an hour ago, has seen the time once."""
        is_told = not self._is_settled and stand["leaps"] != self.leaps
        return is_told and self._is_mended(stand["ahead"], reading) and not self._was_there(**stand)

    def _is_mended(self, ahead: int, reading: _Reading) -> bool:
        """Whether it sees what others have mended since it learned the time; what it sees beyond that is a leap."""
        with self._lock:
            known = self._known
        if known is None or self.ahead is None:
            return True
        return _is_as_seen(known._replace(now=known.now + ahead - self.ahead), reading)

    def _was_there(self, leap: int, leapt_at: int | None, **_: object) -> bool:
        """Whether the last one was mended while it was young, as its own time tells: to one that had learned the
        leapt time the mend seems to be as far away as the leap was long."""
        with self._lock:
            known, end = self._known, self._young_until
        if known is None or leapt_at is None or abs(leap) <= (_YOUTH * _MICROSECONDS) + 2 * TOLERANCE:
            return False
        at = known.boot + (leapt_at - known.now) / _MICROSECONDS
        error = (known.error + TOLERANCE) / _MICROSECONDS
        return end - _YOUTH - error <= at <= end + error

    def believe(self, now: int, sent: float, received: float) -> None:
        with self._lock:
            self._known = _reading(now, sent, received)

    def agrees_with(self, other: _Reading) -> bool:
        """Whether what it expects is what a neighbour saw, whose BOOTTIME is its own."""
        with self._lock:
            known = self._known
        return known is None or _is_as_seen(known, other)

    def inherit(self, now: int, boot_at: int) -> None:
        """What a worker of this boot last saw; who has eyes of his own goes by those."""
        with self._lock:
            if self._known is None:
                self._known = _left(now, boot_at)
                self._is_settled = True

    def expected(self) -> tuple[int, int] | None:
        """What the engine's time should be now: not before, and not after."""
        with self._lock:
            known = self._known
        if known is None:
            return None
        at = boot()
        error, expected = known.error + TOLERANCE + _drift(known, at), _at(known, at)
        return round(expected - error), round(expected + error)


def _reading(now: int, sent: float, received: float) -> _Reading:
    return _Reading(now, (sent + received) / 2, (received - sent) / 2 * _MICROSECONDS)


def _left(beat_at: int, boot_at: int, **_: object) -> _Reading:
    """What a worker of this boot left in its row."""
    return _Reading(beat_at, boot_at / _MICROSECONDS, LEFT_BEHIND)


def _is_of_late(left: _Reading, at: float) -> bool:
    """What is older tells less than a leap is long."""
    return _drift(left, at) <= TOLERANCE


def _is_as_seen(one: _Reading, other: _Reading) -> bool:
    """Whether two of one machine tell the same time."""
    error = one.error + other.error + TOLERANCE + _drift(one, other.boot)
    return abs(_at(one, other.boot) - other.now) <= error


def _drift(known: _Reading, at: float) -> float:
    return abs(at - known.boot) * _MICROSECONDS * _DRIFT


def _followed(known: _Reading, reading: _Reading) -> _Reading:
    """Only as fast as clocks drift apart: two witnesses who followed every small step, one of them and not the other,
    would take the clock from each other for ever."""
    if known.error > _SHARP and reading.error < known.error:
        return reading
    if reading.error > _SHARP or reading.boot - known.boot < _FOLLOWED_EVERY:
        return known
    expected, most = _at(known, reading.boot), _drift(known, reading.boot)
    step = min(most, max(-most, reading.now - expected))
    return _Reading(expected + step, reading.boot, known.error)


def _at(known: _Reading, at: float) -> float:
    return known.now + (at - known.boot) * _MICROSECONDS


def check(witness: Witness, rows: list[Row], sent: float) -> None:
    """Any answer with a `now` tells the time."""
    if rows and "now" in rows[0] and witness.leap(rows[0]["now"], sent, boot()):
        raise Leapt


def mend(database: Database, witness: Witness) -> bool:
    """Take a leap out of the engine's time, unless somebody has; whether there was one."""

    def work(t: Transaction) -> tuple[int, int, int] | None:
        t.one("lock_clock")
        sent = boot()
        # A statement of its own: only what comes after the lock sees what another has mended.
        row = t.one("read_clock")
        received = boot()
        assert row is not None
        leap = witness.leap(row["reading"], sent, received)
        if not leap:
            return None
        if _is_mistaken(t, witness, row, row["reading"] - leap, _reading(row["reading"], sent, received)):
            witness.believe(row["reading"], sent, received)
            witness.leaps, witness.ahead = row["leaps"], row["ahead"]
            return None
        ahead = row["ahead"] - leap
        t.run("move_clock", ahead=ahead, leap=leap, correction=leap, by=witness.name)
        t.one("keep_time")
        return leap, ahead, row["leaps"] + 1

    mended = database.write(work)
    if mended is not None:
        leap, witness.ahead, witness.leaps = mended
        tell(leap, witness.ahead, witness.name)
    return mended is not None


def _is_mistaken(t: Transaction, witness: Witness, row: Row, expected: int, reading: _Reading) -> bool:
    """Whether the clock is right, and it is the witness who is not: a worker of another machine vouches for it, or
    what an elder worker of this machine saw last. Where none says anything, who has no past does not contradict
    others; nor does anybody else err with whom one of them agrees."""
    facts = {"boot_id": witness.boot_id, "expected": expected, "tolerance": TOLERANCE, "settled": _SETTLED}
    if t.one("vouchers", **facts) is not None:
        return True
    rows = t.all("last_readings", boot_id=witness.boot_id, besides=witness.name, begun=span(witness.begun))
    seen = [(left, n["is_elder"]) for n in rows if _is_of_late(left := _left(**n), reading.boot)]
    if any(witness.agrees_with(left) for left, _ in seen):
        return False
    is_right = next((_is_as_seen(reading, left) for left, is_elder in seen if is_elder), False)
    return is_right or witness.may_err(row, reading)


def tell(leap: int, ahead: int, by: str) -> None:
    emit(
        "store.clock_leapt",
        level=logging.WARNING,
        seconds=round(leap / _MICROSECONDS, 3),
        ahead=round(ahead / _MICROSECONDS, 3),
        noticed=by,
    )


def wrong_appointments(t: Transaction, after: int, batch: int) -> list[int]:
    """Jobs whose timers stand where the clock was before its leap."""
    return [row["job"] for row in t.all("wrong_appointments", after=after, batch=batch)]


def move_appointments(t: Transaction, jobs: Sequence[int]) -> None:
    """Those that nobody holds; the others come with the next sweep."""
    free = [row["job"] for row in t.all("lock_appointed", jobs=list(jobs))]
    for what in ("jobs", "waits", "timers"):
        t.run(f"move_appointed_{what}", jobs=free)
