"""Dead letters: written in the transaction of the end that they are about, with the news of it; read, discarded and
forgotten. The verbs that let their jobs run again take them away (`life/control.py`).

A letter belongs to its job: whoever waits for one holds its job's row. Retention passes by those that are held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from unstuck.model.dead_letters import EXHAUSTED, LINK, TITLE, sentence_of
from unstuck.model.errors import NoDeadLetter
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import clean_text
from unstuck.model.settlement import ErrorInfo
from unstuck.model.signing import LONGEST_ENVELOPE
from unstuck.model.spelling import given
from unstuck.model.why import of_tenant
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE, cleaned
from unstuck.store.port import MOST_CHARACTERS, DeadLetter, LetterFilter, NewLetter
from unstuck.store.rows import instant, letter_terms, packed, terms_of, text_of

_LAST = 1 << 62
#: Rows that are read at once: each may hold an envelope that somebody has blown up.
_AT_ONCE = 100


def add(t: Transaction, letters: Sequence[NewLetter]) -> None:
    """One per run: a repeat leaves the first, and is no news."""
    if not letters:
        return
    rows = [asdict(replace(letter, message=clean_text(letter.message, MAX_MESSAGE))) for letter in letters]
    added = t.all("add_dead_letters", rows=packed(rows))
    by_run = {(letter.job, letter.run): letter for letter in letters}
    told = [(row, by_run[row["job"], row["run"]]) for row in added]
    news.tell(
        t,
        [
            NewsItem(
                NewsKind.DEAD_LETTER,
                {"reason": letter.reason, "message": clean_text(letter.message, 500)},
                job=row["job"],
                run=row["run"],
            )
            for row, letter in told
        ],
    )
    for (tenant, workflow, reason), number in Counter(
        (row["tenant"], row["workflow"], row["reason"]) for row in added
    ).items():
        _notify(t, tenant, workflow, reason, number)


def exhausted(t: Transaction, ended: Sequence[tuple[Row, ErrorInfo | None]]) -> list[NewLetter]:
    """Of runs that ended FAILED or TIMEOUT in this transaction: the rows of their attempts, and what went wrong."""
    jobs = [row["job"] for row, _ in ended]
    found = {row["id"]: row for row in t.all("addresses_of_letters", jobs=jobs, longest=LONGEST_ENVELOPE)}
    return [
        NewLetter(
            job=row["job"],
            run=row["run"],
            tenant=found[row["job"]]["tenant"],
            queue=found[row["job"]]["queue"],
            workflow=found[row["job"]]["workflow"],
            reason=EXHAUSTED,
            message=": ".join(part for part in cleaned(error) if part),
            signature=text_of(found[row["job"]]["signature"]),
        )
        for row, error in ended
    ]


def _notify(t: Transaction, tenant: str, workflow: str, reason: str, number: int) -> None:
    """One open notification per tenant, workflow and reason, which counts: a thousand letters are one piece of news.
    What comes while another transaction has it in its hands is not counted: nobody waits to be counted."""
    place = {"title": TITLE.format(reason=reason), "link": LINK, "tenant": tenant, "workflow": workflow}
    open_one = t.one("open_notification", **place)
    if open_one is not None:
        t.run("count_notification", number=open_one["id"], more=number)
        return
    look = f"unstuck dead-letters {given('--reason', reason)} {of_tenant(tenant)}".rstrip()
    message = (
        f"dead letters of {workflow} ({reason}: {sentence_of(reason)}). See which: {look}; then: unstuck why JOB"
    )
    audit.add_notification(t, **place, message=clean_text(message, MAX_MESSAGE), severity="warning", count=number)


def page(
    t: Transaction, tenant: str | None, filter: LetterFilter, before: int | None, limit: int
) -> list[DeadLetter]:
    """Some at a time, and no more once they hold as much text as a page may. One whose job is gone is not shown."""
    statement, whose = ("dead_letters", {}) if tenant is None else ("dead_letters_of", {"tenant": tenant})
    asked = {
        "workflow": filter.workflow,
        "queue": filter.queue,
        **letter_terms(filter.terms),
        **terms_of(filter.within),
    }
    found: list[DeadLetter] = []
    below, held = _LAST if before is None else before, 0
    while held < MOST_CHARACTERS and (few := min(_AT_ONCE, limit - len(found))) > 0:
        rows = t.all(statement, **whose, **asked, below=below, most=few)
        for row in rows:
            below = row["id"]
            if row["uid"] is None:
                continue
            found.append(letter_of(row))
            held += found[-1].characters
            if held >= MOST_CHARACTERS:
                break
        if len(rows) < few:
            break
    return found


def one(t: Transaction, tenant: str, uid: str) -> DeadLetter | None:
    row = t.one("dead_letter", tenant=tenant, uid=uid)
    return None if row is None else letter_of(row)


def discard(t: Transaction, tenant: str, uid: str, by: str) -> DeadLetter:
    """Behind the job's row, as whoever lets it run again: of the two only one finds the letter."""
    place = t.one("job", tenant=tenant, uid=uid)
    if place is not None:
        t.one("lock_job", job=place["number"])
    letter = one(t, tenant, uid)
    if place is None or letter is None:
        raise NoDeadLetter(uid)
    t.run("drop_dead_letters", job=place["number"])
    audit.note(t, by, "dead_letters.discard", uid, tenant, {"reason": letter.reason, "workflow": letter.workflow})
    return letter


def letter_of(row: Row) -> DeadLetter:
    return DeadLetter(
        number=row["id"],
        job=row["uid"],
        run=row["run"],
        tenant=row["tenant"],
        queue=row["queue"],
        workflow=row["workflow"],
        reason=row["reason"],
        message=row["message"],
        signature=row["signature"],
        created_at=instant(row["created_at"]),
    )
