"""News: events that are no job's move, told in the transaction of the fact that they tell; and what is published.

Theory of operation. News are events of job 0 with a number of their own, and a row of `unstuck_news` that says what
they are about. So they get their place in the feed as every event does, and no history of a job has them. A handler's
are written under its fence: token and claim id stand in the WHERE of the statement that writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from unstuck.model.job import AttemptRef
from unstuck.model.news import MOST_OF_TENANT, NewsItem, Publication
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.port import EVERY, Published, Verdict
from unstuck.store.rows import instant_or_none, packed, span


def tell(t: Transaction, news: Iterable[NewsItem]) -> None:
    """In this order, behind what the transaction has told so far."""
    rows = [_columns(one) for one in news]
    if not rows:
        return
    if not t.one_table_per_statement:
        t.run("add_news", rows=packed(rows))
        return
    for row in rows:
        said = {name: row.pop(name) for name in ("kind", "data", "run", "token")}
        _tell_one(t, t.one("add_news", **row), **said)


def of_all(tenant: str | None) -> str | None:
    """Whose news it is, of things that may be every tenant's and are then shown to the platform alone."""
    return None if tenant == EVERY else tenant


def publish(t: Transaction, tenant: str, given: Publication, by: str, key: str, job: int | None) -> Published:
    """By whoever has a way to the database. The same key again tells nothing."""
    facts = _published(given) | {"tenant": tenant, "by": clean_text(by, MAX_NAME), "key": f"id:{key}", "job": job}
    told = _write(t, "publish", facts, given)
    if told is not None:
        return Published(told["number"], instant_or_none(told["expires_at"]))
    known = t.one("published", tenant=tenant, key=facts["key"])
    assert known is not None, "what stands in the way of a key is there"
    return Published(known["number"], instant_or_none(known["expires_at"]), is_repeat=True)


def publish_from(t: Transaction, ref: AttemptRef, place: int, given: Publication) -> Verdict:
    """By a handler: `place` counts what its attempt publishes, and the same one again tells nothing."""
    fence = {"job": ref.job, "token": ref.token, "claim": ref.claim}
    told = _write(t, "publish_from", _published(given) | fence | {"key": f"{ref.job}:{ref.token}:{place}"}, given)
    if told is None and t.one("holds_attempt", **fence) is None:
        return Verdict.FENCED
    return Verdict.DONE


def _write(t: Transaction, statement: str, facts: dict[str, Any], given: Publication) -> Row | None:
    """None: it is told already, or its attempt is not its worker's any more."""
    if not t.one_table_per_statement:
        return t.one(statement, **facts, kind=given.kind, data=given.data)
    row = t.one(statement, **facts)
    if row is not None:
        _tell_one(t, row, given.kind, given.data, row["run"], row["token"])
    return row


def _tell_one(t: Transaction, row: Row | None, kind: str, data: str, run: int = 0, token: int = 0) -> None:
    assert row is not None
    event = {"job": 0, "number": row["number"], "at": row["told_at"], "kind": kind, "run": run, "token": token}
    t.run("add_events", rows=packed([{**event, "data": data}]))


def _columns(news: NewsItem) -> dict[str, Any]:
    facts = {name: value for name, value in news.data.items() if value is not None}
    return asdict(replace(news, data={})) | {"kind": str(news.kind), "data": packed(facts)}


def _published(given: Publication) -> dict[str, Any]:
    return {"topic": given.topic, "ttl": None if given.ttl is None else span(given.ttl)}


# --- what is forgotten --------------------------------------------------------------------------------------------


def forget(database: Database, kept: float, batch: int, past: int) -> int:
    """What is older than the feed, what its publisher gave less time, and what is too many of a tenant."""
    numbers = database.read(lambda t: _forgettable(t, span(kept), batch, past))
    return database.write(lambda t: _forget(t, numbers)) if numbers else 0


def _forgettable(t: Transaction, kept: int, batch: int, past: int) -> list[int]:
    numbers = [row["number"] for row in t.all("old_news", kept=kept, batch=batch, past=past)]
    if len(numbers) < batch:
        for row in t.all("surplus_from", most=MOST_OF_TENANT):
            surplus = t.all("surplus_news", tenant=row["tenant"], upto=row["upto"], batch=batch - len(numbers))
            numbers += [one["number"] for one in surplus]
            if len(numbers) >= batch:
                break
    return sorted(set(numbers))


def _forget(t: Transaction, numbers: Sequence[int]) -> int:
    """What somebody holds stays until the next time."""
    gone = [row["number"] for row in t.all("free_news", numbers=list(numbers))]
    if gone:
        t.run("forget_news", numbers=gone)
        t.run("forget_news_events", numbers=gone)
    return len(gone)
