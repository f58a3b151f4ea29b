"""emit(name, **facts): rooms say what they did; logs and metrics subscribe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

logger = logging.getLogger("unstuck")
logger.addHandler(logging.NullHandler())

Subscriber = Callable[[str, dict[str, object]], None]
_subscribers: list[Subscriber] = []
#: Of those, the ones that want a line of every single job: what nobody wants is not even put together.
_thorough: list[Subscriber] = []
#: Who hears of jobs that ended together, and asks for the facts of as many as it likes.
Watcher = Callable[[Sequence[Any], Callable[[Any], dict[str, object]]], None]
_watchers: list[Watcher] = []

T = TypeVar("T")


def subscribe(subscriber: Subscriber, *, every_job: bool = False) -> Callable[[], None]:
    """Hear everything from now on; the answer ends it. `every_job`: also what happens thousands of times a second."""
    _subscribers.append(subscriber)
    if every_job:
        _thorough.append(subscriber)

    def end() -> None:
        _subscribers.remove(subscriber)
        if every_job:
            _thorough.remove(subscriber)

    return end


def watch_jobs(watcher: Watcher) -> Callable[[], None]:
    """Look at jobs as they end, from now on; the answer ends it."""
    _watchers.append(watcher)
    return lambda: _watchers.remove(watcher)


def wants_jobs() -> bool:
    return bool(_thorough or _watchers)


def emit_jobs(name: str, jobs: Sequence[T], facts: Callable[[T], dict[str, object]]) -> None:
    """Of many jobs at once: each of them to whoever wants that, all together to those who only look."""
    for job in jobs if _thorough else ():
        emit(name, level=logging.DEBUG, **facts(job))
    for watcher in tuple(_watchers):
        try:
            watcher(jobs, facts)
        except Exception:
            logger.exception("a watcher of jobs failed on %s", name)


def emit(name: str, *, level: int = logging.INFO, **facts: object) -> None:
    """Say what happened. A subscriber that fails is logged and never stops the room that spoke."""
    if logger.isEnabledFor(level):
        logger.log(level, "%s %s", name, " ".join(f"{k}={v}" for k, v in facts.items()), extra={"facts": facts})
    for subscriber in tuple(_subscribers):
        try:
            subscriber(name, facts)
        except Exception:
            logger.exception("a telemetry subscriber failed on %s", name)
