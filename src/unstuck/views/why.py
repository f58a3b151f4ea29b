"""Why a job is not running, as every face shows it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from unstuck.model.lifecycle import JobState
from unstuck.model.why import Actor, Code, Reason, Why
from unstuck.views import View


class ReasonView(View, frozen=True, kw_only=True):
    """One gate, or one detail. `actor` must act; `remedy` is a command to type; `until_at` is when it passes by
    itself, if that is known."""

    code: Code
    sentence: str
    actor: Actor
    since_at: datetime | None
    until_at: datetime | None
    remedy: str | None
    details: Mapping[str, Any]

    @classmethod
    def of(cls, reason: Reason) -> ReasonView:
        return cls(
            code=reason.code,
            sentence=reason.sentence,
            actor=reason.actor,
            since_at=reason.since,
            until_at=reason.until,
            remedy=reason.remedy,
            details=dict(reason.details),
        )


class WhyAnswer(View, frozen=True, kw_only=True):
    """The whole answer: one sentence, then the reasons, the most important first. `is_runnable`: no gate is shut."""

    job: str
    state: JobState
    is_runnable: bool
    verdict: str
    reasons: tuple[ReasonView, ...]
    at: datetime

    @classmethod
    def of(cls, why: Why) -> WhyAnswer:
        return cls(
            job=why.job,
            state=why.state,
            is_runnable=why.is_runnable,
            verdict=why.verdict,
            reasons=tuple(map(ReasonView.of, why.reasons)),
            at=why.at,
        )

    @property
    def codes(self) -> tuple[Code, ...]:
        return tuple(reason.code for reason in self.reasons)

    def __str__(self) -> str:
        return self.verdict
