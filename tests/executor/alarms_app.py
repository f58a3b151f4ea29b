"""Handlers that set alarms and answers to signals, and leave them behind."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import Any

from tests.executor.apps import app, registry, workflow

__all__ = ["app", "registry"]


def answer_to_usr2() -> None:
    """What the app itself has set is not a leftover."""
    signal.signal(signal.SIGUSR2, _mine)


def _mine(*_: Any) -> None: ...


registry.on_start.append(answer_to_usr2)


def _late(*_: Any) -> None:
    raise TimeoutError("too late")


def _arm(after: float, every: float) -> None:
    """The usual recipe for a time limit, without the cancel at its end."""
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, after, every)


@workflow()
def arms(after: float, every: float = 0.0) -> int:
    _arm(after, every)
    return os.getpid()


@workflow()
async def arms_async(after: float, every: float = 0.0) -> int:
    _arm(after, every)
    return os.getpid()


@workflow()
def sends_later(after: float) -> int:
    """A signal of its own, from a thread that it leaves behind."""
    signal.signal(signal.SIGUSR1, _late)
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    return os.getpid()


@workflow()
def rests(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@workflow()
async def rests_async(seconds: float) -> int:
    await asyncio.sleep(seconds)
    return os.getpid()


@workflow()
async def waits_for_its_alarm(after: float) -> bool:
    rung: list[bool] = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    signal.setitimer(signal.ITIMER_REAL, after)
    await asyncio.sleep(after + 0.2)
    return bool(rung)


@workflow()
async def answers() -> list[str]:
    found = [signal.getsignal(signum) for signum in (signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)]
    return [getattr(answer, "name", getattr(answer, "__name__", "?")) for answer in found]
