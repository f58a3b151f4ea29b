"""What a worker says while it runs: one line per noteworthy event, for people or for machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unstuck import clock
from unstuck.cli.excerpt import told
from unstuck.cli.job_lines import clock_text, job_line, json_line
from unstuck.cli.output import count, indented, visible
from unstuck.model.guard import EVERY
from unstuck.telemetry import Subscriber

#: How people read the common events; any other is told by its name and facts.
SENTENCES = {
    "acquired": "{worker} took {jobs} at once, the first is {workflow} {job}",
    "beat": "the lease was renewed for {lease:g} s; {held} in hand",
    "cancellation_requested": "Cancellation requested for {job}: {reason}",
    "executor_died": "process {executor} (pid {pid}) died: {status}",
    "executor_ended": "process {executor} (pid {pid}) ended as asked",
    "executor_killed": "process {executor} (pid {pid}) is killed: {reason}",
    "executor_draining": "process {executor} (pid {pid}) takes no more jobs: {reason}",
    "executor_continued": "process {executor} (pid {pid}) was stopped (state T) and is continued (no. {times})",
    "executor_terminated": "process {executor} (pid {pid}) is told to end: {reason}",
    "executor_promoted": "process {executor} (pid {pid}) was kept in reserve and takes jobs now",
    "executor_failed_to_start": "a process could not be started ({status}); the next try in {again_in:g} s",
    "process_poisoned": "pid {pid} cannot go on, and is replaced: {why}; in it, or just ended: {workflow}",
    "children_ended": "{workflow} ended and left processes behind, which were ended by {by}: {processes}",
    "zygote_stopped": "the process that starts the others (pid {pid}) was stopped: {remedy}",
    "zygote_died": "the process that starts the others died ({status}); another one in {again_in:g} s",
    "interrupted": "job {job} ({workflow}) is interrupted wherever it is",
    "import_broken": "{workflow} was interrupted while it imported {module}: pid {pid} is replaced",
    "stuck": "job {job} ({workflow}) did not answer its request for the whole grace: stuck",
    "fenced": "job {job} ended too late: its attempt {token} is no longer this worker's, and its report was refused",
    "request_not_durable": "job {job} is told to stop ({kind}) although the database could not note it: {error}",
    "revoked": "job {job} is stopped here: another worker may own it now",
    "alert_opened": "alert {alert} ({severity}, {rule}): {sentence}",
    "alert_closed": "alert {alert} ({rule}: {subject}) is over",
    "alert_rule_failed": "the alert rule {rule} failed: {error}",
    "recovered": "job {job} of lost worker {worker} recovered: {state}",
    "neighbour_gone": "worker {worker} (pid {pid}) on this host is gone: its jobs run again",
    "store.clock_leapt": "the database's clock leapt by {seconds:+,g} s: our time goes on without it",
    "store_trouble": "the database does not answer ({loop}): {error}",
    "store_is_back": "the database is back",
    "lease_lost": "the lease was lost: everything is stopped",
    "role_failed": "its {role} fails for good: {error}",
    "unfit": "this worker leaves, because its {role} fails for good (exit code {code}): {error}",
    "health_port": "health, readiness and metrics: {url}",
    "begins_anew": "beginning anew with a new lease",
    "worker_left": "worker {worker} has left",
    "delivered": "webhook {webhook} took {kind} ({message})",
    "delivery_failed": "webhook {webhook} did not take {kind} ({message}, try {tries}): {problem}",
    "webhook_disabled": "webhook {webhook} is disabled: {why}",
}
#: Said all the time: only with --verbose, and to machines.
ROUTINE = frozenset(
    {
        *("acquired", "beat", "job_ended", "duty_done", "claim_repeated", "unheld_given_back"),
        *("delivered", "tick_decided"),
    }
)
#: How a worker and its processes come and go as they should.
_LIFE = frozenset(
    {"worker_started", "imported", "shutting_down", "worker_left", "executor_draining", "executor_ended"}
    | {"executor_terminated", "executor_promoted"}
)
LOUD = {
    "died",
    "failed",
    "fenced",
    "stuck",
    "lost",
    "killed",
    "poisoned",
    "trouble",
    "stalled",
    "cannot",
    "revoked",
    "overdue",
    "blacklisted",
    "unfit",
    "leapt",
}


Say = Callable[[str], None]


def json_log(say: Say, mention: Callable[[Callable[[], str]], None]) -> Subscriber:
    """JSON Lines: at, event, and the facts. `mention`: how the routine is said, once there is time for it."""

    def write(name: str, facts: dict[str, object]) -> None:
        at = clock.wall()

        def line() -> str:
            return json_line(at, name, facts)

        if name in ROUTINE:
            mention(line)
        else:
            say(line())

    return write


def human_log(say: Say, *, colour: bool, verbose: bool) -> Subscriber:
    def write(name: str, facts: dict[str, object]) -> None:
        if not verbose and name in ROUTINE:
            return
        at = clock_text(clock.wall())
        text = indented(visible(sentence(name, facts)), len(at) + 2)
        if colour and is_loud(name):
            text = f"\x1b[31m{text}\x1b[0m"
        say(f"{at}  {text}")

    return write


def calm(log: Subscriber) -> Subscriber:
    """The same log of a worker that is replaced with every save: not how it comes and goes, nor what that does to its
    processes and to the jobs that it hands back."""
    is_leaving = False

    def write(name: str, facts: dict[str, object]) -> None:
        nonlocal is_leaving
        is_leaving = is_leaving or name == "shutting_down"
        is_usual = is_leaving and (not is_loud(name) or name.startswith("executor_"))
        if name not in _LIFE and not is_usual:
            log(name, facts)

    return write


def is_loud(name: str) -> bool:
    return not LOUD.isdisjoint(name.split("_"))


def sentence(name: str, facts: dict[str, Any]) -> str:
    try:
        if name in COMPOSED:
            return COMPOSED[name](facts).rstrip()
        return SENTENCES[name].format_map(facts).rstrip()
    except (KeyError, ValueError, TypeError):
        listed = "  ".join(f"{k}={_short(v)}" for k, v in facts.items() if v not in (None, ""))
        return f"{name.replace('_', ' ')}  {listed}".rstrip()


def _started(facts: dict[str, Any]) -> str:
    return f"worker {facts['worker']} started: {facts['slots']} at once in {count(facts['processes'], 'process')}"


def _imported(facts: dict[str, Any]) -> str:
    return (
        f"app imported: {count(facts['workflows'], 'workflow')}; processes start by {facts['mode']} {facts['reason']}"
    )


def _import_failed(facts: dict[str, Any]) -> str:
    return told(f"the app cannot be imported (next try in {facts['again_in']:.0f} s)", facts["error"])


def _left_behind(facts: dict[str, Any]) -> str:
    then = "the process is replaced" if facts["recycled"] else "taken for residents of the process"
    return f"{facts['workflow']} ended and left running in pid {facts['pid']}: {facts['threads']}; {then}"


def _ordered(facts: dict[str, Any]) -> str:
    what = {"recycle": "recycle process {}", "drain": "drain", "stack": "show where attempt {} is", "kill": "end {}"}
    return f"{facts['by']} asks to {what[facts['kind']].format(facts['subject'])}"


def _blacklisted(facts: dict[str, Any]) -> str:
    whose = "every tenant" if facts["tenant"] == EVERY else f"tenant {facts['tenant']}"
    return f"workflow {facts['workflow']} is on the blacklist now for {whose}: {facts['reason']}"


def _shutting_down(facts: dict[str, Any]) -> str:
    return f"shutting down ({facts['phase']}): {count(facts['running'], 'job')} still here"


#: Sentences that need more than their facts put in.
COMPOSED: dict[str, Callable[[dict[str, Any]], str]] = {
    "worker_started": _started,
    "imported": _imported,
    "import_failed": _import_failed,
    "job_ended": lambda facts: job_line(facts, whole=True),
    "left_behind": _left_behind,
    "ordered": _ordered,
    "shutting_down": _shutting_down,
    "blacklisted": _blacklisted,
}


def _short(value: object, limit: int = 300) -> str:
    text = str(value).strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"
