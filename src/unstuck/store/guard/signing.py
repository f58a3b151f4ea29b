"""Signed jobs: what their signatures are held against, the keys that are revoked, and what follows a refusal.

A claim's read comes behind its commit and sees every revocation that was committed before; what is revoked later was
claimed earlier. The refusal itself is an ordinary settlement (`apply_settlement`): the letter with its notification,
the line in the audit and the news are written in its transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from unstuck.model.errors import SignatureRefused
from unstuck.model.guard import EVERY
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.model.settlement import Refused
from unstuck.model.signing import LONGEST_ENVELOPE
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit, dead_letters
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE, cleaned
from unstuck.store.port import NewLetter, Revocation, SignedFacts, SignedRow
from unstuck.store.rows import instant, text_of

#: Bytes of UTF-8; an envelope is checked by its characters when it is read.
LONGEST: Final = 4 * LONGEST_ENVELOPE


def facts(t: Transaction, worker: int, claim: str) -> SignedFacts:
    rows = [SignedRow._make(row) for row in t.tuples("signed_facts", worker=worker, claim=claim, longest=LONGEST)]
    if not rows:
        return SignedFacts()
    # A second read that is not older than the first: what was revoked before the claim is in it.
    revoked = [row["key"] for row in t.all("revoked_signers")] if rows[0].is_first is not None else ()
    return SignedFacts({row.job: row for row in rows}, frozenset(revoked), instant(rows[0].clock))


# --- what is refused ----------------------------------------------------------------------------------------------


def tell_refused(t: Transaction, refused: Sequence[tuple[Row, Refused]], by: str) -> None:
    """Of attempts that this transaction ends."""
    if not refused:
        return
    jobs = {row["id"]: row for row in t.all("refused_jobs", jobs=[row["job"] for row, _ in refused], longest=LONGEST)}
    letters, told, lines = [], [], []
    for row, outcome in refused:
        job = jobs[row["job"]]
        message = cleaned(outcome.error)[1] or outcome.problem
        letters.append(
            NewLetter(
                job=row["job"],
                run=row["run"],
                tenant=job["tenant"],
                queue=job["queue"],
                workflow=job["workflow"],
                reason=outcome.problem,
                message=message,
                signature=_readable(job["signature"]),
            )
        )
        said = {"problem": outcome.problem, "message": message}
        lines.append(audit.AuditLine(job["uid"], job["tenant"], said))
        told.append(NewsItem(NewsKind.SIGNATURE_REFUSED, said, job=row["job"], run=row["run"], token=row["token"]))
    audit.note_all(t, by, "signing.refuse", lines)
    dead_letters.add(t, letters)
    news.tell(t, told)


def tell_refused_at_door(t: Transaction, error: SignatureRefused, by: str) -> None:
    """Of one that is not stored. Whose it is stands in `checked`, with what the signature was held against."""
    tenant = str(error.checked["tenant"])
    queue, workflow, job, key = (_name(error.checked.get(what)) for what in ("queue", "workflow", "id", "key"))
    said = {"problem": error.problem, "message": clean_text(str(error), MAX_MESSAGE)}
    news.tell(t, [NewsItem(NewsKind.SIGNATURE_REFUSED, said, tenant, queue=queue, workflow=workflow)])
    audit.note(t, by, "signing.refuse", job or "?", tenant, {**said, "workflow": workflow, "key": key})


def _name(value: Any) -> str | None:
    return clean_text(value, MAX_NAME) if isinstance(value, str) and value else None


def _readable(signature: str | bytes | None) -> str | None:
    """What a letter can show of it, whatever somebody wrote there."""
    text = text_of(signature)
    return None if text is None else clean_text(text, LONGEST)


# --- revoked keys -------------------------------------------------------------------------------------------------


def revoke(t: Transaction, key: str, by: str, reason: str | None) -> tuple[Revocation, bool]:
    who = clean_text(by, 200)
    said = None if reason is None else clean_text(reason, MAX_MESSAGE)
    is_new = t.run("revoke_signer", key=key, by=who, reason=said) == 1
    if is_new:
        audit.note(t, who, "signing.revoke", key, EVERY, {"reason": said})
    row = t.one("revoked_signer", key=key)
    assert row is not None
    return _revocation(row), is_new


def unrevoke(t: Transaction, key: str, by: str) -> Revocation | None:
    row = t.one("revoked_signer", key=key)
    if row is None or t.run("unrevoke_signer", key=key) == 0:
        return None
    audit.note(t, clean_text(by, 200), "signing.unrevoke", key, EVERY, {"reason": row["reason"]})
    return _revocation(row)


def revocations(t: Transaction) -> list[Revocation]:
    return [_revocation(row) for row in t.all("revoked_signers")]


def _revocation(row: Row) -> Revocation:
    return Revocation(row["key"], instant(row["revoked_at"]), row["revoked_by"], row["reason"])
