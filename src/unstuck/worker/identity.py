"""The identity of this worker: enough for other workers on the same host to see, later, that it is gone."""

from __future__ import annotations

import os

from unstuck import machine
from unstuck.store.port import NewWorker


def identify(
    incarnation: str, name: str | None, queues: tuple[str, ...], code_version: str, lease: float
) -> NewWorker:
    host, pid = machine.host(), os.getpid()
    return NewWorker(
        incarnation=incarnation,
        name=name or f"{host}:{pid}",
        host=host,
        boot_id=machine.boot_id(),
        pid_namespace=machine.pid_namespace(),
        pid=pid,
        pid_start=machine.start_of(pid),
        queues=queues,
        code_version=code_version,
        lease=lease,
    )
