"""Schedules: when a workflow is to run by the clock, which ticks are still made up for, and what may overlap.

Theory of operation. A schedule is a rule (a cron line with its time zone, or an interval) and what is to be run. A
*tick* is an instant of the rule; it is what a firing is known by, so each tick is fired once. `plan` says what is to
be done about the ticks that came due: fire them one by one, and let go of those that were missed and are not made up
for. Those are always the oldest, so they are one step however many they are. Nothing here knows the time: `now` is
given, and the ticks of a cron line are computed from its zone alone.

Clocks that change. A line that names its hour and its minute ("30 2 * * *") means a time of day: it runs once each
day. In the hour that is left out it runs when that hour would have ended, in the hour that comes twice the first
time. A line that begins its hour or its minute with a star ("*/15 * * * *") means a distance: it runs in each of the
two hours, and nothing is made up for the one that is left out. So does one with seconds, which has six fields. An
interval is a distance on the time line and knows no zone. These are the rules of Debian's cron, as cronsim keeps
them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import Any, Final, Literal, NamedTuple, get_args

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.wording import duration
from unstuck.records import dataclass

Overlap = Literal["allow", "skip", "queue", "cancel"]
CatchUp = Literal["none", "last", "all"]
FiringKind = Literal["tick", "run_now", "backfill"]
#: "fired": there is a job. "skipped": an earlier job had not ended. "refused": no job could be made, the reason says
#: why. "missed": nobody was there in time, and the tick is not made up for.
FiringOutcome = Literal["fired", "skipped", "refused", "missed"]

#: Names that people write in place of a line.
ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: Far from where a calendar ends: zones, jitter and the tick after it are reckoned from there.
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
MOST_CAUGHT_UP: Final = 1000
#: One look goes through so many ticks; what is older is counted no further.
MOST_LOOKED: Final = 2000
#: So many of the ticks ahead are looked at for the shortest distance between two of them.
_GAPS: Final = 100
LONGEST_EVERY: Final = 366 * 86400.0
#: A schedule's job carries its name as a tag, which must not become too long for one.
MOST_NAME: Final = 100
TAG: Final = "schedule:"
#: So many ticks in a row without a job are told.
SILENT_AFTER: Final = 3
#: Names of the machine's own zone, and copies of zones by other rules: not all machines have them, nor the same.
_OF_A_MACHINE: Final = frozenset({"localtime", "posixrules", "Factory"})
_ODD: Final = ("posix/", "right/")
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
#: Back from now, where there are too many ticks to begin at the first.
_WINDOWS = tuple(timedelta(seconds=s) for s in (60, 3600, 86400, 31 * 86400, 366 * 86400))


class ScheduleState(StrEnum):
    """What a schedule is, for people; computed, not stored."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    ENDED = "ENDED"
    #: The code that declared it declares it no more.
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """What somebody wants to run, and when. `every` is seconds; where `begin_at` is not said, its ticks are multiples
    of it since 1970, so that they are the same whoever declares it, and when. `tick_as` names an argument that gets
    the tick, as a text."""

    workflow: str
    cron: str | None = None
    every: float | None = None
    zone: str = "UTC"
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    tick_as: str | None = None
    queue: str | None = None
    priority: int = 0
    target: str | None = None
    tags: tuple[str, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)
    overlap: Overlap = "allow"
    catch_up: CatchUp = "last"
    catch_up_most: int = 100
    jitter: float = 0.0
    begin_at: datetime | None = None
    end_at: datetime | None = None

    @property
    def when(self) -> tuple[Any, ...]:
        """All that decides which ticks there are."""
        return (self.cron, self.every, self.zone if self.cron else None, self.begin_at, self.end_at)

    def to_json(self) -> str:
        """Without what is as by default: a text that stays the same when there are more options."""
        facts = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        usual = {f.name: _plain(getattr(_USUAL, f.name)) for f in fields(self)}
        return json.dumps(
            {name: value for name, value in facts.items() if name == "workflow" or value != usual[name]},
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> ScheduleSpec:
        """Tolerates options of a newer version."""
        known = {f.name for f in fields(cls)}
        facts = {name: value for name, value in json.loads(text).items() if name in known}
        for name in ("begin_at", "end_at"):
            if facts.get(name) is not None:
                facts[name] = datetime.fromisoformat(facts[name])
        for name in ("args", "tags"):
            facts[name] = tuple(facts.get(name, ()))
        return cls(**facts)


_USUAL = ScheduleSpec("")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return list(value) if isinstance(value, tuple) else value


# --- what cannot be ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScheduleRules:
    """The runtime settings of schedules; times in seconds."""

    #: How many a tenant may have.
    most: int = 1000
    #: The shortest distance between two ticks.
    min_interval: float = 1.0
    #: A tick that is later than this was missed, and is made up for by the schedule's own rule.
    missed_after: float = 30.0


def checked(spec: ScheduleSpec, now: datetime, rules: ScheduleRules) -> ScheduleSpec:
    """The same, written plainly; InvalidInput with every problem there is."""
    spec = replace(spec, cron=_line(spec.cron))
    if problems := [*_kinds(spec), *_choices(spec)] or [*_when(spec, now, rules)]:
        raise InvalidInput("; ".join(problems))
    return plainly(spec)


def plainly(spec: ScheduleSpec) -> ScheduleSpec:
    """As it is kept: the same for all who mean the same."""
    return replace(spec, cron=_line(spec.cron), every=None if spec.every is None else round(float(spec.every), 3))


def _line(cron: Any) -> Any:
    if not isinstance(cron, str):
        return cron
    line = " ".join(cron.split())
    return ALIASES.get(line.lower(), line)


def _kinds(spec: ScheduleSpec) -> Iterator[str]:
    if (spec.cron is None) == (spec.every is None):
        yield "a schedule has a cron line or an interval: say cron= or every=, and not both"
    if spec.cron is not None and not isinstance(spec.cron, str):
        yield f"cron={quoted(spec.cron)} is not a text like '0 3 * * *'"
    if spec.every is not None and not (_is_number(spec.every) and 0.001 <= spec.every <= LONGEST_EVERY):
        yield f"every={quoted(spec.every)} is not a number of seconds between 0.001 and {LONGEST_EVERY:g}"
    if not (_is_number(spec.jitter) and 0 <= spec.jitter <= 86400.0):
        yield f"jitter={quoted(spec.jitter)} is not a number of seconds between 0 and 86400"
    if not isinstance(spec.zone, str):
        yield f"zone={quoted(spec.zone)} is not the name of a time zone, like Europe/Berlin"
    for name in ("begin_at", "end_at"):
        at = getattr(spec, name)
        if at is not None and not (isinstance(at, datetime) and at.tzinfo is not None):
            yield f"{name}={quoted(at)} is not an instant with its zone"
        elif at is not None and not EPOCH <= at <= _LATEST:
            yield f"{name}={quoted(at)} is not between 1970 and {_LATEST.year}"


def _choices(spec: ScheduleSpec) -> Iterator[str]:
    for name, known in (("overlap", get_args(Overlap)), ("catch_up", get_args(CatchUp))):
        if getattr(spec, name) not in known:
            yield f"{name}={quoted(getattr(spec, name))} is not one of {', '.join(known)}"
    most = spec.catch_up_most
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_CAUGHT_UP:
        yield f"catch_up_most={quoted(most)} is not a whole number between 1 and {MOST_CAUGHT_UP}"
    if spec.tick_as is not None and not (isinstance(spec.tick_as, str) and spec.tick_as.isidentifier()):
        yield f"tick_as={quoted(spec.tick_as)} is not the name of an argument"
    elif spec.tick_as is not None and spec.tick_as in spec.kwargs:
        yield f"tick_as names {spec.tick_as}, which the arguments give already"


def _when(spec: ScheduleSpec, now: datetime, rules: ScheduleRules) -> Iterator[str]:
    if spec.cron is not None and (problem := cron_problem(spec.cron, spec.zone)):
        yield problem
        return
    if spec.begin_at is not None and spec.end_at is not None and spec.begin_at > spec.end_at:
        yield f"it would end ({spec.end_at.isoformat()}) before it begins ({spec.begin_at.isoformat()})"
        return
    ahead = list(islice(ticks(replace(spec, end_at=None), now), _GAPS))
    if not ahead:
        yield f"cron={quoted(spec.cron)} never comes: no day of the next fifty years is like that"
        return
    gap = min((later - tick for tick, later in pairwise(ahead)), default=None)
    if gap is not None and gap < timedelta(seconds=rules.min_interval):
        yield (
            f"two of its ticks are {gap.total_seconds():g} s apart; schedule_min_interval={rules.min_interval:g} is "
            "the least there may be between two"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cron_problem(line: str, zone: str) -> str | None:
    """Why nobody can go by it."""
    from cronsim import CronSim, CronSimError

    if (problem := zone_problem(zone)) is not None:
        return problem
    try:
        CronSim(line, EPOCH)
    except (CronSimError, ValueError, AssertionError, OverflowError) as error:
        said = str(error) or "it cannot be read"
        return (
            f"cron={quoted(line)}: {said[:1].lower()}{said[1:]}; a line has five fields, minute hour day month "
            f"weekday (or six, with seconds before them), or is one of {', '.join(ALIASES)}"
        )
    return None


def zone_problem(zone: str) -> str | None:
    if zone in _OF_A_MACHINE or zone.startswith(_ODD):
        return (
            f"zone={quoted(zone)} is not the same on every machine, and any of them may fire; write the zone that is "
            "meant, like Europe/Berlin, or UTC"
        )
    try:
        _zone(zone)
    except (ValueError, OSError):  # unknown (a KeyError of zoneinfo is a ValueError here), a folder, a path
        return f"zone={quoted(zone)} is no time zone that is known here; write one like Europe/Berlin, or UTC"
    return None


@lru_cache(maxsize=500)
def _zone(name: str) -> Any:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except ZoneInfoNotFoundError:
        raise ValueError(name) from None


# --- when -----------------------------------------------------------------------------------------------------------


def ticks(spec: ScheduleSpec, after: datetime) -> Iterator[datetime]:
    """Its ticks after this instant, in order, in UTC. None of what has no rule."""
    if spec.cron is None and spec.every is None:
        return iter(())
    if spec.begin_at is not None:
        after = max(after, spec.begin_at - _MICROSECOND)
    found = _intervals(spec, after) if spec.every is not None else _cron(spec, after)
    return found if spec.end_at is None else takewhile(lambda tick: tick <= _end_of(spec), found)


def _end_of(spec: ScheduleSpec) -> datetime:
    assert spec.end_at is not None
    return spec.end_at


def _intervals(spec: ScheduleSpec, after: datetime) -> Iterator[datetime]:
    assert spec.every is not None
    step = timedelta(seconds=spec.every)
    anchor = (spec.begin_at or EPOCH).astimezone(UTC)
    place = (after - anchor) // step + 1
    while True:
        try:
            tick = anchor + place * step
        except OverflowError:  # the calendar ends
            return
        yield tick
        place += 1


def _cron(spec: ScheduleSpec, after: datetime) -> Iterator[datetime]:
    """What cronsim answers in a doubled hour may lie before the instant that it was asked for: that is no tick."""
    from cronsim import CronSim

    assert spec.cron is not None
    last = after.astimezone(UTC)
    lines = CronSim(spec.cron, after.astimezone(_zone(spec.zone)))
    while True:
        try:
            tick = next(lines).astimezone(UTC)
        except (StopIteration, OverflowError, ValueError):
            return
        if tick > last:
            last = tick
            yield tick


def next_tick(spec: ScheduleSpec, after: datetime) -> datetime | None:
    return next(ticks(spec, after), None)


def delay(schedule: int, tick: datetime, jitter: float) -> timedelta:
    """How long after its tick it fires: the same whoever asks, and other schedules' are elsewhere."""
    from hashlib import sha256

    if not jitter:
        return timedelta()
    digest = sha256(f"{schedule}:{int(tick.timestamp() * 1000)}".encode()).digest()
    return timedelta(milliseconds=int(int.from_bytes(digest[:6]) / 2**48 * jitter * 1000))


# --- what is to be done ---------------------------------------------------------------------------------------------


class TickStep(NamedTuple):
    """One thing to do: fire this tick, or let go of all from `first` to it (`is_missed`; `ticks` of them at least).
    `next`: the tick that comes then."""

    tick: datetime
    next: datetime | None
    is_missed: bool = False
    first: datetime | None = None
    ticks: int = 1


def plan(
    spec: ScheduleSpec,
    first: datetime,
    now: datetime,
    missed_after: float,
    delayed: Callable[[datetime], timedelta] = lambda tick: timedelta(),
) -> list[TickStep]:
    """What to do about the ticks from `first` on that are due at this instant, in order."""
    due, count = _due(spec, first, now, delayed)
    if not due:
        return []
    patience = timedelta(seconds=missed_after)
    late = list(takewhile(lambda tick: now - (tick + delayed(tick)) > patience, due))
    on_time = due[len(late) :]
    # Where one look could not go through all of them, those before it go with the first of them.
    dropped = max(len(late) - len(_made_up(spec, late, bool(on_time))), int(count > len(due)))
    after_last = next_tick(spec, due[-1])
    follows = [*due[1:], after_last]
    steps = [TickStep(tick, then) for tick, then in zip(due[dropped:], follows[dropped:], strict=True)]
    if dropped:
        missed = TickStep(due[dropped - 1], follows[dropped - 1], True, first, count - len(due) + dropped)
        return [missed, *steps]
    return steps


def _made_up(spec: ScheduleSpec, late: Sequence[datetime], is_on_time: bool) -> Sequence[datetime]:
    match spec.catch_up:
        case "all":
            return late[-spec.catch_up_most :]
        case "last" if not is_on_time:
            return late[-1:]
        case _:
            return ()


def _due(
    spec: ScheduleSpec, first: datetime, now: datetime, delayed: Callable[[datetime], timedelta]
) -> tuple[list[datetime], int]:
    """Those that are due, or the newest of them where they are very many; and how many there are at least."""
    found: list[datetime] = []
    for tick in ticks(spec, first - _MICROSECOND):
        if tick + delayed(tick) > now:
            return found, len(found)
        found.append(tick)
        if len(found) >= MOST_LOOKED:
            break
    else:
        return found, len(found)
    begin = first - _MICROSECOND
    newest: deque[datetime] = deque()
    for window in (*_WINDOWS, now - begin):
        since = max(begin, now - window)
        newest = deque(takewhile(lambda tick: tick + delayed(tick) <= now, ticks(spec, since)), maxlen=MOST_LOOKED)
        if len(newest) >= MOST_CAUGHT_UP or since == begin:
            break
    older = sum(tick < newest[0] for tick in found)
    return list(newest), older + len(newest)


def between(spec: ScheduleSpec, since: datetime, until: datetime, most: int) -> list[datetime]:
    """The ticks of a range, both ends included; one more than `most` where there are more. None is before 1970."""
    since = max(since, EPOCH)
    return list(islice(takewhile(lambda tick: tick <= until, ticks(spec, since - _MICROSECOND)), most + 1))


@dataclass(frozen=True, slots=True)
class DeclaredSchedule:
    """A schedule as code declares it. `body`: its spec, as `to_json` writes it."""

    tenant: str
    name: str
    body: str


def explained(spec: ScheduleSpec) -> str:
    """The rule as a sentence."""
    if spec.every is not None:
        return f"Every {duration(spec.every)}"
    from cronsim import CronSim

    try:
        return f"{CronSim(spec.cron or '', EPOCH).explain()}, {spec.zone}"
    except Exception:  # a sentence is no reason to fail
        return f"{spec.cron}, {spec.zone}"
