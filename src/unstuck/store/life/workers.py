"""Workers: how an incarnation of a worker is entered."""

from __future__ import annotations

from unstuck.clock import boot
from unstuck.model.errors import UnknownWorker
from unstuck.model.job import WorkerRecord
from unstuck.store.database import Transaction
from unstuck.store.port import NewWorker
from unstuck.store.rows import packed, span, worker_of


def register(t: Transaction, worker: NewWorker) -> WorkerRecord:
    t.run(
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
        boot_at=span(boot()),
    )
    row = t.one("worker_by_incarnation", incarnation=worker.incarnation)
    if row is None:
        raise UnknownWorker(worker.name)
    return worker_of(row)
