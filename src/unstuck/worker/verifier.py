"""Between the claim and the ledger: jobs whose signatures do not hold are buried, and no executor hears of them.

One read for a whole claim, behind its commit. What is verified is what the claim has answered, so it is what would
run; the read adds what the row says itself, and the keys that are revoked. A job that is refused is settled here, in
the claimer's own call: as long as that takes no further claim begins, so the refused never pile up. What cannot be
settled at once is the settler's, which keeps it as it keeps every report. If the read fails nothing is admitted: the
claim is given up, and its jobs go back uncharged with the next beat.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from unstuck.clock import Clock
from unstuck.model.errors import ErrorType, quoted
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.settlement import ErrorInfo, Refused
from unstuck.model.signing import LONGEST_ENVELOPE, VERSION, Envelope, EnvelopeFacts, SignatureProblem, purpose_of
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
    return Report(job.ref, why, has_target=job.has_target)


def refusals(keys: SigningKeys, jobs: Sequence[ClaimedJob], facts: SignedFacts) -> dict[AttemptRef, Refused]:
    return {job.ref: why for job in jobs if (why := _refusal(keys, job, facts)) is not None}


def _refusal(keys: SigningKeys, job: ClaimedJob, facts: SignedFacts) -> Refused | None:
    row = facts.rows.get(job.ref.job)
    envelope = None if row is None else _envelope(keys, row.signature)
    problem = _problem(keys, job, row, envelope, facts)
    if problem is None:
        return None
    by = "" if envelope is None else f" (signing key {quoted(envelope.key)})"
    return Refused(ErrorInfo(ErrorType.SIGNATURE_INVALID, f"{problem.sentence}{by}"), problem)


class _PlainEnvelope(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One as we write it, read in a tenth of the time."""

    version: int
    key: str
    expires_at: int
    not_before: int | None
    policy: str
    accepted_at: int
    signature: bytes


_plain = msgspec.json.Decoder(_PlainEnvelope)
#: Beyond any year that a signer means; the strict reader knows better.
_MOST_MICROS = 1 << 57
_PLAIN_BYTES = 8 << 10


def _envelope(keys: SigningKeys, text: bytes) -> EnvelopeFacts | None:
    """What is not plainly right is left to the strict reader, whose word counts."""
    try:
        found = _plain.decode(text)
    except ValueError:
        return _strictly(text)
    is_plain = (
        found.version == VERSION
        and keys.get(found.key) is not None
        and 0 <= found.expires_at < _MOST_MICROS
        and 0 <= found.accepted_at < _MOST_MICROS
        and (found.not_before is None or 0 <= found.not_before < _MOST_MICROS)
        and 32 <= len(found.signature) <= 64
        and len(text) <= _PLAIN_BYTES
        and "\x00" not in found.policy
    )
    return found if is_plain else _strictly(text)


def _strictly(text: bytes) -> Envelope | None:
    try:
        read = text.decode()
    except UnicodeDecodeError:
        return None
    return Envelope.of(read) if len(read) <= LONGEST_ENVELOPE else None


def _problem(
    keys: SigningKeys, job: ClaimedJob, row: SignedRow | None, envelope: EnvelopeFacts | None, facts: SignedFacts
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
    return (
        row.tenant == job.tenant
        and row.queue == job.queue
        and row.workflow == job.workflow
        and row.has_target is (row.target is not None)
    )


def _call(job: ClaimedJob, row: SignedRow) -> StoredCall:
    # By place: of each job that runs.
    purpose = purpose_of(row.made_by)
    return StoredCall(
        job.id, job.tenant, job.workflow, job.queue, row.target, row.priority, job.payload, job.policy, purpose
    )
