"""The one place that rolls dice: ids, nonces and jitter, seeded in tests."""

from __future__ import annotations

import os
import random
import time
from typing import Protocol


class Chance(Protocol):
    def job_id(self) -> str: ...
    def job_ids(self, count: int) -> list[str]: ...
    def nonce(self) -> str: ...
    def fraction(self) -> float: ...


def _uuid7(milliseconds: int, noise: int) -> str:
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | (noise >> 62 & 0xFFF) << 64 | 0b10 << 62
    text = f"{value | noise & (1 << 62) - 1:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class SystemChance:
    """The operating system's randomness; safe to share between threads and across a fork."""

    def job_id(self) -> str:
        """A UUID of version 7: sorts by time, made by the client, so it is known before the commit."""
        return self.job_ids(1)[0]

    def job_ids(self, count: int) -> list[str]:
        """Many at the price of one look at the clock and one question to the operating system."""
        milliseconds, noise = time.time_ns() // 1_000_000, os.urandom(10 * count)
        return [
            _uuid7(milliseconds, int.from_bytes(noise[start : start + 10], "big") & (1 << 74) - 1)
            for start in range(0, 10 * count, 10)
        ]

    def nonce(self) -> str:
        return os.urandom(16).hex()

    def fraction(self) -> float:
        return int.from_bytes(os.urandom(7), "big") / (1 << 56)


class SeededChance:
    """The same dice for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._milliseconds = 1_800_000_000_000

    def job_id(self) -> str:
        self._milliseconds += 1
        return _uuid7(self._milliseconds, self._random.getrandbits(74))

    def job_ids(self, count: int) -> list[str]:
        return [self.job_id() for _ in range(count)]

    def nonce(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def fraction(self) -> float:
        return self._random.random()
