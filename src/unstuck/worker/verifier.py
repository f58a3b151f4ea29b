"""Between the claim and the ledger: jobs whose signatures do not hold are buried, and no executor hears of them.

One read for a whole claim, behind its commit. What is verified is what the claim has answered, so it is what would
run; the read adds what the row says itself, and the keys that are revoked. A job that is refused is settled here, in
the claimer's own call: as long as that takes no further claim begins, so the refused never pile up. What cannot be
settled at once is the settler's, which keeps it as it keeps every report. If the read fails nothing is admitted: the
claim is given up, and its jobs go back uncharged with the next beat.
"""

from __future__ import annotations

import binascii
import logging
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from unstuck.clock import Clock
from unstuck.model.errors import ErrorType, quoted
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.settlement import ErrorInfo, Refused
from unstuck.model.signing import LONGEST_ENVELOPE, VERSION, Envelope, SignatureProblem, is_key_id
from unstuck.signing import SigningKeys, StoredCall
from unstuck.store.port import Report, SignedFacts, SignedRow, Store, Verdict
from unstuck.telemetry import emit
from unstuck.worker.held_keys import HeldKeys
from unstuck.worker.ledger import Ledger

RefusedJob = tuple[ClaimedJob, Refused]


class Verifier:
    def __init__(
        self,
        store: Store,
        worker: int,
        ledger: Ledger,
        keys: HeldKeys,
        clock: Clock,
        *,
        report: Callable[[list[Report]], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._ledger = ledger
        self._keys = keys
        self._clock = clock
        self._report = report

    def admitted(self, claim: str, jobs: Sequence[ClaimedJob]) -> Sequence[ClaimedJob]:
        """Those of a claim that may run. Whoever has no key verifies nothing."""
        now = self._clock.boot()
        keys = self._keys.at(now)
        if not keys or not jobs:
            return jobs
        facts = self._store.signed_facts(self._worker, claim)
        refused = refusals(keys, jobs, facts)
        if any(why.problem == SignatureProblem.UNKNOWN_KEY for why in refused.values()):
            refused = refusals(self._keys.at(now, at_once=True), jobs, facts)
        if not refused:
            return jobs
        if left := bury(self._store, self._worker, [(job, refused[job.ref]) for job in jobs if job.ref in refused]):
            self._ledger.settle_unseen([job for job, _ in left], self._clock.boot())
            self._report([_report(job, why) for job, why in left])
        return [job for job in jobs if job.ref not in refused]


def bury(store: Store, worker: int, refused: Sequence[RefusedJob]) -> list[RefusedJob]:
    """End them DEAD; those that could not be settled now are the answer."""
    for (workflow, problem), count in Counter((job.workflow, why.problem) for job, why in refused).items():
        first = next(job for job, why in refused if (job.workflow, why.problem) == (workflow, problem))
        facts = {"workflow": workflow, "problem": problem, "jobs": count, "job": first.id, "tenant": first.tenant}
        emit("signature_refused", level=logging.WARNING, **facts)
    try:
        answers = store.settle(worker, [_report(job, why) for job, why in refused])
    except Exception as error:
        emit("refusal_kept", level=logging.WARNING, jobs=len(refused), error=str(error) or repr(error))
        return list(refused)
    done = {answer.ref for answer in answers if answer.verdict is not Verdict.BUSY}
    return [(job, why) for job, why in refused if job.ref not in done]


def _report(job: ClaimedJob, why: Refused) -> Report:
    return Report(job.ref, why, 0, has_target=job.has_target)


def refusals(keys: SigningKeys, jobs: Sequence[ClaimedJob], facts: SignedFacts) -> dict[AttemptRef, Refused]:
    return {job.ref: why for job in jobs if (why := _refusal(keys, job, facts)) is not None}


def _refusal(keys: SigningKeys, job: ClaimedJob, facts: SignedFacts) -> Refused | None:
    row = facts.rows.get(job.ref.job)
    envelope = None if row is None else _envelope(row)
    problem = _problem(keys, job, row, envelope, facts)
    if problem is None:
        return None
    by = "" if envelope is None else f" (signing key {quoted(envelope.key)})"
    return Refused(ErrorInfo(ErrorType.SIGNATURE_INVALID, f"{problem.sentence}{by}"), problem)


class _PlainEnvelope(msgspec.Struct, forbid_unknown_fields=True):
    """One as we write it, read in a tenth of the time."""

    version: int
    key: str
    expires_at: int
    not_before: int | None
    policy: str
    accepted_at: int
    signature: str


_plain = msgspec.json.Decoder(_PlainEnvelope)
#: Beyond any year that a signer means; the strict reader knows better.
_MOST_MICROS = 1 << 57
_PLAIN_BYTES = 8 << 10


def _envelope(row: SignedRow) -> Envelope | None:
    """What is not plainly right is left to the strict reader, whose word counts."""
    try:
        found = _plain.decode(row.signature)
        signature = binascii.a2b_base64(found.signature, strict_mode=True)
    except (msgspec.MsgspecError, ValueError):
        return _strictly(row)
    times = (found.expires_at, found.accepted_at, found.not_before or 0)
    if found.version != VERSION or not is_key_id(found.key) or not all(0 <= at < _MOST_MICROS for at in times):
        return _strictly(row)
    if len(row.signature) > _PLAIN_BYTES or "\x00" in found.policy or not 32 <= len(signature) <= 64:
        return _strictly(row)
    return Envelope(found.key, found.expires_at, signature, found.not_before, found.policy, found.accepted_at)


def _strictly(row: SignedRow) -> Envelope | None:
    try:
        text = row.signature.decode()
    except UnicodeDecodeError:
        return None
    return Envelope.of(text) if len(text) <= LONGEST_ENVELOPE else None


def _problem(
    keys: SigningKeys, job: ClaimedJob, row: SignedRow | None, envelope: Envelope | None, facts: SignedFacts
) -> SignatureProblem | None:
    if row is None:
        is_required = keys.requires(job.tenant, job.queue, job.workflow)
        return SignatureProblem.MISSING if is_required else None
    if envelope is None or facts.clock is None:
        return SignatureProblem.UNREADABLE
    if not _agree(job, row):
        return SignatureProblem.ALTERED
    try:
        call = _call(job, row)
        return keys.problem_at_claim(call, envelope, facts.clock, facts.revoked, is_first=row.is_first)
    except (ValueError, TypeError, OverflowError):  # a row with something in it that no submit could have stored
        return SignatureProblem.ALTERED


def _agree(job: ClaimedJob, row: SignedRow) -> bool:
    """What the row says itself with what its route says, by which it runs; and its target is one of its tenant."""
    said = (row.tenant, row.queue, row.workflow)
    return said == (job.tenant, job.queue, job.workflow) and row.has_target is (row.target is not None)


def _call(job: ClaimedJob, row: SignedRow) -> StoredCall:
    return StoredCall(
        job=job.id,
        tenant=job.tenant,
        workflow=job.workflow,
        queue=job.queue,
        target=row.target,
        priority=row.priority,
        payload=job.payload,
        policy=job.policy,
        purpose="spawn" if row.is_made else "submit",
    )
