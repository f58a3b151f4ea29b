"""News: events that are no job's move, told in the transaction of the fact that they tell; and what is published.

Theory of operation. News are events of job 0 with a number of their own, and a row of `unstuck_news` that says what
they are about. So they get their place in the feed as every event does, and no history of a job has them. A handler's
are written under its fence: token and claim id stand in the WHERE of the statement that writes them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

from unstuck.model.errors import StoreBusy
from unstuck.model.job import AttemptRef
from unstuck.model.news import MOST_OF_TENANT, NewsItem, Publication
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.port import EVERY, Published, Verdict
from unstuck.store.port.webhooks import HELD
from unstuck.store.rows import instant_or_none, packed, span
from unstuck.store.untold import Untold, is_careful
from unstuck.telemetry import emit

#: Of a piece of news what its event says; the rest says what it is about.
_SAID: Final = ("kind", "data", "run", "token")
#: How often a publication looks again for one of its key that was there a moment ago.
_LOOKS: Final = 5
#: Characters of what the database said when it refused one.
MAX_PROBLEM: Final = 500


def tell(t: Transaction, news: Iterable[NewsItem]) -> None:
    """In this order, behind what the transaction has told so far. What the database refuses is left out."""
    rows = [_columns(one) for one in news]
    if is_careful():
        for row in rows:
            if (refusal := t.apart(partial(_tell, t, [row]))) is not None:
                _note_untold(t, row["kind"], refusal)
    elif rows:
        try:
            _tell(t, rows)
        except Exception as error:
            if t.is_refusal(error):
                raise Untold from error
            raise


def _tell(t: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    if not t.one_table_per_statement:
        t.run("add_news", rows=packed(rows))
        return
    for row in rows:
        said = {name: row[name] for name in _SAID}
        _tell_one(t, t.one("add_news", **{name: row[name] for name in row if name not in _SAID}), **said)


def _note_untold(t: Transaction, kind: str, refusal: Exception) -> None:
    """For people, until one of them takes note; if the database refuses that, too, the log alone has it."""
    problem = clean_text(str(refusal).partition("\n")[0] or type(refusal).__name__, MAX_PROBLEM)
    emit("store.not_told", level=logging.WARNING, kind=kind, problem=problem)
    facts = {
        "title": "The feed lacks news",
        "message": f"{kind} could not be stored: {problem}; what it tells of has happened all the same",
        "link": "unstuck events",
    }
    t.apart(lambda: t.run("notify", **facts, severity="warning", tenant=EVERY, workflow=""))


def of_all(tenant: str | None) -> str | None:
    """Whose news it is, of things that may be every tenant's and are then shown to the platform alone."""
    return None if tenant == EVERY else tenant


def publish(t: Transaction, tenant: str, given: Publication, by: str, key: str, job: int | None) -> Published:
    """By whoever has a way to the database. The same key again tells nothing."""
    facts = _published(given) | {"tenant": tenant, "by": clean_text(by, MAX_NAME), "key": f"id:{key}", "job": job}
    for _ in range(_LOOKS):
        if (told := _write(t, "publish", facts, given)) is not None:
            return Published(told["number"], instant_or_none(told["expires_at"]))
        if (known := t.one("published", tenant=tenant, key=facts["key"])) is not None:
            return Published(known["number"], instant_or_none(known["expires_at"]), is_repeat=True)
        # It was forgotten between the two: its key is free, as for whoever comes a moment later.
    raise StoreBusy(f"what was published as {key} comes and goes; nothing was written, try again")


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
    """What is older than the feed, and what its publisher gave less time."""
    facts = {"kept": span(kept), "held": span(HELD), "batch": batch, "past": past}
    return _forgotten(database, database.read(lambda t: t.all("old_news", **facts)))


def forget_surplus(database: Database, batch: int, past: int) -> int:
    """What is too many of a tenant. The look counts all that is published: it is for now and then."""
    return _forgotten(database, database.read(lambda t: _surplus(t, batch, past)))


def _surplus(t: Transaction, batch: int, past: int) -> list[Row]:
    found: list[Row] = []
    for row in t.all("surplus_from", most=MOST_OF_TENANT):
        found += t.all("surplus_news", tenant=row["tenant"], upto=row["upto"], batch=past + batch - len(found))
        if len(found) >= past + batch:
            break
    return found[past:]


def _forgotten(database: Database, rows: Sequence[Row]) -> int:
    numbers = [row["number"] for row in rows]
    return database.write(lambda t: _forget(t, numbers)) if numbers else 0


def _forget(t: Transaction, numbers: Sequence[int]) -> int:
    """What somebody holds stays until the next time."""
    gone = [row["number"] for row in t.all("free_news", numbers=list(numbers))]
    if gone:
        t.run("forget_news", numbers=gone)
        t.run("forget_news_events", numbers=gone)
    return len(gone)
