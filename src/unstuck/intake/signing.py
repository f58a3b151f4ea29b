"""What a process that accepts jobs does about signatures: it signs what it submits itself, holds a signature that
came along against the job that it is about to store, and refuses what must be signed and is not.

What is signed is what will be stored. So the time limit, which a job may leave to its workflow's row, is looked up
here and said by the job itself from then on: a worker that registers between this look and the insert changes nothing
of it. A delay becomes an instant for the same reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from unstuck.model.errors import SignatureRefused, StoreError
from unstuck.model.job import Alike, JobRecord, Maker, NewJob, made
from unstuck.model.policy import Timeout, said
from unstuck.model.signing import Envelope, SignatureProblem, purpose_of
from unstuck.signing import SigningKey, SigningKeys, StoredCall, micros
from unstuck.store.port import Store


class SigningDoor:
    """Of one process, its keys and its store."""

    def __init__(self, keys: SigningKeys, store: Store) -> None:
        self._keys = keys
        self._store = store
        #: The last pattern that was signed, and what was signed in its place: the store knows patterns by identity.
        self._known: tuple[NewJob, Timeout, NewJob] | None = None

    def signed(self, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """As they may be stored: signed, if there is a key for it. SignatureRefused where they must be and cannot."""
        if not self._keys or not jobs:
            return jobs
        now = self._store.likely_now()
        if isinstance(jobs, Alike):
            return self._alike(jobs, self._signer(jobs.pattern, now), now)
        found: list[NewJob] = []
        for job in jobs:
            key = None if job.signature is not None else self._signer(job, now)
            found += [job] if key is None else self._signed_one(key, job, now)
        return found

    def made(self, job: NewJob, by: Maker) -> NewJob:
        """One that the engine makes by itself, as it may be stored: signed by a key of the purpose for that, if
        there is one. SignatureRefused where it must be signed and there is none."""
        [signed] = self.signed([made(job, by)])
        return signed

    def check_unsigned(self, job: NewJob) -> None:
        """Of one that comes without a signature, and that is not to be signed here."""
        if self._keys.requires(job.tenant, job.queue, job.workflow):
            raise refusal(SignatureProblem.MISSING, job)

    def accepted(self, job: NewJob, envelope: Envelope) -> NewJob:
        """One that came with a signature, as it may be stored. Without keys it is passed on as it came: the worker
        verifies it, or nobody asks for signatures."""
        job, now = self._pinned(job, None), self._store.likely_now()
        if self._keys:
            call, revoked = stored_call(job), revoked_keys(self._store)
            if (problem := self._keys.problem_at_door(call, envelope, now, revoked)) is not None:
                raise refusal(problem, job, envelope)
        taken = replace(envelope, accepted_at=micros(now))
        return replace(job, signature=taken.text(), signed_until=taken.kept_until)

    def replayed(self, job: NewJob, original: JobRecord) -> NewJob:
        """One that repeats another. What somebody changed in the database is not signed anew, nor what a key signed
        that is revoked since: as of a resume, this is a new run. Nor is what nobody had signed: a worker whose code
        alone requires that refused the original, and this process does not know its code."""
        if not self._keys:
            return job
        if original.signature is None:
            self.check_unsigned(job)
            return job
        found, now = Envelope.of(original.signature), self._store.likely_now()
        if found is None:
            raise refusal(SignatureProblem.UNREADABLE, job)
        purpose = purpose_of(original.made_by)
        call = replace(stored_call(job), job=original.id, policy=original.policy, purpose=purpose)
        problem = self._keys.problem_at_claim(call, found, now, revoked_keys(self._store))
        if problem is not None:
            raise refusal(problem, job, found)
        return self.made(job, "replay")

    # --- how ----------------------------------------------------------------------------------------------------

    def _signer(self, job: NewJob, now: datetime) -> SigningKey | None:
        purpose = purpose_of(job.made_by)
        key = self._keys.signer(job.tenant, purpose, now)
        if key is None and self._keys.requires(job.tenant, job.queue, job.workflow):
            lacking = f"no key here has the purpose {purpose} for tenant {job.tenant}"
            raise refusal(SignatureProblem.MISSING, job, lacking=lacking)
        return key

    def _alike(self, jobs: Alike, key: SigningKey | None, now: datetime) -> Sequence[NewJob]:
        if key is None:
            return jobs
        pattern = self._pinned(jobs.pattern, self._known)
        if not jobs.pattern.delay:
            self._known = (jobs.pattern, pattern.policy.timeout, pattern)
        call = stored_call(pattern)
        texts, until = self._keys.sign_all(key, call, jobs.ids, jobs.payloads, now, policy=policy_text(pattern))
        return Alike(pattern, jobs.ids, jobs.payloads, jobs.trace, texts, until)

    def _signed_one(self, key: SigningKey, job: NewJob, now: datetime) -> list[NewJob]:
        job = self._pinned(job, None)
        texts, until = self._keys.sign_all(
            key, stored_call(job), [job.id], [job.payload], now, policy=policy_text(job)
        )
        return [replace(job, signature=texts[0], signed_until=until)]

    def _pinned(self, job: NewJob, known: tuple[NewJob, Timeout, NewJob] | None) -> NewJob:
        """With what is signed of it said by the job itself."""
        timeout = self._timeout(job)
        if known is not None and known[0] is job and known[1] == timeout:
            return known[2]
        changes: dict[str, Any] = {}
        if job.said is not None:
            limit = {"timeout": timeout}
            changes["said"] = said(job.workflow, json.loads(job.said), limit)
            changes["policy"] = job.policy.with_(job.workflow, limit)
        if job.delay:
            # By the calendar, as a caller's own `at` is: the engine's time may have left it behind a leap.
            calendar = self._store.likely_now() - timedelta(seconds=self._store.clock_stand().ahead)
            changes |= {"start_at": calendar + timedelta(seconds=job.delay), "delay": 0.0}
        return replace(job, **changes)

    def _timeout(self, job: NewJob) -> Timeout:
        """As it will be stored."""
        own: dict[str, Any] = {} if job.said is None else json.loads(job.said)
        return own["timeout"] if "timeout" in own else self._store.policy_of(job).timeout


def stored_call(job: NewJob) -> StoredCall:
    return StoredCall(
        job=job.id,
        tenant=job.tenant,
        workflow=job.workflow,
        queue=job.queue,
        target=job.target,
        priority=job.priority,
        payload=job.payload,
        policy=job.policy,
        purpose=purpose_of(job.made_by),
        not_before=None if job.start_at is None else micros(job.start_at),
    )


def policy_text(job: NewJob) -> str:
    """What its signer asks for of its policy: all that it says itself."""
    return job.policy.to_json() if job.said is None else job.said


def revoked_keys(store: Store) -> frozenset[str]:
    """The ids of those that the database revokes."""
    return frozenset(each.key for each in store.revoked_signers())


def refusal(
    problem: SignatureProblem, job: NewJob, envelope: Envelope | None = None, *, lacking: str | None = None
) -> SignatureRefused:
    checked: dict[str, Any] = {
        "tenant": job.tenant,
        "workflow": job.workflow,
        "queue": job.queue,
        "target": job.target,
        "priority": job.priority,
        "timeout": job.policy.timeout,
        "id": job.id,
    }
    if envelope is not None:
        checked |= {"key": envelope.key, "not_before": envelope.not_before, "expires_at": envelope.expires_at}
    sentence = problem.sentence if lacking is None else f"{problem.sentence}; {lacking}"
    return SignatureRefused(problem.value, sentence, job.id or None, checked)


def tell_refused(store: Store, error: SignatureRefused, by: str) -> None:
    """For those who watch; that it cannot be told changes nothing of the refusal."""
    with suppress(StoreError):
        store.tell_refused_signature(error, by)
