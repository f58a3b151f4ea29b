"""What a job has done so far, as a program sees it: finished steps and parts of its result."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from unstuck.intake.arguments import decode_result
from unstuck.model.parts import Part
from unstuck.model.waits import StepRecord


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a job has finished. `result` is what every later attempt gets for it; `attempt` made it."""

    name: str
    ordinal: int
    result: Any
    run: int
    attempt: int
    at: datetime
    duration_ms: int

    @classmethod
    def of(cls, record: StepRecord) -> Step:
        result = decode_result(record.result)
        return cls(record.name, record.ordinal, result, record.run, record.token, record.at, record.duration_ms)


@dataclass(frozen=True, slots=True)
class Partial:
    """A part of a job's result, given before its end. `number` grows with each; `attempt` gave it."""

    name: str
    value: Any
    number: int
    run: int
    attempt: int
    at: datetime

    @classmethod
    def of(cls, part: Part) -> Partial:
        return cls(part.name, decode_result(part.value), part.number, part.run, part.token, part.at)
