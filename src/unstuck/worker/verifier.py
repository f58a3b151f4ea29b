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
from typing import Annotated, Literal

import msgspec

from unstuck.clock import Clock
from unstuck.model.errors import ErrorType, quoted
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.settlement import ErrorInfo, Refused
from unstuck.model.signing import LONGEST_ENVELOPE, Envelope, EnvelopeFacts, SignatureProblem, purpose_of
from unstuck.signing import Judge, SigningKeys, StoredCall
from unstuck.store.port import Report, SignedFacts, SignedRow, Store, Verdict
from unstuck.telemetry import emit
from unstuck.worker.held_keys import HeldKeys
from unstuck.worker.ledger import Ledger

RefusedJob = tuple[ClaimedJob, Refused]
#: Of Unix time; the limit is beyond any year that a signer means, and the strict reader knows better.
_Micros = Annotated[int, msgspec.Meta(ge=0, lt=1 << 57)]


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

    def look(self) -> None:
        """At the file of its keys, if a look is due: also while there is nothing to claim, so that the worker tells
        of trouble with it when it begins, and of none that is over."""
        self._keys.at(self._clock.boot())

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
    court = _Court(keys, facts)
    return {job.ref: why for job in jobs if (why := court.refusal(job)) is not None}


class _PlainEnvelope(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One as we write it, read in a tenth of the time. Of its key and its policy any text is taken."""

    version: Literal[1]
    key: str
    expires_at: _Micros
    not_before: _Micros | None
    policy: str
    accepted_at: _Micros
    signature: Annotated[bytes, msgspec.Meta(min_length=32, max_length=64)]


_plain = msgspec.json.Decoder(_PlainEnvelope)
_PLAIN_BYTES = 8 << 10


def _envelope(text: str | bytes) -> EnvelopeFacts | None:
    """What is not plainly right is left to the strict reader, whose word counts."""
    try:
        return _plain.decode(text) if len(text) <= _PLAIN_BYTES else _strictly(text)
    except ValueError:
        return _strictly(text)


def _strictly(text: str | bytes) -> Envelope | None:
    try:
        read = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        return None
    return Envelope.of(read) if len(read) <= LONGEST_ENVELOPE else None


class _Court:
    """Over the jobs of one claim. What many of them have in common is judged once: at full speed that is most."""

    def __init__(self, keys: SigningKeys, facts: SignedFacts) -> None:
        self._keys = keys
        self._facts = facts
        self._rows = facts.rows
        self._judges: dict[tuple[object, ...], Judge | SignatureProblem] = {}

    def refusal(self, job: ClaimedJob) -> Refused | None:
        problem = self._problem(job)
        if problem is None:
            return None
        row = self._rows.get(job.ref.job)
        envelope = None if row is None else _envelope(row.signature)
        by = "" if envelope is None else f" (signing key {quoted(envelope.key)})"
        return Refused(ErrorInfo(ErrorType.SIGNATURE_INVALID, f"{problem.sentence}{by}"), problem)

    def _problem(self, job: ClaimedJob) -> SignatureProblem | None:
        row = self._rows.get(job.ref.job)
        if row is None:
            is_required = self._keys.requires(job.tenant, job.queue, job.workflow)
            return SignatureProblem.MISSING if is_required else None
        if (envelope := _envelope(row.signature)) is None:
            return SignatureProblem.UNREADABLE
        # A policy by its identity: to compare two costs more than to judge, and they live as long as their jobs.
        ours = (job.tenant, job.queue, job.workflow, id(job.policy))
        kind = (ours, row[1:9], envelope.key, envelope.not_before, envelope.policy)
        try:
            judge = self._judges.get(kind)
            if judge is None:
                judge = self._judges[kind] = self._judge(job, row, envelope)
            return judge.problem(job.id, job.payload, envelope) if isinstance(judge, Judge) else judge
        except (ValueError, TypeError, OverflowError):  # a row with something in it that no submit could have stored
            return SignatureProblem.ALTERED

    def _judge(self, job: ClaimedJob, row: SignedRow, envelope: EnvelopeFacts) -> Judge | SignatureProblem:
        """What the strict reader may find in key and policy of an envelope it finds in all of this kind."""
        facts = self._facts
        if facts.clock is None or _strictly(row.signature) is None:
            return SignatureProblem.UNREADABLE
        if not _agree(job, row):
            return SignatureProblem.ALTERED
        is_first = row.is_first is None or bool(row.is_first)
        return self._keys.judge_at_claim(_call(job, row), envelope, facts.clock, facts.revoked, is_first=is_first)


def _agree(job: ClaimedJob, row: SignedRow) -> bool:
    """What the row says itself with what its route says, by which it runs; and its target is one of its tenant."""
    return (
        row.tenant == job.tenant
        and row.queue == job.queue
        and row.workflow == job.workflow
        and bool(row.has_target) is (row.target is not None)
    )


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
        purpose=purpose_of(row.made_by),
    )
