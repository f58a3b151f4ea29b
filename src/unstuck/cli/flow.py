"""How a job's flow is shown: what it waits for, what it has used, its family."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from unstuck.cli import output, shapes
from unstuck.cli.session import Session
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import Child, Spent, StepRecord, WaitKind, WaitRecord
from unstuck.model.why import how_to_decide, how_to_send, what_then
from unstuck.observe.flow import Branch


@dataclass(frozen=True, slots=True)
class FlowDetails:
    """Everything that steps, waits, budgets and children add to one job."""

    steps: list[StepRecord] = field(default_factory=list)
    waits: list[WaitRecord] = field(default_factory=list)
    spent: Spent = field(default_factory=lambda: Spent({}, {}))
    children: list[Child] = field(default_factory=list)
    parent: str | None = None
    parts: int = 0

    @classmethod
    def of(cls, session: Session, record: JobRecord) -> FlowDetails:
        look, job = session.lookup, record.id
        family = look.children(job), look.parent(job)
        return cls(look.steps(job), look.waits(job), look.usage(job), *family, look.count_parts(job))

    def shape(self) -> dict[str, Any]:
        return {
            "steps": [shapes.step(step) for step in self.steps],
            "waits": [shapes.wait(wait) for wait in self.waits],
            "usage": shapes.usage(self.spent),
            "children": [shapes.child(child) for child in self.children],
            "parent": self.parent,
            "partials": self.parts,
        }

    def facts(self, record: JobRecord) -> list[tuple[str, str | None]]:
        return [
            ("steps", self._finished(record)),
            ("partials", f"{self.parts:,} so far: unstuck jobs partials {record.id}" if self.parts else None),
            *((("used" if place == 0 else ""), used) for place, used in enumerate(_used(self.spent))),
            ("parent", self.parent),
            ("children", self._children(record)),
            ("replay of", record.replay_of),
        ]

    def awaited(self, record: JobRecord, now: datetime) -> list[tuple[str, str | None]]:
        """What a parked job waits for, until when, what happens then, and the command that answers."""
        if record.state is not JobState.WAITING:
            return []
        of_run = [wait for wait in self.waits if wait.run == record.run]
        still = next((wait for wait in of_run if wait.answer is None), None)
        if still is None:
            return [("waits for", "nothing more: it is being woken")]
        until = f"{output.rfc3339(still.until_at)} ({output.age(still.until_at, now)})"
        then = "" if still.wait.kind is WaitKind.TIME else f"; then {what_then(still.wait.on_timeout)}"
        command = _answer(still, record)
        return [("waits for", _awaited(still)), ("until", until + then), ("answer", command)]

    def _finished(self, record: JobRecord) -> str | None:
        if not self.steps:
            return None
        last = self.steps[-1]
        return (
            f"{output.count(len(self.steps), 'step')} finished, the last {called(last.name, last.ordinal)}: "
            f"unstuck jobs steps {record.id}"
        )

    def _children(self, record: JobRecord) -> str | None:
        if not self.children:
            return None
        states: dict[str, int] = {}
        for child in self.children:
            states[child.state] = states.get(child.state, 0) + 1
        shown = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        return f"{shown}: unstuck jobs tree {record.id}"


def _awaited(record: WaitRecord) -> str:
    wait = record.wait
    match wait.kind:
        case WaitKind.EVENT:
            return f"event {wait.name}" + (f" on topic {wait.topic}" if wait.topic else "")
        case WaitKind.APPROVAL:
            return f"{', '.join(wait.who) or 'somebody'} to decide: {wait.name}"
        case WaitKind.CHILDREN:
            return f"{output.count(len(wait.children), 'job')} that it spawned"
        case WaitKind.TIME:
            return "its time"


def _answer(record: WaitRecord, job: JobRecord) -> str | None:
    wait = record.wait
    match wait.kind:
        case WaitKind.EVENT:
            return how_to_send(job.id, wait.name, wait.topic, job.tenant)
        case WaitKind.APPROVAL:
            return how_to_decide("approve", job.id, wait.key, job.tenant)
        case _:
            return None


def _used(spent: Spent) -> list[str]:
    """1,020 of 1,000 tokens."""
    units = sorted({*spent.used, *spent.budget})
    return [_amount(spent.used.get(unit, 0.0), spent.budget.get(unit), unit) for unit in units]


def _amount(used: float, most: float | None, unit: str) -> str:
    limit = "" if most is None else f" of {_number(most)}"
    return f"{_number(used)}{limit} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}"


def called(name: str, ordinal: int) -> str:
    """A step or child; a name that was used several times is numbered."""
    return name if ordinal == 1 else f"{name}#{ordinal}"


def draw(top: Branch, meant: str) -> None:
    """The family, a line each; the one that was asked for stands out."""
    _draw(top, meant, "", "")


def _draw(branch: Branch, meant: str, lead: str, below: str) -> None:
    name = output.styled(branch.id, "bold") + "  ◀" if branch.id == meant else branch.id
    error = ""
    if branch.error_type and branch.state is not JobState.COMPLETED:
        error = output.visible(f"  {branch.error_type}: {_line(branch.error_message)}")
    # Padded by hand: what colours a word has a length too.
    state = output.state(branch.state.value) + " " * (9 - len(branch.state.value))
    output.say(f"{lead}{state}  {_titled(branch)}  {name}{error}")
    rows = len(branch.children) + (1 if branch.left_out else 0)
    for place, child in enumerate(branch.children, start=1):
        is_last = place == rows
        _draw(child, meant, below + ("└─ " if is_last else "├─ "), below + ("   " if is_last else "│  "))
    if branch.left_out:
        output.say(f"{below}└─ … {output.count(branch.left_out, 'more job')}; --limit shows more")


def _titled(branch: Branch) -> str:
    if branch.name is None or branch.ordinal is None:
        return branch.workflow
    name = called(branch.name, branch.ordinal)
    return name if branch.name == branch.workflow else f"{name} ({branch.workflow})"


def _line(text: str | None, limit: int = 80) -> str:
    line = (text or "").strip().splitlines()[0] if (text or "").strip() else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"
