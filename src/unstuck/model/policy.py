"""What a workflow promises about time, retries and loss: the policy stored with every job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, Literal

from unstuck.model.errors import InvalidPolicy
from unstuck.model.times import seconds
from unstuck.records import dataclass

OnLost = Literal["retry", "fail", "pause"]
OnDrain = Literal["requeue", "pause", "expire"]
OnFailure = Literal["block", "continue"]
OnBlacklist = Literal["fail", "hold"]
DeadLetters = Literal["never", "exhausted"]
BudgetScope = Literal["job", "tree"]
Isolation = Literal["shared", "process"]
Timeout = float | Literal["unlimited"]

LONGEST = 10 * 365 * 24 * 3600.0
#: Up to here a float counts every single one.
MOST_SPENT = float(1 << 53)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential, with jitter upwards and a cap; the jitter is below the factor, so gaps always grow."""

    base: float
    factor: float
    cap: float

    def delay(self, nth: int, jitter: float) -> float:
        """Seconds before the retry that follows the nth failure (1, 2, …); jitter in [0, 1)."""
        plain = self.base * self.factor ** min(nth - 1, 60)
        return min(plain, self.cap) * (1 + 0.25 * jitter)


#: The first loss says nothing about the job, so it runs again at once; later ones are spaced out.
LOSS_BACKOFF = Backoff(base=1.0, factor=2.0, cap=60.0)


@dataclass(frozen=True, slots=True)
class Policy:
    timeout: Timeout = 600.0
    grace: float = 10.0
    retries: int = 3
    max_lost: int = 3
    suspect_runs: int = 3
    #: How often a handler that began may begin again in all, whatever came between; None: as the three above say.
    max_retries: int | None = None
    on_lost: OnLost = "retry"
    on_drain_timeout: OnDrain = "requeue"
    on_failure: OnFailure = "block"
    on_blacklist: OnBlacklist = "fail"
    #: Whether a run that ends FAILED or TIMEOUT for good is set before people as a dead letter.
    dead_letter: DeadLetters = "never"
    retry_on_timeout: bool = False
    expires_after: float | None = None
    isolation: Isolation = "shared"
    backoff_base: float = 1.0
    backoff_factor: float = 2.0
    backoff_cap: float = 300.0
    max_result: int = 1 << 20
    wait_timeout: float = 300.0
    approval_timeout: float = 600.0
    gather_timeout: float = 3600.0
    #: (unit, most), sorted; given as a mapping. A unit that is not here may be spent without limit.
    budget: tuple[tuple[str, float], ...] = ()
    #: Whose use counts against it: the job's own, or also that of all jobs below it.
    budget_scope: BudgetScope = "job"

    @property
    def backoff(self) -> Backoff:
        return Backoff(self.backoff_base, self.backoff_factor, self.backoff_cap)

    def with_(self, owner: str, changes: dict[str, Any], also: Iterable[str] = ()) -> Policy:
        """The same with these changes, or an error that names every problem; `also`: what else its caller knows."""
        known = {f.name for f in fields(self)}
        if unknown := sorted(set(changes) - known):
            raise InvalidPolicy(owner, [_no_option(name, sorted({*known, *also})) for name in unknown])
        if "budget" in changes:
            changes = {**changes, "budget": _budget(owner, changes["budget"])}
        policy = replace(self, **reruns(changes))
        if problems := policy.problems():
            raise InvalidPolicy(owner, problems)
        return policy

    def problems(self, max_timeout: float | None = None) -> list[str]:
        found = [p for name, low, high in RANGES if (p := _out_of_range(name, getattr(self, name), low, high))]
        if self.timeout != "unlimited":
            if p := _out_of_range("timeout", self.timeout, 0.001, LONGEST):
                found.append(p + ', or "unlimited"')
            elif max_timeout is not None and self.timeout > max_timeout:
                found.append(
                    f"timeout={self.timeout:g} is above max_timeout={max_timeout:g}: raise that of the worker, "
                    'or write timeout="unlimited"'
                )
        if self.expires_after is not None and (
            p := _out_of_range("expires_after", self.expires_after, 0.001, LONGEST)
        ):
            found.append(p)
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                found.append(f"{name}={getattr(self, name)!r} is not one of {', '.join(allowed)}")
        if self.max_retries is not None and (p := _out_of_range("max_retries", self.max_retries, 0, 1_000_000)):
            found.append(p)
        if not isinstance(self.retry_on_timeout, bool):
            found.append(f"retry_on_timeout={self.retry_on_timeout!r} is not true or false")
        return found

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """Tolerates options of a newer version, so that old workers can read what new ones wrote."""
        known = {f.name for f in fields(cls)}
        options = {k: v for k, v in json.loads(text).items() if k in known}
        options["budget"] = tuple((unit, most) for unit, most in options.get("budget", ()))
        return cls(**options)


#: One for all: to make it takes longer than to use it.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def said(owner: str, *layers: Mapping[str, Any]) -> str:
    """What decorator and caller say, the later over the earlier, in one text: the same for the same words."""
    if not any(layers):
        return "{}"
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= reruns(dict(layer))
    if "budget" in merged:
        merged["budget"] = dict(_budget(owner, merged["budget"]))
    return _encode(merged)


def filled(owner: str, base: Policy, said: str, max_timeout: float | None = None) -> Policy:
    """What was said over what the workflow's row has."""
    policy = base.with_(owner, json.loads(said))
    if problems := policy.problems(max_timeout):
        raise InvalidPolicy(owner, problems)
    return policy


def reruns(changes: dict[str, Any]) -> dict[str, Any]:
    """`max_retries` alone is the budget of failures and of losses too. Changes that give one of these, and no
    `max_retries`, are not bound by an earlier `max_retries`."""
    if changes.get("max_retries") is not None:
        return {"retries": changes["max_retries"], "max_lost": changes["max_retries"], **changes}
    return {"max_retries": None, **changes} if changes.keys() & {"retries", "max_lost"} else changes


RANGES: list[tuple[str, float, float]] = [
    ("grace", 0.05, 86400.0),
    ("retries", 0, 1_000_000),
    ("max_lost", 0, 1_000_000),
    ("suspect_runs", 0, 1_000),
    ("backoff_base", 0.0, LONGEST),
    ("backoff_factor", 1.0, 1000.0),
    ("backoff_cap", 0.0, LONGEST),
    ("max_result", 2, 8 << 20),
    ("wait_timeout", 0.001, LONGEST),
    ("approval_timeout", 0.001, LONGEST),
    ("gather_timeout", 0.001, LONGEST),
]
CHOICES: dict[str, tuple[str, ...]] = {
    "on_lost": ("retry", "fail", "pause"),
    "on_drain_timeout": ("requeue", "pause", "expire"),
    "isolation": ("shared", "process"),
    "on_failure": ("block", "continue"),
    "on_blacklist": ("fail", "hold"),
    "dead_letter": ("never", "exhausted"),
    "budget_scope": ("job", "tree"),
}
_WHOLE = {"retries", "max_lost", "max_retries", "suspect_runs", "max_result"}


def _budget(owner: str, given: Any) -> tuple[tuple[str, float], ...]:
    """{"tokens": 100_000}, or the pairs of it; None and {} limit nothing."""
    pairs = _pairs(given)
    if pairs is None:
        raise InvalidPolicy(owner, [f'budget={given!r} is not {{unit: most}}, such as {{"tokens": 5000}}'])
    problems = []
    for unit, most in pairs:
        if not isinstance(unit, str) or not unit.isidentifier():
            problems.append(f"budget: {unit!r} is not the name of a unit, such as tokens")
        if isinstance(most, bool) or not isinstance(most, int | float) or not 0 <= most <= MOST_SPENT:
            problems.append(f"budget: {most!r} {unit} is not a number between 0 and {MOST_SPENT:g}")
    if problems:
        raise InvalidPolicy(owner, problems)
    return tuple(sorted((unit, float(most)) for unit, most in pairs))


def _pairs(given: Any) -> list[tuple[Any, Any]] | None:
    """None if it is neither a mapping nor pairs; a text of two letters is no pair."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.items())
    if not isinstance(given, list | tuple) or any(not isinstance(p, list | tuple) or len(p) != 2 for p in given):
        return None
    return [(unit, most) for unit, most in given]


#: Options of other systems that people write by habit, and what they mean here.
_MEANT = {
    "backoff": "backoff_base, backoff_factor and backoff_cap say how long to wait before a retry",
    "cron": 'write schedule="0 3 * * *", or declare it: app.schedules.declare(…)',
    "max_attempts": "retries counts what comes after the first: max_attempts=4 is retries=3",
}


def _no_option(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # imported only where a mistake was made

    near = get_close_matches(name, known, 1)
    hint = _MEANT.get(name) or (f"did you mean {near[0]}?" if near else "")
    return f"there is no option {name}; {f'{hint}; ' if hint else ''}known: {', '.join(known)}"


def _unit(name: str) -> str:
    return "number" if name == "backoff_factor" else "number of seconds"


def _meant(name: str, value: Any) -> str:
    """Durations with a unit are for settings and flags; here they are numbers."""
    try:
        return f": write {seconds(value):g}" if isinstance(value, str) and name not in _WHOLE else ""
    except ValueError:
        return ""


def _out_of_range(name: str, value: Any, low: float, high: float) -> str | None:
    wanted = int if name in _WHOLE else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        return f"{name}={value!r} is not a {'whole number' if name in _WHOLE else _unit(name)}{_meant(name, value)}"
    if not low <= value <= high:
        return f"{name}={value:g} is not between {low:g} and {high:g}"
    return None
