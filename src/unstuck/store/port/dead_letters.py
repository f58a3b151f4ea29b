"""The port of dead letters: what did not run, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewLetter:
    """About one run of a job. `reason`: a code; `message`: the sentence; `signature`: the envelope as it stands."""

    job: int
    run: int
    tenant: str
    queue: str
    workflow: str
    reason: str
    message: str
    signature: str | None
