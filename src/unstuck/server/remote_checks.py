"""What a worker at a distance may not: everything that it says is held to be hostile, as an executor's word is.

Each check raises before anything is asked of the store: NotPermitted for what is not its own or not granted;
InvalidInput for what no worker of ours would say. Who is told of it: `refusals.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from unstuck.executor.messages import (
    BadFrame,
    GatherMessage,
    KeepPart,
    LoadJournal,
    Publish,
    Question,
    RecordStep,
    SpawnMessage,
    Spend,
)
from unstuck.intake.signing import SigningDoor
from unstuck.model.errors import InvalidInput, NotPermitted, told
from unstuck.model.job import AttemptRef, WorkflowRecord
from unstuck.model.keys import ID_LENGTH, Within
from unstuck.model.lifecycle import RequestKind
from unstuck.model.offers import NO_KEY, is_claim_of, offered
from unstuck.model.payload import check_name
from unstuck.model.schedules import DeclaredSchedule, ScheduleSpec
from unstuck.operations.table import INCLUDED, READER, WORKER, Caller
from unstuck.store.port import Grant, Report, wire
from unstuck.worker import validate

#: Seconds for which a worker at a distance may be silent, at the least and at the most.
SHORTEST_LEASE = 1.0
LONGEST_LEASE = 600.0
#: Bytes of what it tells of itself.
MOST_INFO = 256 << 10
#: Attempts that it may hold.
MOST_HELD = 100_000
#: Characters of a result or of a step's: the largest that any policy allows.
MOST_RESULT = 8 << 20
#: Characters of a schedule that it declares; and of what a key grants, in the name of an app.
MOST_SCHEDULE = 64 << 10
_SPELLED_OUT = 60
#: How bad something is that a worker tells people.
_SEVERITIES = ("info", "warning", "error", "critical")
#: What a worker itself may ask of its attempts.
_OWN_REQUESTS = (RequestKind.TIMEOUT, RequestKind.DRAIN)

Check = Callable[[Caller, int, dict[str, Any]], None]


def check_role(caller: Caller) -> None:
    if WORKER not in INCLUDED[caller.role]:
        raise NotPermitted(f"running jobs needs the role {WORKER}; {caller.by} is {caller.role}")


def check_reads_platform(caller: Caller) -> None:
    if READER not in INCLUDED[caller.role]:
        raise NotPermitted(f"this needs the role {READER}; the key of {caller.by} is {caller.role}")
    if caller.bound is not None or caller.within is not None:
        raise NotPermitted(f"the key of {caller.by} is for a part of the platform; a worker serves more")


def ident_of(caller: Caller) -> str:
    """What an incarnation of this caller's begins with."""
    if caller.key is None:
        return NO_KEY
    if len(caller.key) != ID_LENGTH:
        raise NotPermitted("a worker at a distance shows an API key")
    return caller.key


def grant_of(caller: Caller) -> Grant:
    return Grant(caller.bound, caller.within or Within())


def check_granted(caller: Caller, *, queue: str | None = None, workflow: str | None = None) -> None:
    caller.check_within(queue=queue, workflow=workflow)


def check_claim(caller: Caller, worker: int, claim: str) -> None:
    if not is_claim_of(worker, claim):
        raise NotPermitted(f"a claim of worker {worker} is called w{worker}- and 32 hexadecimal digits")


def check_refs(caller: Caller, worker: int, refs: Iterable[AttemptRef]) -> None:
    """Each was claimed for this worker. That it is still open, the store's fence says."""
    for ref in refs:
        if not is_claim_of(worker, ref.claim) or not (0 < ref.job < 1 << 62 and 0 < ref.token < 1 << 62):
            raise NotPermitted(f"the attempt of job number {ref.job} is none of worker {worker}")


def check_verifies(caller: Caller, workflows: Sequence[str]) -> None:
    """Before anything is claimed: code that takes signed jobs alone gets none from who cannot verify them."""
    check_count(workflows)
    if workflows and not len(caller.signing()):
        raise InvalidInput(
            f"the code of the worker requires signatures (workflow:{told(workflows[0])}), and this server has no "
            "signing key: set signing_keys on every server that the worker may reach"
        )


def check_count(several: Sequence[object], most: int = wire.MOST_AT_ONCE) -> None:
    if len(several) > most:
        raise InvalidInput(f"there are {len(several):,} in one body; the limit is {most:,}")


def check_numbers(**numbers: object) -> None:
    """Each is one that a database can hold, if it is a number at all."""
    for name, number in numbers.items():
        if isinstance(number, int) and not -(1 << 62) < number < 1 << 62:
            raise InvalidInput(f"{name} is larger than any number of a worker")


def check_reports(caller: Caller, worker: int, reports: Sequence[Report]) -> None:
    check_count(reports)
    check_refs(caller, worker, (report.ref for report in reports))
    for report in reports:
        with _as_executors_word():
            validate.check_outcome(report.outcome, MOST_RESULT)


def check_workflow(caller: Caller, workflow: WorkflowRecord) -> None:
    """Doors and claims go by its row."""
    check_granted(caller, workflow=check_name(workflow.name, "workflow"), queue=check_name(workflow.queue, "queue"))
    with _as_executors_word():
        validate.check_workflow(workflow)
    _check_follows(caller, workflow)


def _check_follows(caller: Caller, workflow: WorkflowRecord) -> None:
    """What follows an end is told its result: only of workflows that the key grants, and of no queue alone."""
    follows = workflow.follows
    if follows is None or caller.within is None:
        return
    if caller.queues is not None or follows.of is None or not set(follows.of) <= (caller.workflows or frozenset()):
        raise NotPermitted(
            f"{told(workflow.name)} follows ends of jobs that the key of {caller.by} does not grant: name its "
            "workflows, all of them granted, and no queues"
        )


def check_schedule(caller: Caller, declared: DeclaredSchedule) -> None:
    """What runs by the clock is its tenant's, and of a workflow and queue that its key grants."""
    check_name(declared.name, "schedule")
    if caller.bound not in (None, check_name(declared.tenant, "tenant")):
        raise NotPermitted(
            f"schedule {declared.name} is of tenant {declared.tenant}; this key is tenant {caller.bound}'s"
        )
    if len(declared.body) > MOST_SCHEDULE:
        raise InvalidInput(f"schedule {declared.name} has more than {MOST_SCHEDULE:,} characters")
    try:
        spec = ScheduleSpec.from_json(declared.body)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InvalidInput(f"schedule {declared.name} cannot be read") from None
    check_granted(caller, queue=spec.queue, workflow=check_name(spec.workflow, "workflow"))


def app_of(caller: Caller, app: str) -> str:
    """By which its schedules are its own. What a key does not grant is not declared by its worker, so the same app
    where all is granted is another one: neither may remove what the other declares."""
    name = check_name(app, "app")
    if caller.bound is None and caller.within is None:
        return name
    granted = (
        ",".join(sorted(caller.workflows or ()))
        + (";" if caller.queues else "")
        + ",".join(sorted(caller.queues or ()))
    )
    if len(granted) > _SPELLED_OUT:
        granted = blake2b(granted.encode(), digest_size=6).hexdigest()
    return check_name(f"{name}@{caller.bound or 'all'}{':' if granted else ''}{granted}", "app")


@contextmanager
def _as_executors_word() -> Iterator[None]:
    try:
        yield
    except BadFrame as problem:
        raise InvalidInput(f"no worker of ours says that: {problem}") from None


# --- by verb ------------------------------------------------------------------------------------------------------


def _check_beat(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    check_lease(facts["lease"])
    if facts["state"] not in ("active", "draining"):
        raise InvalidInput("a worker that beats is active or draining")


def check_lease(seconds: float) -> None:
    if not SHORTEST_LEASE <= seconds <= LONGEST_LEASE:
        raise InvalidInput(f"lease={seconds:g} is not between {SHORTEST_LEASE:g} and {LONGEST_LEASE:g}")


def _check_holdings(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    """What it names and is not its own is ignored by the store: it looks at this worker's rows alone. A claim under
    way may be an offer still."""
    for several in ("held", "settling", "pending_claims"):
        check_count(facts[several], MOST_HELD)
    facts["pending_claims"] = [each for claim in facts["pending_claims"] for each in (claim, offered(claim))]


def _check_ask(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    check_refs(caller, worker, [facts["ref"]])
    if facts["kind"] not in _OWN_REQUESTS:
        raise NotPermitted(f"a worker asks its attempts to end by {' or '.join(_OWN_REQUESTS)} alone")


def _check_outputs(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    check_count(facts["outputs"])
    check_refs(caller, worker, (each.ref for each in facts["outputs"]))
    for each in facts["outputs"]:
        if each.progress is not None:
            with _as_executors_word():
                validate.check_progress(each.progress)


def _check_steps(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    check_count(facts["steps"])
    check_refs(caller, worker, (each.ref for each in facts["steps"]))
    for each in facts["steps"]:
        _check_question(RecordStep(each.name, each.ordinal, each.result, each.duration_ms))


def _check_child(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    child = facts["child"]
    check_refs(caller, worker, [child.ref])
    if caller.bound is not None and child.job.tenant != caller.bound:
        raise NotPermitted(f"a child of tenant {caller.bound}'s job is of that tenant")
    check_granted(caller, queue=child.job.queue, workflow=child.job.workflow)
    _check_question(SpawnMessage(child.name, child.ordinal, child.job, child.on_end))
    door = SigningDoor(caller.signing(), caller.store)
    facts["child"] = replace(child, job=door.made(child.job, "parent"))


def _check_news(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
    """People click on it, with more rights than any worker has, and see it in terminals."""
    link: str = facts["link"]
    if not link.startswith("/") or link.startswith(("//", "/\\")) or not (link.isascii() and link.isprintable()):
        raise InvalidInput(f"news lead to a page of this server, and not to {told(link)}")
    if facts["severity"] not in _SEVERITIES:
        raise InvalidInput(f"{told(facts['severity'])} is none of {', '.join(_SEVERITIES)}")
    facts.update(title=plain(facts["title"]), message=plain(facts["message"]))


def _asking(question: Callable[[dict[str, Any]], Question]) -> Check:
    """Of a verb about one attempt, as the executor's question that it carries."""

    def check(caller: Caller, worker: int, facts: dict[str, Any]) -> None:
        check_refs(caller, worker, [facts["ref"]])
        _check_question(question(facts))

    return check


def _check_question(question: Question) -> None:
    with _as_executors_word():
        validate.check_question(question, MOST_RESULT)


CHECKS: dict[str, Check] = {
    "renew": _check_beat,
    "reconcile": _check_holdings,
    "ask": _check_ask,
    "keep_output": _check_outputs,
    "record_steps": _check_steps,
    "spawn": _check_child,
    "notify": _check_news,
    "gather": _asking(lambda said: GatherMessage(list(said["children"]), said["release_target"])),
    "journal": _asking(lambda said: LoadJournal(said["after"])),
    "spend": _asking(lambda said: Spend(dict(said["amounts"]))),
    "keep_part": _asking(lambda said: KeepPart(said["name"], said["value"])),
    "publish_from": _asking(lambda said: Publish(said["place"], said["given"])),
}


def info_of(caller: Caller, info: Any, server: str) -> dict[str, Any]:
    """What it tells of itself, and what is known of it: by which key it works, from where, by which server."""
    if len(wire.encoded(info)) > MOST_INFO:
        raise InvalidInput(f"what a worker tells of itself is more than {MOST_INFO:,} bytes")
    return {**plain(info), "remote": {"key": caller.by, "address": caller.address, "server": server}}


def plain(said: Any) -> Any:
    """Without what a terminal would obey: people look at it."""
    if isinstance(said, str):
        return "".join(sign if sign.isprintable() or sign == "\n" else "?" for sign in said)
    if isinstance(said, dict):
        return {plain(name): plain(each) for name, each in said.items()}
    return [plain(each) for each in said] if isinstance(said, list | tuple) else said
