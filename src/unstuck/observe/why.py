"""Why: why a job is not running, from the claim's own gates."""

from __future__ import annotations

from datetime import timedelta

from unstuck.model.errors import StoreBusy, StoreError, UnknownJob
from unstuck.model.job import DEFAULT_TENANT
from unstuck.model.spelling import ending_session
from unstuck.model.times import Times
from unstuck.model.why import Why, explain, lasting, session_named
from unstuck.model.why.facts import HELD_TOO_LONG, Facts
from unstuck.store.port import LockHolder, Store


def why(store: Store, tenant: str, job: str, times: Times | None = None) -> Why:
    """About the job with this whole id; the store's clock decides what has passed."""
    facts = _standing(store, tenant, job)
    if facts is None:
        raise UnknownJob(job, None if tenant == DEFAULT_TENANT else tenant)
    return explain(facts, facts.at, times)


def _standing(store: Store, tenant: str, job: str) -> Facts | None:
    """Where a table is locked even against reading there are no facts; who locked it can be told all the same."""
    try:
        return store.gate_facts(tenant, job)
    except StoreBusy as error:
        raise StoreBusy(with_holder(store, error)) from error


def with_holder(store: Store, error: StoreBusy) -> str:
    """What it says, and what locked us out, if a session did."""
    try:
        found = store.lock_holders(HELD_TOO_LONG)
    except StoreError:
        found = []
    return f"{error}. {holding(found[0])}: {ending_session(found[0].session.pid)}" if found else str(error)


def holding(holder: LockHolder) -> str:
    """Who holds what, for how long, and how many wait for it."""
    held_for = "" if holder.held_for is None else f" for {lasting(timedelta(seconds=holder.held_for))}"
    waiting = f", {holder.waiting} waiting for it" if holder.waiting else ""
    few = ", ".join(holder.held[:3]) + (" …" if len(holder.held) > 3 else "")
    return f"{session_named(holder.session)} has held {few}{held_for}{waiting}"
