"""Draws docs/why.md from the rules of `why`: `python docs/draw_why.py` after changing one."""

from __future__ import annotations

from pathlib import Path

from unstuck.model.lifecycle import JobState
from unstuck.model.why import RULES, Rule

PAGE = Path(__file__).with_name("why.md")

HEAD = """\
# Why is this job not running?

Drawn from `src/unstuck/model/why/` by `docs/draw_why.py`; a test compares the two.

`unstuck why JOB`, `job.why()` and `app.jobs.why(id)` give the same answer: one verdict, then every reason with its
code, a sentence, since when, until when, who must act, and the command to type (`--json` for programs, `--watch` to
be told when it changes). The reasons are read off the rows that the claim itself looks at, so the two cannot
disagree: a job is *runnable* exactly when a claim that looked at it first, with a slot free, would return it. What a
person must do is said before what passes by itself.
"""

FOOT = """\
## What `unstuck health` says

One look at everything. A check that has nothing to say is silent, except those that everybody wants to see
(`database`, `schema`, `workers`, `queue`). **BAD** makes exit code 10 (6 if the database cannot be reached); *warn*
changes no exit code: it is about single things. Each check is one bounded question to the database; with `--tenant`,
jobs of other tenants are not named.

| check | what is wrong | |
| --- | --- | --- |
| `database` | it cannot be reached, or a question was not answered in time | BAD |
| `locks` | a session of PostgreSQL has held rows or tables of ours for more than 2 s, and others may wait | warn |
| `schema` | older than the code: `unstuck db migrate` | BAD |
| `writes` | nothing can be written: SQLite's write lock is kept, the disk is full (a trigger of others: warn) | BAD |
| `workers` | none is alive (with `--no-workers`: warn) | BAD |
| `ready`, `silent` | no worker takes new jobs; some fell silent | warn |
| `polls` | workers at a distance beat, but their polls for cancels have had no answer for 2 minutes | warn |
| `import`, `processes` | a worker cannot import the app, or cannot start processes | BAD |
| `roles` | a role (`settle`, `claim`, `janitor/timers`, …) fails on a worker; BAD if on all, for 10 s | warn |
| `sweeps` | workers live, but a lost job, a timer or a backstop is overdue by three sweeps | BAD |
| `inbox` | targets and dependants wait to be looked at for three sweeps, or 10 000 of them do | warn |
| `queue` | a due job waits for 5 minutes; or for some polls with a slot free and no gate shut by people: why | warn |
| `targets` | some are blocked: `unstuck targets --blocked` | warn |
| `quarantine` | single things that cannot be written were set aside: `unstuck quarantine` | warn |
| `dead_letters` | jobs never ran, or ran out of tries: `unstuck dead-letters` | warn |
| `notifications` | news that nobody took note of: `unstuck notifications` | warn |
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
    pieces.append(FOOT)
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
