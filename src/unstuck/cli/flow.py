"""How a job's flow is shown: what it waits for, what it has used, its family."""

from __future__ import annotations

from datetime import datetime

from unstuck.cli import output
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import WaitKind
from unstuck.model.why import how_to_decide, how_to_send, what_then
from unstuck.views.flow import BranchView, TreeUsageView, UsageView, WaitView
from unstuck.views.jobs import JobWhole


def facts(job: JobWhole) -> list[tuple[str, str | None]]:
    """What steps, budgets and children add to the facts of a job."""
    return [
        ("steps", _finished(job)),
        ("partials", f"{job.partials:,} so far: unstuck jobs partials {job.id}" if job.partials else None),
        *((("used" if place == 0 else ""), used) for place, used in enumerate(_own(job))),
        *((("tree used" if place == 0 else ""), used) for place, used in enumerate(_trees(job))),
        ("made by", job.made_by),
        ("parent", job.parent),
        ("children", _children(job)),
        ("replay of", job.replay_of),
    ]


def awaited(job: JobWhole, now: datetime) -> list[tuple[str, str | None]]:
    """What a parked job waits for, until when, what happens then, and the command that answers."""
    if job.state is not JobState.WAITING:
        return []
    still = next((wait for wait in job.waits if wait.run == job.run and wait.answer is None), None)
    if still is None:
        return [("waits for", "nothing more: it is being woken")]
    until = f"{output.rfc3339(still.until_at)} ({output.age(still.until_at, now)})"
    then = "" if still.kind is WaitKind.TIME else f"; then {what_then(still.on_timeout)}"
    return [("waits for", _awaited(still)), ("until", until + then), ("answer", _answer(still, job))]


def _finished(job: JobWhole) -> str | None:
    if not job.steps:
        return None
    last = job.steps[-1]
    return (
        f"{output.count(len(job.steps), 'step')} finished, the last {called(last.name, last.ordinal)}: "
        f"unstuck jobs steps {job.id}"
    )


def _children(job: JobWhole) -> str | None:
    if not job.children:
        return None
    states: dict[str, int] = {}
    for child in job.children:
        states[child.state] = states.get(child.state, 0) + 1
    shown = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{shown}: unstuck jobs tree {job.id}"


def _awaited(wait: WaitView) -> str:
    match wait.kind:
        case WaitKind.EVENT:
            return f"event {wait.event}" + (f" on topic {wait.topic}" if wait.topic else "")
        case WaitKind.APPROVAL:
            return f"{', '.join(wait.who) or 'somebody'} to decide: {wait.question}"
        case WaitKind.CHILDREN:
            return f"{output.count(len(wait.children), 'job')} that it spawned"
        case WaitKind.TIME:
            return "its time"


def _answer(wait: WaitView, job: JobWhole) -> str | None:
    match wait.kind:
        case WaitKind.EVENT:
            return how_to_send(job.id, wait.event or "", wait.topic, job.tenant)
        case WaitKind.APPROVAL:
            return how_to_decide("approve", job.id, wait.key, job.tenant)
        case _:
            return None


def _used(usage: UsageView | TreeUsageView) -> list[str]:
    """1,020 of 1,000 tokens."""
    units = sorted({*usage.used, *usage.budget})
    return [_amount(usage.used.get(unit, 0.0), usage.budget.get(unit), unit) for unit in units]


def _own(job: JobWhole) -> list[str]:
    """Where the budget is its tree's, its own use has no limit besides."""
    usage = job.usage
    if any(tree.job == job.id for tree in usage.trees):
        return [_amount(amount, None, unit) for unit, amount in sorted(usage.used.items())]
    return _used(usage)


def _trees(job: JobWhole) -> list[str]:
    """1,020 of 1,000 tokens; of another's tree also whose."""
    return [
        used + ("" if tree.job == job.id else f", by job {tree.job} and all below it")
        for tree in job.usage.trees
        for used in _used(tree)
    ]


def _amount(used: float, most: float | None, unit: str) -> str:
    limit = "" if most is None else f" of {_number(most)}"
    return f"{_number(used)}{limit} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}"


def called(name: str, ordinal: int) -> str:
    """A step or child; a name that was used several times is numbered."""
    return name if ordinal == 1 else f"{name}#{ordinal}"


def draw(top: BranchView, meant: str) -> None:
    """The family, a line each; the one that was asked for stands out."""
    _draw(top, meant, "", "")


def _draw(branch: BranchView, meant: str, lead: str, below: str) -> None:
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


def _titled(branch: BranchView) -> str:
    if branch.name is None or branch.ordinal is None:
        return branch.workflow
    name = called(branch.name, branch.ordinal)
    return name if branch.name == branch.workflow else f"{name} ({branch.workflow})"


def _line(text: str | None, limit: int = 80) -> str:
    line = (text or "").strip().splitlines()[0] if (text or "").strip() else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"
