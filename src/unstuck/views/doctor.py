"""What is wrong with an installation, and what helps."""

from __future__ import annotations

from typing import Literal

from unstuck.views import View

#: error: something does not work, or what is stored is at risk. warning: it will hurt. note: worth knowing.
#: unchecked: it could not be found out.
Severity = Literal["error", "unchecked", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "unchecked", "warning", "note")


class FindingView(View, frozen=True, kw_only=True):
    """One thing: `what` is the matter with what (`about`), why that matters, and the `remedy`: a command to type, or
    what to do. `fixable`: `--fix` does it."""

    check: str
    severity: Severity
    about: str
    what: str
    why: str
    remedy: str | None
    fixable: bool


class ExaminedView(View, frozen=True, kw_only=True):
    """One check that was made. `ok`: it found nothing but notes."""

    name: str
    looks_at: str
    ok: bool
    took_ms: int


class FixView(View, frozen=True, kw_only=True):
    """What was done about the findings of a check; `ok` False: it was tried in vain, and `did` says why."""

    check: str
    ok: bool
    did: str


class DoctorView(View, frozen=True, kw_only=True):
    """All that was found, the worst first. `ok`: there is no error, and everything could be checked."""

    ok: bool
    findings: tuple[FindingView, ...]
    examined: tuple[ExaminedView, ...]
    fixed: tuple[FixView, ...]

    @classmethod
    def of(
        cls,
        findings: tuple[FindingView, ...],
        examined: tuple[ExaminedView, ...],
        fixed: tuple[FixView, ...] = (),
    ) -> DoctorView:
        return cls(
            ok=not any(finding.severity in ("error", "unchecked") for finding in findings),
            findings=tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))),
            examined=examined,
            fixed=fixed,
        )

    def number(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)
