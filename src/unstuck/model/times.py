"""Times: every duration the engine works with, the closed list of what is refused, and the bounds that follow."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from datetime import datetime
from typing import Any

from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds. The defaults keep every inequality below with room to spare."""

    lease: float = 30.0
    beat: float = 5.0
    margin: float = 8.0
    lost_grace: float = 0.0
    sweep: float = 5.0
    poll: float = 1.0
    cancel_poll: float = 2.0
    max_timeout: float = 3600.0
    grace: float = 10.0
    kill_grace: float = 5.0
    pulse: float = 0.1
    unresponsive: float = 1.0
    frozen: float = 30.0
    drain: float = 300.0
    store_call: float = 3.0
    reconnect: float = 10.0
    slack: float = 1.0
    offer_ack: float = 5.0
    import_limit: float = 60.0
    offline: float = 120.0
    retention: float = 7 * 86400.0
    key_retention: float = 86400.0
    #: How long a place in the global feed can be gone on from.
    feed_retention: float = 86400.0
    #: How long a dead letter is kept; its job stays for `retention`.
    dead_letter_retention: float = 86400.0
    #: How long a delivery to a webhook is kept, whatever became of it.
    delivery_retention: float = 7 * 86400.0
    #: A job whose workflow no worker has known for so long fails; 0: never.
    orphan_after: float = 86400.0

    @property
    def silent_after(self) -> float:
        """A worker without a beat for so long is frozen, or cut off from the store, although its lease holds."""
        return self.beat + 2 * self.store_call

    def is_silent(self, beat_at: datetime, lease_until: datetime, now: datetime) -> bool:
        """Whether a worker that last beat then is. One that renews a longer lease than ours beats less often, as one
        at a distance does."""
        lease = (lease_until - beat_at).total_seconds()
        return (now - beat_at).total_seconds() > self.silent_after * max(1.0, lease / self.lease)

    def problems(self, timeout: float | None = None, stop_time: float | None = None) -> list[str]:
        """Why these cannot keep their promises; nothing else is refused."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        found = [
            f"{n}={v!r} is not a number of seconds of 0 or more" for n, v in given.items() if not _is_duration(v)
        ]
        found += [f"{n}={v:g} is not above 0: {_POSITIVE[n]}" for n, v in given.items() if n in _POSITIVE and v == 0]
        return found or [text for wrong, text in self._inequalities(timeout, stop_time) if wrong]

    def _inequalities(self, timeout: float | None, stop_time: float | None) -> list[tuple[bool, str]]:
        least = 2 * self.beat + self.store_call + self.margin + self.slack
        room = self.kill_grace + self.pulse + self.slack
        return [
            (
                self.lease < least,
                f"lease={self.lease:g} is below 2·beat + store_call + margin + slack = {least:g}: "
                "one lost renewal would cost running jobs",
            ),
            (
                self.margin < room,
                f"margin={self.margin:g} is below kill_grace + pulse + slack = {room:g}: "
                "a body could outlive its lease",
            ),
            (
                self.store_call >= self.beat,
                f"store_call={self.store_call:g} is not below beat={self.beat:g}: slow calls would delay beats",
            ),
            (
                self.sweep > self.lease / 2,
                f"sweep={self.sweep:g} is above lease/2 = {self.lease / 2:g}: lost jobs would wait too long",
            ),
            (self.poll > self.sweep, f"poll={self.poll:g} is above sweep={self.sweep:g}"),
            (
                self.unresponsive < 5 * self.pulse,
                f"unresponsive={self.unresponsive:g} is below 5·pulse = {5 * self.pulse:g}: healthy executors would "
                "look dead",
            ),
            (
                self.frozen < self.unresponsive,
                f"frozen={self.frozen:g} is below unresponsive={self.unresponsive:g}",
            ),
            (
                self.offer_ack >= self.lease / 2,
                f"offer_ack={self.offer_ack:g} is not below lease/2 = {self.lease / 2:g}",
            ),
            (
                timeout is not None and timeout > self.max_timeout,
                f"timeout={timeout} is above max_timeout={self.max_timeout:g}",
            ),
            (
                stop_time is not None and self.drain > stop_time - self.kill_grace,
                f"drain={self.drain:g} is above the service manager's stop time − kill_grace = "
                f"{(stop_time or 0) - self.kill_grace:g}: jobs would be killed in the middle of the drain",
            ),
        ]

    def warnings(self) -> list[str]:
        """What they promise less for, and yet may be wanted."""
        if self.frozen <= self.lease:
            return []
        return [
            f"frozen={self.frozen:g} is above lease={self.lease:g}: a job that another one keeps from obeying its "
            "request may be declared stuck before that process is ended"
        ]

    def bounds(self) -> dict[str, float]:
        """How long things can take at most, in available time: store writable, a supervisor alive."""
        call = self.store_call + self.slack
        return {
            "job of a lost machine leaves RUNNING": self.lease + self.lost_grace + self.sweep + call,
            "job of a worker seen dead on this host leaves RUNNING": self.sweep + call,
            "job of a dead executor leaves RUNNING": self.pulse + call,
            "job past its timeout leaves RUNNING (after the timeout)": self.pulse
            + self.grace
            + self.kill_grace
            + call,
            "cancelled job leaves RUNNING": self.cancel_poll + self.grace + self.kill_grace + call,
            "backstop convicts when no supervisor can": self.grace + self.kill_grace + self.lease + self.sweep + call,
            "runnable job meets a free slot": self.poll + call,
            "timer fires after it is due": self.sweep + call,
            "handlers are cancelled after the store was last reached": self.lease - self.margin - self.kill_grace,
            "nothing runs any more after the store was last reached": self.lease - self.margin,
            "every loop ticks again after the store is back": self.reconnect + call,
        }


_ALWAYS = "it would be over before it began"
_NEVER_RESTS = "it would never rest"
#: Where 0 would mean never or always.
_POSITIVE = {
    "lease": _ALWAYS,
    "beat": _NEVER_RESTS,
    "sweep": _NEVER_RESTS,
    "poll": _NEVER_RESTS,
    "cancel_poll": _NEVER_RESTS,
    "pulse": _NEVER_RESTS,
    "store_call": _ALWAYS,
    "grace": "a job that is asked to stop needs a moment to do so",
    "kill_grace": "a process that is asked to end needs a moment to do so",
}


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")


def seconds(value: Any) -> float:
    """600, "600", "90s", "5m", "2h", "1h30m"."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip().lower().replace(" ", "")
    parts = _AMOUNT.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return plain_float(text)
    except ValueError:
        raise ValueError('not a duration; write 600, "90s", "5m" or "2h"') from None


def plain_float(text: str) -> float:
    """Python takes 1_000 and the digits of every script."""
    if "_" in text or not text.isascii():
        raise ValueError
    return float(text)
