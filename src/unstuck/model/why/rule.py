"""A rule of `why`: what it looks at (WhyView), what it finds (Finding), and what becomes of that (Reason, Why)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import Facts
from unstuck.model.why.remedies import of_tenant
from unstuck.model.why.words import lasting
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One gate, or one detail. `remedy` is a command to type; `until` when it passes by itself, if that is known."""

    code: Code
    sentence: str
    actor: Actor
    since: datetime | None = None
    until: datetime | None = None
    remedy: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Why:
    """The whole answer: one sentence, then the reasons, the most important first."""

    job: str
    state: JobState
    is_runnable: bool
    verdict: str
    reasons: tuple[Reason, ...]
    at: datetime

    @property
    def codes(self) -> tuple[Code, ...]:
        return tuple(reason.code for reason in self.reasons)

    def __str__(self) -> str:
        return self.verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found; whatever it leaves out, the rule's own line in the table supplies."""

    sentence: str
    since: datetime | None = None
    until: datetime | None = None
    remedy: str | None = None
    actor: Actor | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    #: It is worth saying, and yet a claim would take the job.
    is_detail: bool = False


@dataclass(frozen=True, slots=True)
class WhyView:
    """What every rule looks at."""

    facts: Facts
    now: datetime
    times: Times

    @property
    def job(self) -> JobRecord:
        return self.facts.job

    @property
    def has_lease(self) -> bool:
        """Whether the worker that runs it is known to live."""
        lease = self.job.lease_until
        return lease is not None and lease > self.now

    def command(self, text: str) -> str:
        """A command about this job's tenant."""
        return f"{text} {of_tenant(self.job.tenant)}".rstrip()

    def ago(self, at: datetime | None) -> str:
        return "" if at is None else f" {lasting(self.now - at)} ago"

    def soon(self, at: datetime) -> str:
        return f"in {lasting(at - self.now)}" if at > self.now else "now"


Find = Callable[[WhyView], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A gate (or, if it does not shut, a detail) of jobs in these states."""

    code: Code
    meaning: str
    actor: Actor
    remedy: str | None
    states: frozenset[JobState]
    shuts: bool
    find: Find

    def reasons(self, view: WhyView) -> Iterator[tuple[Reason, bool]]:
        """What it found, and whether that shuts the job out."""
        for said in self.find(view):
            remedy = said.remedy or (self.remedy and self._of_job(view, self.remedy))
            actor = said.actor or self.actor
            reason = Reason(self.code, said.sentence, actor, said.since, said.until, remedy, said.details)
            yield reason, self.shuts and not said.is_detail

    @staticmethod
    def _of_job(view: WhyView, remedy: str) -> str:
        """Workers and health are nobody's own: a tenant is named only where a job is."""
        return view.command(remedy.replace("JOB", view.job.id)) if "JOB" in remedy else remedy


def rule(
    code: Code,
    meaning: str,
    actor: Actor,
    remedy: str | None = None,
    *,
    of: Iterable[JobState] = (JobState.QUEUED,),
    shuts: bool = True,
) -> Callable[[Find], Rule]:
    """Makes a rule of a function; it is asked once `verdict.py` lists it."""
    return lambda find: Rule(code, meaning, actor, remedy, frozenset(of), shuts, find)
