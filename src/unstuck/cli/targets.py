"""unstuck targets …: where jobs run one at a time; whose turn it is, and what blocks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import gates, options, output, shapes
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import about, given
from unstuck.store.port import TargetRecord

app = options.group("Targets: their jobs run one at a time. Whose turn it is, and what blocks them.", default="list")

Name = Annotated[str, Argument(metavar="NAME", help="the target's name")]
IN_LINE = 20


@app.command("list")
def list_(
    blocked: Annotated[
        bool, option("--blocked", "-b", help="only those that a job blocks, the longest first")
    ] = False,
    limit: Annotated[int, options.rows(100_000)] = 50,
    after: Annotated[str, option("--after", metavar="NAME", help="go on where the last page ended")] = "",
    *,
    common: options.Common,
) -> None:
    """The targets, and how each stands."""
    with opened(common) as session:
        found = session.lookup.targets(blocked=blocked, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_each(map(shapes.target, found))
    else:
        output.table(
            ["TARGET", "STATE", "WAITING", "JOB", "INFO"],
            [(t.name, state_of(t), waiting(t), t.head, _info(t, now)) for t in found],
            empty="no target is blocked" if blocked else 'no targets: a workflow has one with target="{argument}"',
        )
    if len(found) == limit:
        output.note(f"there may be more: {given('--after', found[-1].name)}")


def state_of(target: TargetRecord) -> str:
    """One word: what matters most about it."""
    if target.blocked_by is not None:
        return "BLOCKED"
    if target.held:
        return "HELD"
    if target.pause is not None and target.head_state is not JobState.RUNNING:
        return "PAUSED"
    return target.head_state.value if target.head_state else "free"


def waiting(target: TargetRecord) -> str:
    from unstuck.store.order.targets import CEILING

    return f"{target.waiting:,}" + ("+" if target.waiting >= CEILING else "")


def _info(target: TargetRecord, now: datetime) -> str:
    parts = []
    if target.blocked_by is not None:
        state = f"{target.head_state} " if target.head_state else ""
        parts.append(f"{state}{output.age(target.blocked_at, now)}: {about('unstuck targets show', target.name)}")
    if target.held:
        parts.append("an old body may still live there")
    if target.pause is not None:
        parts.append(f"paused {gates.pause_text([target.pause], now)}")
    return "; ".join(parts)


@app.command()
def show(target: Name, *, common: options.Common) -> None:
    """One target. Whose turn it is, who blocks it since when, who waits, its pause."""
    with opened(common) as session:
        found = session.lookup.target(target)
        line = session.lookup.line(found.name, IN_LINE)
        # Its head may have gone, and even been forgotten, since the look above.
        head = session.store.get(session.tenant, found.head) if found.head else None
        now = session.now()
    if common.json:
        told = {"turn": shapes.job(head, now) if head else None, "line": [shapes.job(job, now) for job in line]}
        output.emit_json(shapes.target(found) | told)
        return
    output.say(f"target {output.styled(found.name, 'bold')}  {output.state(state_of(found))}")
    for label, text in _facts(found, head, now):
        output.say(f"  {label:<8} {output.visible(text)}")
    _print_line(found, line, now)


def _facts(target: TargetRecord, head: JobRecord | None, now: datetime) -> list[tuple[str, str]]:
    facts = []
    if target.blocked_by is not None:
        facts.append(("blocked", f"by job {target.blocked_by}{_told(head)}, {output.age(target.blocked_at, now)}"))
        facts += [
            ("do", f"unstuck jobs resume {target.blocked_by}    it runs next, before the others"),
            ("or", f"unstuck jobs resolve {target.blocked_by} RESULT    you supply its result"),
            ("or", f"unstuck jobs skip {target.blocked_by}    it stays as it is, the others go on"),
        ]
    elif target.head is not None:
        facts.append(("turn", f"job {target.head}{_told(head)}"))
    else:
        facts.append(("turn", "nobody's"))
    if target.pause is not None:
        reason = f": {target.pause.reason}" if target.pause.reason else ""
        facts.append(("paused", f"{gates.pause_text([target.pause], now)}{reason}"))
    if target.held:
        facts.append(("held", "an old body may still live there: nothing starts until it is known to be gone"))
    return [*facts, ("waiting", waiting(target))]


def _told(job: JobRecord | None) -> str:
    if job is None:
        return ""
    error = f": {job.error_type}: {job.error_message}" if job.error_type else ""
    return f" ({job.workflow}, {job.state}{error})"


def _print_line(target: TargetRecord, line: list[JobRecord], now: datetime) -> None:
    if not line:
        return
    more = f" (the first {len(line)})" if target.waiting > len(line) else ""
    output.say(f"\nLine{more}")
    rows = [
        (place, job.id, job.workflow, job.priority, output.age(job.created_at, now))
        for place, job in enumerate(line, 1)
    ]
    output.table(["#", "JOB", "WORKFLOW", "PRIORITY", "CREATED"], rows, empty="")


@app.command()
def pause(
    target: Name,
    *,
    flags: gates.PauseFlags,
    common: options.Common,
) -> None:
    """Start nothing new on a target. What runs there goes on."""
    gates.pause("target", target, flags, Where(common))


@app.command()
def unpause(target: Name, *, common: options.Common) -> None:
    """Lift the pause of a target."""
    gates.unpause("target", target, Where(common))
