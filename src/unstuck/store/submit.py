"""Submit: keys first, then the rows. Insert-only, so that it waits for nobody but a twin with the same key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unstuck.model.errors import InvalidInput, KeyConflict
from unstuck.model.job import NewJob
from unstuck.model.payload import check_text
from unstuck.model.policy import LONGEST
from unstuck.store.database import Transaction
from unstuck.store.dimensions import Dimensions
from unstuck.store.port import Submitted
from unstuck.store.rows import microseconds, packed, span

KEY_LIFE = 86400.0
MAX_PRIORITY = 1_000_000  # a step is a minute of age: two years
CHUNK_JOBS = 1000
CHUNK_CHARACTERS = 4 << 20

Key = tuple[str, str]


def submit(t: Transaction, jobs: Sequence[NewJob], dimensions: Dimensions, split: bool) -> list[Submitted]:
    owners = _owners(t, jobs)
    fresh = {job.id: job for job in jobs if owners.get(_key(job), job.id) == job.id}
    born: set[str] = set()
    for chunk in _chunks(list(fresh.values())):
        born |= _insert(t, [_columns(place, job, dimensions) for place, job in enumerate(chunk)], split)
    answers = []
    for job in jobs:
        owner = owners.get(_key(job), job.id)
        answers.append(Submitted(owner, created=owner == job.id and owner in born))
        born.discard(job.id)
    return answers


def _key(job: NewJob) -> Key | None:
    return None if job.key is None else (job.tenant, job.key)


def _owners(t: Transaction, jobs: Sequence[NewJob]) -> dict[Key | None, str]:
    """Whom each key belongs to: the first of this batch, or the earlier job that still owns it."""
    first: dict[Key, NewJob] = {}
    for job in jobs:
        if (key := _key(job)) is not None:
            _same_body(first.setdefault(key, job), job)
    if not first:
        return {}
    rows = [
        {"tenant": key[0], "key": key[1], "fingerprint": job.fingerprint or "", "job": job.id}
        for key, job in sorted(first.items())
    ]
    ours = {(row["tenant"], row["key"]) for row in t.all("add_keys", rows=packed(rows), life=span(KEY_LIFE))}
    owners: dict[Key | None, str] = {key: job.id for key, job in first.items()}
    theirs = [row for row in rows if (row["tenant"], row["key"]) not in ours]
    for row in t.all("known_keys", rows=packed(theirs)) if theirs else ():
        key = (row["tenant"], row["key"])
        if row["fingerprint"] != (first[key].fingerprint or ""):
            raise KeyConflict(key[1], row["job"])
        owners[key] = row["job"]
    return owners


def _same_body(first: NewJob, other: NewJob) -> None:
    if first.key is not None and first.fingerprint != other.fingerprint:
        raise KeyConflict(first.key, first.id)


def _chunks(jobs: list[NewJob]) -> Iterator[list[NewJob]]:
    chunk: list[NewJob] = []
    size = 0
    for job in jobs:
        if chunk and (len(chunk) >= CHUNK_JOBS or size + len(job.payload) > CHUNK_CHARACTERS):
            yield chunk
            chunk, size = [], 0
        chunk.append(job)
        size += len(job.payload)
    if chunk:
        yield chunk


def _insert(t: Transaction, rows: list[dict[str, Any]], split: bool) -> set[str]:
    born = t.all("submit_jobs", rows=packed(rows))
    if split and born:
        numbers = packed([row["id"] for row in born])
        t.run("submit_ready", jobs=numbers)
        t.run("submit_timers", jobs=numbers)
        t.run("submit_events", jobs=numbers)
    return {row["uid"] for row in born}


def _columns(place: int, job: NewJob, dimensions: Dimensions) -> dict[str, Any]:
    expires = job.policy.expires_after
    return {
        "place": place,
        "uid": job.id,
        "tenant": job.tenant,
        "queue": job.queue,
        "workflow": job.workflow,
        "route": dimensions.route(job),
        "priority": job.priority,
        "payload": job.payload,
        "policy": dimensions.policy_number(job.policy),
        "start_at": None if job.start_at is None else microseconds(job.start_at),
        "delay": span(job.delay),
        "expires_after": None if expires is None else span(expires),
        "key": job.key,
        "tags": packed(job.tags) if job.tags else None,
    }


def check(jobs: Sequence[NewJob]) -> None:
    """Before anything is written: both databases refuse the same things with the same words."""
    for job in jobs:
        if not -MAX_PRIORITY <= job.priority <= MAX_PRIORITY:
            raise InvalidInput(f"priority {job.priority} is not between -{MAX_PRIORITY} and {MAX_PRIORITY}")
        if not 0 <= job.delay <= LONGEST:
            raise InvalidInput(f"a delay of {job.delay} seconds is not between 0 and {LONGEST:g}")
        check_text(job.payload, "the payload")
        for name in (job.id, job.tenant, job.queue, job.workflow, job.key or "", job.fingerprint or "", *job.tags):
            check_text(name, "a name")
