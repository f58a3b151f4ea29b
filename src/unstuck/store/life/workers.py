"""Workers: how an incarnation of a worker is entered, leaves, or is seen to be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstuck.clock import boot
from unstuck.model.errors import UnknownWorker
from unstuck.model.job import WorkerRecord
from unstuck.model.news import NewsItem, NewsKind
from unstuck.store.database import Row, Transaction
from unstuck.store.life import news
from unstuck.store.port import NewWorker
from unstuck.store.rows import packed, span, worker_of


def register(t: Transaction, worker: NewWorker, *, is_remote: bool = False) -> WorkerRecord:
    """`is_remote`: whoever writes this for it has another clock than its host, which says nothing of that one."""
    is_new = t.run(
        "register_worker",
        incarnation=worker.incarnation,
        name=worker.name,
        host=worker.host,
        boot_id=worker.boot_id,
        pid_namespace=worker.pid_namespace,
        pid=worker.pid,
        pid_start=worker.pid_start,
        queues=packed(worker.queues),
        code_version=worker.code_version,
        lease=span(worker.lease),
        info=packed(worker.info),
        boot_at=None if is_remote else span(boot()),
    )
    row = t.one("worker_by_incarnation", incarnation=worker.incarnation)
    if row is None:
        raise UnknownWorker(worker.name)
    if is_new:
        facts = {"queues": list(worker.queues), "code_version": worker.code_version}
        news.tell(t, [_news(NewsKind.WORKER_JOINED, row, facts)])
    return worker_of(row)


def leave(t: Transaction, worker: int) -> None:
    rows = t.all("leave", worker=worker)
    news.tell(t, [_news(NewsKind.WORKER_LEFT, row, {}) for row in rows])


def mark_lost(t: Transaction, workers: Sequence[int], grace: int) -> int:
    """Those that are silent. One that drained, or fenced itself, keeps that word, and is told as lost all the same:
    it did not leave in order."""
    rows = t.all("mark_lost", workers=list(workers), grace=grace)
    lost = [_news(NewsKind.WORKER_LOST, row, {"reason": row["reason"]}) for row in rows]
    news.tell(t, lost)
    return len(lost)


def _news(kind: NewsKind, row: Row, facts: dict[str, Any]) -> NewsItem:
    return NewsItem(kind, {"number": row["id"], "host": row["host"], "pid": row["pid"], **facts}, worker=row["name"])
