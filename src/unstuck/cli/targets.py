"""unstuck targets …: where jobs run one at a time; whose turn it is, and what blocks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.spelling import about
from unstuck.operations import targets
from unstuck.views.gates import TargetView, TargetWhole
from unstuck.views.jobs import JobView

app = options.group("Targets: their jobs run one at a time. Whose turn it is, and what blocks them.", default="list")

Name = Annotated[str, Argument(metavar="NAME", help="the target's name")]


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
        page = targets.list_(session.caller, blocked=blocked, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_page(page)
    else:
        output.table(
            ["TARGET", "STATE", "WAITING", "JOB", "INFO"],
            [(t.name, _state(t), _waiting(t), t.head, _info(t, now)) for t in page],
            empty="no target is blocked" if blocked else 'no targets: a workflow has one with target="{argument}"',
        )
        output.tell_next(page)


def _state(target: TargetView) -> str:
    """What is free needs nobody's eye."""
    return "free" if target.state == "FREE" else target.state


def _waiting(target: TargetView) -> str:
    return f"{target.waiting:,}" + ("+" if target.waiting_at_least else "")


def _info(target: TargetView, now: datetime) -> str:
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
        found = targets.get(session.caller, target)
        now = session.now()
    if common.json:
        output.emit_view(found)
        return
    output.say(f"target {output.styled(found.name, 'bold')}  {output.state(_state(found))}")
    for label, text in _facts(found, now):
        output.say(f"  {label:<8} {output.visible(text)}")
    _print_line(found, now)


def _facts(target: TargetWhole, now: datetime) -> list[tuple[str, str]]:
    facts = []
    if target.blocked_by is not None:
        facts.append(
            ("blocked", f"by job {target.blocked_by}{_told(target.turn)}, {output.age(target.blocked_at, now)}")
        )
        facts += [
            ("do", f"unstuck jobs resume {target.blocked_by}    it runs next, before the others"),
            ("or", f"unstuck jobs resolve {target.blocked_by} RESULT    you supply its result"),
            ("or", f"unstuck jobs skip {target.blocked_by}    it stays as it is, the others go on"),
        ]
    elif target.head is not None:
        facts.append(("turn", f"job {target.head}{_told(target.turn)}"))
    else:
        facts.append(("turn", "nobody's"))
    if target.pause is not None:
        reason = f": {target.pause.reason}" if target.pause.reason else ""
        facts.append(("paused", f"{gates.pause_text([target.pause], now)}{reason}"))
    if target.held:
        facts.append(("held", "an old body may still live there: nothing starts until it is known to be gone"))
    return [*facts, ("waiting", _waiting(target))]


def _told(job: JobView | None) -> str:
    if job is None:
        return ""
    error = f": {job.error_type}: {job.error_message}" if job.error_type else ""
    return f" ({job.workflow}, {job.state}{error})"


def _print_line(target: TargetWhole, now: datetime) -> None:
    line = target.line
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
def pause(target: Name, *, flags: gates.PauseFlags, by: options.By = None, common: options.Common) -> None:
    """Start nothing new on a target. What runs there goes on."""
    gates.pause(targets.pause, target, flags, Where(common), by)


@app.command()
def unpause(target: Name, by: options.By = None, *, common: options.Common) -> None:
    """Lift the pause of a target."""
    gates.unpause(targets.unpause, target, Where(common), by)
