"""How a checked call becomes a job, for every face: known by its workers' row, or by the code of an app.

Alone or many together: each is checked by itself, what must be read is read once for all, and each has its own
outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from unstuck.intake.schema import pack
from unstuck.intake.signing import SigningDoor, tell_refused
from unstuck.intake.submit import Options, Submitter
from unstuck.model.errors import (
    InvalidInput,
    NotStorable,
    OutcomeUnknown,
    SignatureRefused,
    StoreError,
    UnknownWorkflowName,
    quoted,
)
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.payload import MAX_PAYLOAD, decode
from unstuck.model.policy import Policy
from unstuck.model.redaction import NOTHING, Redactions
from unstuck.model.signing import Envelope, envelope
from unstuck.operations.kinds import Duration, seconds_or_none
from unstuck.operations.table import Caller, Role
from unstuck.records import dataclass
from unstuck.store.port import Submitted, asking_from
from unstuck.tracing import TracedSubmit
from unstuck.views.jobs import NewJobView

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AskedJob:
    """A job that somebody who may asks for, checked as far as that needs no workflow's row."""

    caller: Caller
    workflow: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Options
    #: The trace that it is asked for in, as `model.trace` writes it.
    trace: str | None = None
    #: Of one that came signed: the job itself, its signature verified.
    made: NewJob | None = None

    @classmethod
    def of(
        cls,
        caller: Caller,
        workflow: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Options,
        before: Collection[str] = (),
    ) -> AskedJob:
        """Those that it comes `after` may be named by the beginnings of their ids. `before`: the ids of jobs that
        will be stored before it, if they can be."""
        if options.after:
            coming = {job for job in options.after if job in before and _may_name(caller, job)}
            after = tuple(job if job in coming else caller.lookup.job(job).id for job in options.after)
            options = replace(options, after=after)
        return cls(caller, workflow, args, kwargs, options)


def _may_name(caller: Caller, job: str) -> bool:
    """Whether the id of a job that is to be stored is not that of one that a key may not touch: the store refuses
    other tenants' jobs, and knows nothing of keys."""
    return caller.within is None or caller.store.get(caller.one, job) is None


def asked(
    caller: Caller,
    workflow: str,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    delay: Duration | None = None,
    policy: Mapping[str, Any] | None = None,
    before: Collection[str] = (),
    payload: str | None = None,
    signature: Any = None,
    **said: Any,
) -> AskedJob:
    """`said`: the other options of a job. With a `signature` the arguments come as the text that is signed."""
    if signature is not None or payload is not None:
        return _asked_signed(caller, workflow, payload, signature, before, args or kwargs, policy, delay, said)
    chosen = _options(policy=policy or {}, delay=seconds_or_none(delay, "delay"), **said)
    return AskedJob.of(caller, workflow, args, kwargs or {}, chosen, before)


def _asked_signed(
    caller: Caller,
    workflow: str,
    payload: str | None,
    signature: Any,
    before: Collection[str],
    arguments: Any,
    policy: Any,
    delay: Any,
    said: dict[str, Any],
) -> AskedJob:
    """What is signed is said once: policy and time stand in the signature, the arguments in the text."""
    if signature is None or payload is None:
        raise InvalidInput("payload and signature go together: the text of the arguments, and what signs it")
    twice = {"args or kwargs": arguments, "policy": policy, "delay": delay is not None, "at": said.pop("at", None)}
    if strays := [name for name, value in twice.items() if value]:
        raise InvalidInput(f"{strays[0]} cannot be given with a signature, which says it: see payload, and {_SAYS}")
    if said.get("id") is None:
        raise InvalidInput("a signed job needs the id that was signed: id, a UUID of version 4 or 7")
    told = envelope(signature)
    at = None if told.not_before is None else EPOCH + timedelta(microseconds=told.not_before)
    chosen = _options(policy=_signed_policy(told), delay=None, at=at, **said)
    args, kwargs = _call_of(payload)
    asked = AskedJob.of(caller, workflow, args, kwargs, chosen, before)
    known = registered(caller, workflow)
    pack(known.name, known.schema, args, kwargs)  # what does not fit is refused; what is stored is the text itself
    job = _routed(asked, known, payload)
    with asking_from(caller.key, caller.address):
        return replace(asked, made=_verified(asked, job, told))


_SAYS = "not_before and policy of the signature"


def _signed_policy(told: Envelope) -> dict[str, Any]:
    """Read as strictly as a payload: whoever reads it later must not read something else."""
    policy = decode(told.policy, "the signed policy") if told.policy else {}
    if not isinstance(policy, dict):
        raise InvalidInput(f"signature: policy={quoted(told.policy)} is not the text of an object of options")
    Policy().with_("the signed policy", policy)
    return policy


def _call_of(payload: Any) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that a signed text holds."""
    if not isinstance(payload, str):
        raise InvalidInput(f"payload={quoted(payload)} is not text")
    if len(payload) > MAX_PAYLOAD or len(payload.encode("utf-8", "replace")) > MAX_PAYLOAD:
        raise NotStorable("the payload", f"it is more than {MAX_PAYLOAD:,} bytes")
    call = decode(payload, "the payload")
    is_call = isinstance(call, dict) and call.keys() <= {"args", "kwargs"}
    if not is_call or not isinstance(call.get("args", []), list) or not isinstance(call.get("kwargs", {}), dict):
        raise InvalidInput('the payload of a signed job is the text of {"args": [...], "kwargs": {...}}')
    return call.get("args", []), call.get("kwargs", {})


def _verified(asked: AskedJob, job: NewJob, told: Envelope) -> NewJob:
    caller = asked.caller
    try:
        return SigningDoor(caller.signing(), caller.store).accepted(job, told)
    except SignatureRefused as error:
        tell_refused(caller.store, error, caller.by)
        raise


def _options(*, policy: Mapping[str, Any], **said: Any) -> Options:
    if not isinstance(policy, Mapping):
        raise InvalidInput(f"policy={quoted(policy)} is not a mapping of options")
    if strays := sorted(set(policy) & set(said)):
        raise InvalidInput(f"{strays[0]} is an option of the job, not of its policy")
    return Options().with_(**said, **policy)


#: Rows of workflows that were read, by tenant and name.
ReadRows = dict[tuple[str, str], WorkflowRecord | None]


def registered(caller: Caller, workflow: str, read: ReadRows | None = None) -> WorkflowRecord:
    """`read`: the rows of workflows that were read already, for whoever."""
    caller.check_within(workflow=workflow)
    read = {} if read is None else read
    place = (caller.one, workflow)
    if place not in read:
        read[place] = caller.store.workflow(workflow, caller.one)
    if (row := read[place]) is not None:
        return row
    known = {known.name for known in caller.store.workflows(caller.one)}
    raise UnknownWorkflowName(workflow, known if caller.workflows is None else known & caller.workflows)


def submit(asked: AskedJob, known: WorkflowRecord | None = None) -> NewJobView:
    """One job; `known`: the workflow, if it is known by the code of an app."""
    try:
        job = _job_of(asked, known)
    except SignatureRefused as error:
        tell_refused(asked.caller.store, error, asked.caller.by)
        raise
    with TracedSubmit(job.queue, job.workflow) as around:
        job.trace = around.trace
        [stored] = Submitter(asked.caller.store).submit([job])
        around.name_jobs([stored.id])
    [view] = views([asked], [stored])
    if isinstance(view, Exception):
        raise view
    return view


def _job_of(asked: AskedJob, known: WorkflowRecord | None = None, read: ReadRows | None = None) -> NewJob:
    """As it may be stored; SignatureRefused if it must be signed and is not."""
    job = asked.made or new_job(asked, known or registered(asked.caller, asked.workflow, read))
    job.trace = asked.trace
    return job


def new_job(asked: AskedJob, known: WorkflowRecord) -> NewJob:
    payload = pack(known.name, known.schema, asked.args, asked.kwargs)
    return _signed_here(asked.caller, _routed(asked, known, payload), known)


def _routed(asked: AskedJob, known: WorkflowRecord, payload: str) -> NewJob:
    caller = asked.caller
    caller.check_within(asked.options.queue or known.queue, known.name)
    submitter = Submitter(caller.store, tenant=caller.one, max_timeout=caller.times.max_timeout)
    return submitter.job(known, payload, asked.options)


def _signed_here(caller: Caller, job: NewJob, known: WorkflowRecord) -> NewJob:
    """By the keys of this process, if it submits for itself. Of others' it only looks whether one is missing."""
    keys = caller.signing()
    if known.require_signature:  # as its code says, where that is at hand
        keys = keys.also_requiring([known.name])
    door = SigningDoor(keys, caller.store)
    if not caller.signs:
        door.check_unsigned(job)
        return job
    [signed] = door.signed([job])
    return signed


def new_jobs(asked: Sequence[AskedJob]) -> list[NewJob | Exception]:
    """Of many, each with its own error; a workflow's row is read once."""
    read: ReadRows = {}
    made: list[NewJob | Exception] = []
    for one in asked:
        try:
            made.append(_job_of(one, read=read))
        except Exception as error:
            made.append(error)
    return made


def views(asked: Sequence[AskedJob], stored: Sequence[Submitted]) -> list[NewJobView | Exception]:
    """The jobs as they are stored, read together; each as its caller may see it. OutcomeUnknown if they cannot be
    read: they are stored all the same."""
    store = asked[0].caller.store
    try:
        seen = store.get_many([each.id for each in stored])
        hidden: dict[tuple[Role, str], Redactions] = {}
        if any(each.is_redacted for each in seen.values()):
            callers = {(one.caller.role, one.caller.one): one.caller for one in asked}
            hidden = {place: caller.redactions for place, caller in callers.items()}
    except StoreError as error:
        return [OutcomeUnknown(f"job {each.id} is stored, but cannot be read now: {error}") for each in stored]
    found: list[NewJobView | Exception] = []
    for one, each in zip(asked, stored, strict=True):
        try:
            known = seen.get(each.id)
            record = one.caller.lookup.seen(known.job if known else None, each.id)
            assert known is not None
            hide = hidden[one.caller.role, one.caller.one][record.workflow] if known.is_redacted else NOTHING
            found.append(NewJobView.of(record, known.at, hide, created=each.created))
        except Exception as error:
            found.append(error)
    return found
