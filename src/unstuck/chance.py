"""The one place that rolls dice: ids, nonces and jitter, seeded in tests."""

from __future__ import annotations

import os
import random
import time
from typing import Protocol


class Chance(Protocol):
    def job_id(self) -> str: ...
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
        return _uuid7(time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10), "big") & (1 << 74) - 1)

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

    def nonce(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def fraction(self) -> float:
        return self._random.random()
