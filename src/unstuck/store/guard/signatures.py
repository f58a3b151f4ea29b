"""Signatures that a door refused, told to those who watch. What is stored and then refused is told with its end."""

from __future__ import annotations

from typing import Any

from unstuck.model.errors import SignatureRefused
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.store.database import Transaction
from unstuck.store.guard import audit
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE


def tell_refused(t: Transaction, error: SignatureRefused, by: str) -> None:
    """Whose it is stands in `checked`, with what the signature was held against."""
    tenant = str(error.checked["tenant"])
    queue, workflow, job, key = (_name(error.checked.get(what)) for what in ("queue", "workflow", "id", "key"))
    said = {"problem": error.problem, "message": clean_text(str(error), MAX_MESSAGE)}
    news.tell(t, [NewsItem(NewsKind.SIGNATURE_REFUSED, said, tenant, queue=queue, workflow=workflow)])
    audit.note(t, by, "signing.refuse", job or "?", tenant, {**said, "workflow": workflow, "key": key})


def _name(value: Any) -> str | None:
    return clean_text(value, MAX_NAME) if isinstance(value, str) and value else None
