"""Roles: what a worker does beside running jobs, which of it fails, and what follows from that. Pure.

Theory of operation. A role is a loop ("settle"), a side task of one ("claim/inbox") or a duty of the janitor
("janitor/timers"). A role that fails is shown with the beat. A worker that cannot settle claims nothing new and is
not ready: it could not finish what it took. An outage of the store is no role's fault, and the lease decides what it
means. What else fails for longer than a lease, a schema that changed under us or a mistake of ours, fails for good:
it is told as news, and if the worker is none without that role it leaves, in order, for another to be started in its
place. A duty of the janitor and a side task do not make a worker leave: every other worker does them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.records import dataclass

#: The exit code of a worker that left because a role of its own failed for good.
UNFIT = 69
#: Without these a worker is none.
VITAL = frozenset({"beat", "settle", "claim", "flow_calls", "requests"})
SETTLE = "settle"
#: What passes by itself need not be shown.
_FAILURES, _MOMENT = 2, 2.0
_MOST = 20
_LONGEST = 300

Troubles = Mapping[str, Trouble]


@dataclass(frozen=True, slots=True)
class WorkerRole:
    name: str
    trouble: Trouble

    @property
    def error(self) -> str:
        """One line of bounded length."""
        error = self.trouble.error
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

    def sentence(self, now: float) -> str:
        return f"its {self.name} has failed for {now - self.trouble.since:.0f} s: {self.error}"


def failing(troubles: Troubles, now: float) -> list[WorkerRole]:
    """Those worth showing, the longest first."""
    found = [
        WorkerRole(name, trouble)
        for name, trouble in troubles.items()
        if trouble.failures >= _FAILURES and now - trouble.since >= _MOMENT
    ]
    return sorted(found, key=lambda role: (role.trouble.since, role.name))[:_MOST]


def describe_roles(troubles: Troubles, now: float) -> list[dict[str, Any]]:
    return [
        {
            "name": role.name,
            "failing_for": round(now - role.trouble.since, 1),
            "failures": role.trouble.failures,
            "error": role.error,
        }
        for role in failing(troubles, now)
    ]


def cannot_settle(troubles: Troubles, renewed_at: float, times: Times, now: float) -> bool:
    """Not since a whole store call, although the store took a beat that was sent meanwhile."""
    trouble = troubles.get(SETTLE)
    if trouble is None or trouble.failures < _FAILURES:
        return False
    return renewed_at > trouble.since and now - trouble.since >= times.store_call + times.slack


def is_hopeless(troubles: Troubles, times: Times, now: float) -> bool:
    """Whether a worker that leaves need not wait for its settles: they failed for a whole lease."""
    trouble = troubles.get(SETTLE)
    return trouble is not None and now - trouble.since >= times.lease


def lasting(troubles: Troubles, times: Times, now: float) -> list[WorkerRole]:
    """Those that fail for good."""
    return [
        WorkerRole(name, trouble)
        for name, trouble in troubles.items()
        if trouble.lasting_since is not None and now - trouble.lasting_since >= times.lease
    ]


def unfit(troubles: Troubles, times: Times, now: float) -> WorkerRole | None:
    """Why this worker should leave, if it should."""
    return next((role for role in lasting(troubles, times, now) if role.name in VITAL), None)
