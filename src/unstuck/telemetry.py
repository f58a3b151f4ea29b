"""emit(name, **facts): rooms say what they did; logs and metrics subscribe."""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger("unstuck")
logger.addHandler(logging.NullHandler())

Subscriber = Callable[[str, dict[str, object]], None]
_subscribers: list[Subscriber] = []


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Hear everything from now on; the answer ends it."""
    _subscribers.append(subscriber)
    return lambda: _subscribers.remove(subscriber)


def emit(name: str, *, level: int = logging.INFO, **facts: object) -> None:
    """Say what happened. A subscriber that fails is logged and never stops the room that spoke."""
    if logger.isEnabledFor(level):
        logger.log(level, "%s %s", name, " ".join(f"{k}={v}" for k, v in facts.items()), extra={"facts": facts})
    for subscriber in tuple(_subscribers):
        try:
            subscriber(name, facts)
        except Exception:
            logger.exception("a telemetry subscriber failed on %s", name)
