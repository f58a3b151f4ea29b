"""Draws docs/why.md from the rules of `why`: `python docs/draw_why.py` after changing one."""

from __future__ import annotations

from pathlib import Path

from unstuck.model.lifecycle import JobState
from unstuck.model.reasons import RULES, Rule

PAGE = Path(__file__).with_name("why.md")

HEAD = """\
# Why is this job not running?

Drawn from `src/unstuck/model/reasons.py` by `docs/draw_why.py`; a test compares the two.

`unstuck why JOB`, `job.why()` and `app.why(job)` give the same answer: one verdict, then every reason with its code,
a sentence, since when, until when, who must act, and the command to type (`--json` for programs, `--watch` to be told
when it changes). The reasons are read off the rows that the claim itself looks at, so the two cannot disagree: a job
is *runnable* exactly when a claim that looked at it first, with a slot free, would return it. What a person must do
is said before what passes by itself.
"""

SECTIONS: list[tuple[str, set[JobState]]] = [
    ("Not released", {JobState.PENDING}),
    ("Queued, and shut out by a gate of the claim", {JobState.QUEUED}),
    ("Stopped or parked", {JobState.PAUSED, JobState.WAITING}),
    ("Running", {JobState.RUNNING}),
    ("Ended", {JobState.COMPLETED, JobState.FAILED, JobState.DEAD}),
]


def draw() -> str:
    """The whole page. A rule that several states know stands with the first of them."""
    left = list(RULES.values())
    pieces = [HEAD]
    details = [rule for rule in left if not rule.shuts]
    for title, states in SECTIONS:
        mine = [rule for rule in left if rule.shuts and rule.states & states and not _belongs_later(rule, states)]
        left = [rule for rule in left if rule not in mine]
        pieces.append(_table(title, mine))
    pieces.append(_table("Runnable: details, not gates", details))
    return "\n".join(pieces)


def _belongs_later(rule: Rule, states: set[JobState]) -> bool:
    """What also shuts QUEUED jobs out is a gate first of all."""
    return JobState.QUEUED in rule.states and JobState.QUEUED not in states


def _table(title: str, rules: list[Rule]) -> str:
    lines = [f"## {title}", "", "| code | meaning | who acts | command |", "| --- | --- | --- | --- |"]
    for rule in rules:
        command = f"`{rule.remedy}`" if rule.remedy else "–"
        lines.append(f"| `{rule.code}` | {rule.meaning} | {rule.actor} | {command} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(draw())
