"""Dead letters: what never ran, or ran out of tries: look at it, sign it anew, let it go on, discard or export it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from unstuck.intake.bulks import BulkVerbs
from unstuck.intake.signing import revoked_keys
from unstuck.model.bulk import BulkVerb
from unstuck.model.dead_letters import DUTIES, LISTED, SET_ASIDE, is_about_signature, sentence_of
from unstuck.model.errors import (
    AmbiguousJob,
    CanaryNotCompleted,
    IllegalMove,
    InvalidInput,
    NeedsSignature,
    NoDeadLetter,
    NoSigningKey,
    NotPermitted,
    OtherCount,
    OutcomeUnknown,
    SignatureRefused,
    UnknownJob,
    WorkflowBlacklisted,
    quoted,
)
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import MOVES, JobState
from unstuck.model.payload import check_instant, check_wording
from unstuck.model.signing import Envelope, envelope, keeps_policy, purpose_of
from unstuck.operations.bounds import bounded, size_of_event
from unstuck.operations.kinds import Cursor, number_of, whole_number
from unstuck.operations.table import (
    INCLUDED,
    OPERATOR,
    PLATFORM_ADMIN,
    READER,
    TENANT_ADMIN,
    Caller,
    Role,
    operation,
)
from unstuck.signing import StoredCall, micros
from unstuck.store.port import DeadLetter, JobFilter, LetterFilter, LetterTerms, Quarantined
from unstuck.views import Page
from unstuck.views.bulks import BulkView, CountView
from unstuck.views.dead_letters import LetterStory, LetterView, LetterWhole
from unstuck.views.jobs import JobView

NAMED = (UnknownJob, AmbiguousJob, NoDeadLetter)
MOST_LISTED = 10_000
#: Each is read with its payload.
MOST_EXPORTED = 1_000
TOLD_EVENTS = 100
#: Of jobs with their payloads so many are read at once.
_AT_ONCE = 20


# --- look ---------------------------------------------------------------------------------------------------------


@operation(role=READER, limited="kept", whose="any", paged="after")
def list_(
    caller: Caller,
    *,
    reason: str | None = None,
    workflow: str | None = None,
    queue: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    limit: int = 50,
    after: Cursor | None = None,
) -> Page[LetterView]:
    """The dead letters, the newest first, or those you ask for: of this reason, made `before` or `since`. What is in
    quarantine because its end could not be written comes before all others (reason "set_aside")."""
    wanted = _filter(caller, reason, workflow, queue, before, since)
    most, behind = whole_number(limit, "limit", 1, MOST_LISTED), number_of(after)
    aside = [LetterView.aside(found) for found in _aside(caller, wanted)[:most]] if behind is None else []
    found, is_full = _page(caller, wanted, behind, most - len(aside))
    kept = caller.times.dead_letter_retention
    items = (*aside, *(LetterView.of(letter, kept) for letter in found))
    return Page(items=items, next=str(found[-1].number) if is_full else None)


@operation(role=READER, limited="kept", whose="any", errors=NAMED, command="dead-letters show")
def get(caller: Caller, job: str) -> LetterStory:
    """One dead letter with its whole envelope: signature, arguments, policy, and how its job came to be one. It goes
    by the id of its job."""
    record = caller.lookup.job(job)
    letter = _letter(caller, record)
    events = caller.lookup.history(record.id, max(0, record.events - TOLD_EVENTS), TOLD_EVENTS)
    few, _ = bounded(events, TOLD_EVENTS, size_of_event)
    hide = caller.redactions[record.workflow]
    return LetterStory.told(letter, record, caller.times.dead_letter_retention, hide, few)


@operation(role=READER, limited="kept", whose="any", paged="after", command="dead-letters export")
def export(
    caller: Caller,
    *,
    reason: str | None = None,
    workflow: str | None = None,
    queue: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    limit: int = 100,
    after: Cursor | None = None,
) -> Page[LetterWhole]:
    """The same as the list, each with its whole envelope. A page stops early where they are large; `next` goes on
    behind it. What is in quarantine has no envelope, and is not among them."""
    wanted = _filter(caller, reason, workflow, queue, before, since)
    most = whole_number(limit, "limit", 1, MOST_EXPORTED)
    found, has_more = _page(caller, wanted, number_of(after), most)
    taken, is_full = bounded(
        _with_jobs(caller, found), most, lambda each: len(each[0].message) + len(each[1].payload)
    )
    kept, hidden = caller.times.dead_letter_retention, caller.redactions
    items = tuple(LetterWhole.made(each, record, kept, hidden[record.workflow]) for each, record in taken)
    last = taken[-1][0].number if is_full else found[-1].number if has_more else None
    return Page(items=items, next=None if last is None else str(last))


def _with_jobs(caller: Caller, found: list[DeadLetter]) -> Iterator[tuple[DeadLetter, JobRecord]]:
    """Some at a time, as far as somebody reads: payloads are large. One whose job has gone meanwhile is left out."""
    for place in range(0, len(found), _AT_ONCE):
        some = found[place : place + _AT_ONCE]
        seen = caller.store.get_many([letter.job for letter in some])
        yield from ((letter, seen[letter.job].job) for letter in some if letter.job in seen)


@operation(role=READER)
def count(
    caller: Caller,
    *,
    reason: str | None = None,
    workflow: str | None = None,
    queue: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
) -> CountView:
    """How many dead letters these are, before they are redriven. Counting ends somewhere: the number is exact, or
    there are at least so many."""
    wanted = _jobs_of(_filter(caller, reason, workflow, queue, before, since))
    return CountView.of(wanted, _bulks(caller).count(wanted), caller.redactions)


# --- ask ----------------------------------------------------------------------------------------------------------


@operation(
    role=TENANT_ADMIN,
    limited="kept",
    effect="change",
    repeat="refused",
    audited="dead_letters.resign",
    errors=(*NAMED, IllegalMove, SignatureRefused, NoSigningKey, NotPermitted, WorkflowBlacklisted),
)
def resign(caller: Caller, job: str, *, signature: Mapping[str, Any] | None = None) -> JobView:
    """Sign a job that was never run anew, as it is stored, and let it run: a new run. By a key of the process that is
    asked, which only a platform-admin may use, or with a `signature` that was made elsewhere. Look at the letter
    first: whoever signs vouches for what it holds."""
    record = caller.lookup.job(job)
    letter = _letter(caller, record)
    if record.state is not JobState.DEAD:
        raise IllegalMove(record.id, record.state, "re-sign", MOVES[record.state])
    signed = _signed(caller, record, letter) if signature is None else _given(caller, record, signature)
    after = caller.control.redrive(record.id, signature=signed.text(), signed_until=signed.kept_until)
    return _shown(caller, after)


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="refused",
    audited="dead_letters.redrive",
    errors=(*NAMED, IllegalMove, NeedsSignature, NotPermitted, WorkflowBlacklisted),
)
def redrive(caller: Caller, job: str, *, force: bool = False) -> JobView:
    """Let a dead letter go on. One that ran out of tries runs again from its start. One whose signature was refused
    would be refused again: `resign` it, or with `force` let the workers, whose keys or rules were mended since,
    verify it once more, which is for admins. What is in quarantine is tried first by the next sweep."""
    record = caller.lookup.job(job)
    letter = caller.store.dead_letter(record.tenant, record.id)
    if letter is None:
        return _tried_again(caller, record)
    if is_about_signature(letter.reason):
        if not force:
            raise NeedsSignature(record.id, letter.reason, sentence_of(letter.reason))
        _check_role(caller, TENANT_ADMIN, "to redrive what was never run")
    return _shown(caller, caller.control.redrive(record.id))


@operation(
    role=OPERATOR,
    effect="change",
    repeat="again",
    audited="bulks.start",
    errors=(OtherCount, CanaryNotCompleted, UnknownJob, AmbiguousJob, NotPermitted),
    status=202,
    command="dead-letters redrive",
)
def redrive_all(
    caller: Caller,
    *,
    reason: str | None = None,
    workflow: str | None = None,
    queue: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    force: bool = False,
    canary: str | None = None,
    expected: int | None = None,
) -> BulkView:
    """Redrive all these dead letters: a bulk, which workers carry out. `canary`: a job that was redriven first, and
    unless it completed since, nothing is started. `expected`: how many were counted, and OtherCount if others match.
    Those that need a new signature are refused one by one, and named by the bulk."""
    wanted = _filter(caller, reason, workflow, queue, before, since)
    if force:
        _check_role(caller, TENANT_ADMIN, "to redrive what was never run")
    if canary is not None:
        first = caller.lookup.job(canary)
        if first.state is not JobState.COMPLETED:
            raise CanaryNotCompleted(first.id, first.state)
    started = _bulks(caller).start(BulkVerb.RETRY, _jobs_of(wanted), force=force, expected=expected)
    return BulkView.of(started, caller.redactions)


@operation(
    role=OPERATOR, limited="kept", effect="change", repeat="refused", audited="dead_letters.discard", errors=NAMED
)
def discard(caller: Caller, job: str) -> LetterView:
    """Take a dead letter away. Its job stays as it is, and as long as others."""
    record = caller.lookup.job(job)
    letter = _letter(caller, record)
    try:
        caller.store.discard_letter(record.tenant, record.id, caller.by)
    except OutcomeUnknown:
        if caller.store.dead_letter(record.tenant, record.id) is not None:
            caller.store.discard_letter(record.tenant, record.id, caller.by)
    return LetterView.of(letter, caller.times.dead_letter_retention)


# --- which --------------------------------------------------------------------------------------------------------


def _filter(
    caller: Caller,
    reason: str | None,
    workflow: str | None,
    queue: str | None,
    before: datetime | None,
    since: datetime | None,
) -> LetterFilter:
    asked = check_wording(reason, "reason")
    if asked is not None and asked not in LISTED:
        raise InvalidInput(f"reason={quoted(reason)} is none of {', '.join(LISTED)}")
    terms = LetterTerms(
        asked,
        None if before is None else check_instant(before, "before"),
        None if since is None else check_instant(since, "since"),
    )
    return LetterFilter(terms, check_wording(workflow, "workflow"), check_wording(queue, "queue"), caller.within)


def _page(caller: Caller, wanted: LetterFilter, before: int | None, most: int) -> tuple[list[DeadLetter], bool]:
    if wanted.terms.reason == SET_ASIDE or most <= 0:
        return [], False
    found = caller.store.dead_letters(caller.listed, wanted, before=before, limit=most)
    return bounded(found, most, lambda letter: letter.characters)


def _aside(caller: Caller, wanted: LetterFilter) -> list[Quarantined]:
    """Of the quarantine what is about runs that do not end. It knows no queues: who asks for one hears nothing."""
    terms = wanted.terms
    if terms.reason not in (None, SET_ASIDE) or wanted.queue is not None or wanted.within is not None:
        return []
    return [
        found
        for found in caller.store.quarantined(caller.listed, limit=MOST_LISTED)
        if found.duty in DUTIES
        and found.job is not None
        and wanted.workflow in (None, found.workflow)
        and (terms.before is None or found.since_at < terms.before)
        and (terms.since is None or found.since_at >= terms.since)
    ]


def _jobs_of(wanted: LetterFilter) -> JobFilter:
    """As a bulk asks for them."""
    if wanted.terms.reason == SET_ASIDE:
        raise InvalidInput(f"what is {SET_ASIDE} is tried again by: unstuck quarantine retry --all")
    return JobFilter(workflow=wanted.workflow, queue=wanted.queue, letter=wanted.terms)


def _letter(caller: Caller, record: JobRecord) -> DeadLetter:
    letter = caller.store.dead_letter(record.tenant, record.id)
    if letter is None:
        raise NoDeadLetter(record.id)
    return letter


# --- steps --------------------------------------------------------------------------------------------------------


def _tried_again(caller: Caller, record: JobRecord) -> JobView:
    """What is in quarantine."""
    found = caller.store.quarantined(record.tenant, job=record.id)
    if not any(each.duty in DUTIES for each in found):
        raise NoDeadLetter(record.id)
    caller.guard.retry_quarantined(record)
    return _shown(caller, record)


def _signed(caller: Caller, record: JobRecord, letter: DeadLetter) -> Envelope:
    """By a key that this process holds. What its first signer asked for of its policy is asked for again."""
    _check_role(caller, PLATFORM_ADMIN, "to use the keys of the process that is asked (or give a signature)")
    call, now = _stored_call(record), caller.store.now()
    keys = caller.signing()
    key = keys.signer(record.tenant, call.purpose, now)
    if key is None or key.id in revoked_keys(caller.store):
        raise NoSigningKey(record.id, record.tenant)
    before = Envelope.of(letter.signature) if letter.signature else None
    policy = before.policy if before is not None and keeps_policy(before.policy, record.policy) else ""
    return replace(keys.sign(key, call, now, policy=policy), accepted_at=micros(now))


def _given(caller: Caller, record: JobRecord, signature: Mapping[str, Any]) -> Envelope:
    """As any door takes it: verified here if there are keys, and by the workers in any case."""
    made, now, keys = envelope(signature), caller.store.now(), caller.signing()
    if made.not_before is not None and made.not_before > micros(now):
        raise InvalidInput(
            "signature: not_before is still to come, and what is signed anew runs at once: leave it out"
        )
    if keys:
        call = _stored_call(record)
        if (problem := keys.problem_at_door(call, made, now, revoked_keys(caller.store))) is not None:
            raise SignatureRefused(problem, problem.sentence, record.id)
    elif made.expires_at <= micros(now):
        raise InvalidInput(f"signature: it expired {timedelta(microseconds=micros(now) - made.expires_at)} ago")
    return replace(made, accepted_at=micros(now))


def _stored_call(record: JobRecord) -> StoredCall:
    return StoredCall(
        job=record.id,
        tenant=record.tenant,
        workflow=record.workflow,
        queue=record.queue,
        target=record.target,
        priority=record.priority,
        payload=record.payload,
        policy=record.policy,
        purpose=purpose_of(record.made_by),
    )


def _check_role(caller: Caller, role: Role, what: str) -> None:
    if role not in INCLUDED[caller.role]:
        raise NotPermitted(f"{what} needs the role {role}; {caller.by} is {caller.role}")


def _bulks(caller: Caller) -> BulkVerbs:
    return BulkVerbs(caller.store, tenant=caller.one, by=caller.by)


def _shown(caller: Caller, record: JobRecord) -> JobView:
    return JobView.of(record, caller.store.now(), caller.redactions[record.workflow])
