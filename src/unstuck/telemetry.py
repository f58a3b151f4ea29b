"""emit(name, **facts): rooms say what they did; logs and metrics subscribe."""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger("unstuck")
logger.addHandler(logging.NullHandler())

Subscriber = Callable[[str, dict[str, object]], None]
_subscribers: list[Subscriber] = []
#: Of those, the ones that want a line of every single job: what nobody wants is not even put together.
_thorough: list[Subscriber] = []


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


def wants_every_job() -> bool:
    return bool(_thorough)


def emit(name: str, *, level: int = logging.INFO, **facts: object) -> None:
    """Say what happened. A subscriber that fails is logged and never stops the room that spoke."""
    if logger.isEnabledFor(level):
        logger.log(level, "%s %s", name, " ".join(f"{k}={v}" for k, v in facts.items()), extra={"facts": facts})
    for subscriber in tuple(_subscribers):
        try:
            subscriber(name, facts)
        except Exception:
            logger.exception("a telemetry subscriber failed on %s", name)
