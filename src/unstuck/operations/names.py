"""Names that are in use: what a list is asked about, or a pause set for, may be a typing error."""

from __future__ import annotations

from unstuck.observe.lookup import WORKERS_SHOWN, every_worker
from unstuck.operations.table import Caller
from unstuck.store.port import EVERY

FEW = 5


def unheard_of(caller: Caller, kind: str, name: str) -> tuple[str, ...] | None:
    """None: somebody has used this name, or nobody can tell. Else those that may have been meant."""
    known = names_of(caller, kind, name)
    if known is None or name in known:
        return None
    from difflib import get_close_matches

    return tuple(get_close_matches(name, known, 1) or (sorted(known) if len(known) <= FEW else []))


def names_of(caller: Caller, kind: str, like: str = "") -> set[str] | None:
    """The names of a kind that are known and cheap to list; None where nothing can be said."""
    match kind:
        case "workflow":
            with_jobs = caller.store.tallies("workflow", caller.one, limit=100, ceiling=1)
            return {w.name for w in caller.store.workflows(caller.one)} | {tally.name for tally in with_jobs}
        case "queue":
            return queue_names(caller)
        case "tenant" if like != EVERY:
            near = {t.name for t in caller.gates.tenants(limit=1000)}
            return near | ({like} if caller.store.tenant(like) else set()) | {"default"}
        case _:
            return None


def queue_names(caller: Caller) -> set[str]:
    """Those that workflows and workers name, and where this tenant has had jobs."""
    named = {w.queue for w in caller.store.workflows(caller.one)}
    for worker in every_worker(caller.store, WORKERS_SHOWN):
        named |= {*worker.queues, *worker.serves.get("queues", ())}
    return named | {tally.name for tally in caller.store.tallies("queue", caller.one, limit=100, ceiling=1)}
