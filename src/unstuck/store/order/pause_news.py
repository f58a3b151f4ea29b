"""What is told of a pause: whom it is about depends on what is paused."""

from __future__ import annotations

from unstuck.model.news import NewsItem, NewsKind
from unstuck.store.database import Row
from unstuck.store.rows import instant

#: Who ended what nobody ended.
BY_TIME = "time"


def pause_news(kind: NewsKind, row: Row, by: str) -> NewsItem:
    what, until = row["kind"], row["until_at"]
    data = {"pause": what, "name": row["name"], "by": by, "reason": row["reason"]}
    if kind is NewsKind.PAUSE_BEGUN and until is not None:
        data["until"] = instant(until).isoformat()
    about = {} if what == "tenant" else {what: row["name"]}
    return NewsItem(kind, data, tenant=row["tenant"], **about)
