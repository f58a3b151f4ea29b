"""Draws docs/lifecycle.md from the table of legal moves: `python docs/draw_lifecycle.py` after changing it."""

from __future__ import annotations

from pathlib import Path

from unstuck.model.lifecycle import EVENT_OF, MOVES, JobState, Move, Shown

PAGE = Path(__file__).with_name("lifecycle.md")

MEANING = {
    JobState.PENDING: "accepted, not released: held on purpose, or waits for other jobs",
    JobState.QUEUED: "claimable from its `available_at` on",
    JobState.RUNNING: "one open attempt under a lease",
    JobState.WAITING: "parked on an event, approval, child or time; no slot, no lease, a deadline",
    JobState.PAUSED: "interrupted, resumable",
    JobState.COMPLETED: "the result is stored",
    JobState.FAILED: "`error_type` says why",
    JobState.TIMEOUT: "stopped inside the grace after its time limit, or fell there with its process",
    JobState.CANCELLED: "by request",
    JobState.DEAD: "dead letter: no handler code ever ran",
}


SHOWN = {
    Shown.SCHEDULED: "its time has not come: `delay`, `at`",
    Shown.RETRYING: "waits for its next try after a failure or a loss",
    Shown.BLOCKED: "behind another job of its target",
    Shown.CANCELLING: "was cancelled, and has not ended yet",
    Shown.STUCK: "ignored its request to stop, and its process may still live; afterwards FAILED / `ExecutionStuck`",
}

#: What begins with R and is easily confused: on what, and what becomes of it.
VERBS = (
    ("release", "PENDING", "goes on; with `--force` it waits for no other job either"),
    ("retry", "QUEUED for later", "the same job, due now"),
    ("retry", "PAUSED, FAILED, TIMEOUT, CANCELLED", "the same job, from its start: finished steps are forgotten"),
    ("resume", "PAUSED, FAILED, TIMEOUT, CANCELLED", "the same job, a new run that keeps its finished steps"),
    ("replay", "ended", "a new job with the same workflow, arguments and policy; the old one stays as it is"),
    ("resolve", "PAUSED, FAILED or TIMEOUT", "COMPLETED with a result that you give; nothing runs"),
    ("recycle", "a process of a worker", "no job: the process is replaced once its jobs have ended"),
)


def draw() -> str:
    """The whole page."""
    lines = [
        "# The life of a job",
        "",
        "Drawn from `src/unstuck/model/lifecycle.py` by `docs/draw_lifecycle.py`; a test compares the two.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> QUEUED: submit",
    ]
    for state, moves in MOVES.items():
        by_goal: dict[JobState, list[Move]] = {}
        for move, goal in moves.items():
            by_goal.setdefault(goal, []).append(move)
        lines += [f"    {state} --> {goal}: {', '.join(verbs)}" for goal, verbs in by_goal.items()]
    lines += [f"    {state} --> [*]" for state in MOVES if state.is_final]
    lines += ["```", "", "| state | kind | meaning | leaves by |", "| --- | --- | --- | --- |"]
    for state, moves in MOVES.items():
        leaves = ", ".join(moves) or "never"
        lines.append(f"| {state} | {'end' if state.is_final else 'live'} | {MEANING[state]} | {leaves} |")
    lines += ["", "Lists also show and accept parts of a state by a name of their own; none of them is stored:", ""]
    lines += ["| shown as | state | meaning |", "| --- | --- | --- |"]
    lines += [f"| {shown} | {shown.state} | {SHOWN[shown]} |" for shown in Shown]
    lines += ["", "## Verbs that begin with R", "", "| verb | of what | what becomes of it |", "| --- | --- | --- |"]
    lines += [f"| `{verb}` | {of} | {then} |" for verb, of, then in VERBS]
    lines += ["", "## Moves", "", "| move | event in the history |", "| --- | --- |"]
    lines += [f"| {move} | `{kind}` |" for move, kind in EVENT_OF.items()]
    lines += [
        "",
        "A request (`requested`: cancel, interrupt, timeout, drain, budget) moves nothing by itself: it is durable",
        "first, then the handler hears of it, and every settlement and recovery reads it in its own transaction.",
        "A resume or a resolve of an ended job opens a new *run*; the old run never changes.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(draw())
