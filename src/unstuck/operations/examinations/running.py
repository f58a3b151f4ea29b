"""Several checks at once, each with its own time: one that hangs or fails says so and stops no other."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from unstuck import clock
from unstuck.model.errors import StoreBusy, StoreError, UnstuckError
from unstuck.model.wording import duration
from unstuck.observe.why import with_holder
from unstuck.operations.examinations.exam import DoctorCheck, S, finding
from unstuck.views.doctor import SEVERITIES, ExaminedView, FindingView

#: Seconds that one check may take: a little more than a store call with a try to name who keeps it.
WITHIN = 6.0
#: So many are made at once: fewer than the store has connections.
AT_ONCE = 6

#: So many findings of one check are told, the worst first; of the others, how many.
MOST = 20

R = TypeVar("R")


class CheckOutcome(NamedTuple, Generic[R]):
    """What one gave, or why it gave nothing, and how many seconds that took."""

    value: R | None
    error: BaseException | None
    took: float


def each_within(
    work: Sequence[Callable[[], R]], *, within: float = WITHIN, at_once: int = AT_ONCE
) -> list[CheckOutcome[R]]:
    """In their order. One that takes longer is left to itself, with a TimeoutError in its place: what it waits for
    has a deadline of its own, and its thread keeps no process from ending."""
    found: dict[int, CheckOutcome[R]] = {}
    waiting, running = deque(range(len(work))), dict[int, float]()
    ended: queue.SimpleQueue[tuple[int, CheckOutcome[R]]] = queue.SimpleQueue()
    while waiting or running:
        while waiting and len(running) < at_once:
            place = waiting.popleft()
            running[place] = clock.boot()
            arguments = (place, work[place], running[place], ended)
            threading.Thread(target=_run, args=arguments, name="unstuck-check", daemon=True).start()
        try:
            place, outcome = ended.get(timeout=max(0.0, min(running.values()) + within - clock.boot()))
        except queue.Empty:
            place = min(running, key=lambda each: running[each])
            late = TimeoutError(f"it took longer than {duration(within)}")
            outcome = CheckOutcome(None, late, clock.boot() - running[place])
        if running.pop(place, None) is not None:  # else it had been given up
            found[place] = outcome
    return [found[place] for place in range(len(work))]


def _run(
    place: int, work: Callable[[], R], began: float, ended: queue.SimpleQueue[tuple[int, CheckOutcome[R]]]
) -> None:
    try:
        value, error = work(), None
    except BaseException as problem:  # whatever it was: it is told, and the others go on
        ended.put((place, CheckOutcome(None, problem, clock.boot() - began)))
    else:
        ended.put((place, CheckOutcome(value, error, clock.boot() - began)))


def examine(
    subject: S, checks: Iterable[DoctorCheck[S]], within: float = WITHIN
) -> tuple[tuple[FindingView, ...], tuple[ExaminedView, ...]]:
    """What each of them found, and which were made."""
    made = list(checks)
    outcomes = each_within([partial(_looked, subject, check) for check in made], within=within)
    findings: list[FindingView] = []
    examined: list[ExaminedView] = []
    for check, outcome in zip(made, outcomes, strict=True):
        found = _few(check, outcome.value or []) if outcome.error is None else [_unchecked(check, outcome.error)]
        findings += found
        is_ok = all(each.severity == "note" for each in found)
        examined.append(
            ExaminedView(name=check.name, looks_at=check.looks_at, ok=is_ok, took_ms=round(outcome.took * 1000))
        )
    return tuple(findings), tuple(examined)


def _looked(subject: S, check: DoctorCheck[S]) -> list[FindingView]:
    """Whatever `health` calls it, a finding names the check that can be asked for."""
    try:
        return [replace(each, check=check.name) for each in check.look(subject)]
    except StoreBusy as error:  # whoever keeps us from it may be known, and that is the news
        told = str(error) if subject.store is None else with_holder(subject.store, error)
        raise StoreBusy(told) from error


def _few(check: DoctorCheck[Any], found: list[FindingView]) -> list[FindingView]:
    found = sorted(found, key=lambda each: SEVERITIES.index(each.severity))
    if len(found) <= MOST:
        return found
    left = found[MOST:]
    more = finding(check.name, left[0].severity, check.looks_at, f"{len(left):,} more like these", left[0].why)
    return [*found[:MOST], more]


def _unchecked(check: DoctorCheck[Any], error: BaseException) -> FindingView:
    is_ours = not isinstance(error, UnstuckError | TimeoutError | OSError)
    told = f"{type(error).__name__}: {error}" if is_ours else str(error)
    return finding(
        check.name,
        "unchecked",
        check.looks_at,
        f"it could not be checked: {told}",
        "nobody knows whether it is in order",
        "this is a mistake of unstuck itself; the other checks stand" if is_ours else _again(error),
    )


def _again(error: BaseException) -> str:
    return "unstuck health" if isinstance(error, StoreError) else "try it again; if it stays so: unstuck health"
