"""The one place that rolls dice: ids, nonces and jitter, seeded in tests."""

from __future__ import annotations

import itertools
import os
import time
from typing import Protocol


class Chance(Protocol):
    def job_id(self) -> str: ...
    def job_ids(self, count: int) -> list[str]: ...
    def nonce(self) -> str: ...
    def fraction(self) -> float: ...


#: Two of the bits of a UUID say of which variant it is.
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
_NOISE = 19  # hexadecimal digits of it in an id


def _uuids7(milliseconds: int, noise: str) -> list[str]:
    """As many as there is noise for."""
    time = f"{milliseconds & (1 << 48) - 1:012x}"
    begin = f"{time[:8]}-{time[8:]}-7"
    return [
        f"{begin}{noise[n : n + 3]}-{_VARIANT[noise[n + 3]]}{noise[n + 4 : n + 7]}-{noise[n + 7 : n + _NOISE]}"
        for n in range(0, len(noise) - _NOISE + 1, _NOISE)
    ]


def unguessable(below: int) -> int:
    """A number that nobody can foretell, for what opens doors: no seed makes it."""
    import secrets

    return secrets.randbelow(below)


class SystemChance:
    """The operating system's randomness; safe to share between threads and across a fork."""

    def job_id(self) -> str:
        """A UUID of version 7: sorts by time, made by the client, so it is known before the commit."""
        return self.job_ids(1)[0]

    def job_ids(self, count: int) -> list[str]:
        """Many at the price of one look at the clock and one question to the operating system."""
        noise = os.urandom((_NOISE * count + 1) // 2).hex()
        return _uuids7(time.time_ns() // 1_000_000, noise[: _NOISE * count])

    def nonce(self) -> str:
        return os.urandom(16).hex()

    def fraction(self) -> float:
        return int.from_bytes(os.urandom(7), "big") / (1 << 56)


class Labels:
    """Names by which things are told apart and never trusted: a nonce of this process, and a count. A question to the
    operating system for each would cost more than the thing."""

    def __init__(self) -> None:
        self._begin()

    def next(self) -> str:
        if self._pid != os.getpid():
            self._begin()
        return f"{self._nonce}{next(self._count):016x}"

    def _begin(self) -> None:
        self._pid, self._nonce, self._count = os.getpid(), os.urandom(8).hex(), itertools.count(1)


class SeededChance:
    """The same dice for the same seed."""

    def __init__(self, seed: int) -> None:
        import random

        self._random = random.Random(seed)
        self._milliseconds = 1_800_000_000_000

    def job_id(self) -> str:
        self._milliseconds += 1
        return _uuids7(self._milliseconds, f"{self._random.getrandbits(4 * _NOISE):0{_NOISE}x}")[0]

    def job_ids(self, count: int) -> list[str]:
        return [self.job_id() for _ in range(count)]

    def nonce(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def fraction(self) -> float:
        return self._random.random()
