"""Submit: keys first, then the rows. Insert-only, so that it waits for nobody but a twin with the same key.

A job that is held or waits for others is born PENDING: its history says why from the beginning, and it stands in no
queue. What it waits for must exist, or be born with it; a cycle can only be made inside one batch. Queue caps are
counted, and the blacklist is asked, after the insert in the same transaction: what must not be is never committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unstuck.model.dependencies import cycle
from unstuck.model.errors import IdConflict, InvalidInput, KeyConflict, NotStorable, StoreBusy
from unstuck.model.job import AfterFailure, NewJob, ids_of, patterns_of, payloads_of, signatures_of, traces_of
from unstuck.model.lifecycle import JobState
from unstuck.model.names import LIFE
from unstuck.model.payload import check_text
from unstuck.model.policy import LONGEST
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.flow import pending
from unstuck.store.guard import audit, breaker
from unstuck.store.hint import ANYWHERE, Hint
from unstuck.store.order import caps
from unstuck.store.order.name_ids import Numbers
from unstuck.store.port import EVERY, Submitted
from unstuck.store.rows import microseconds, packed, span

MAX_PRIORITY = 1_000_000  # a step is a minute of age: two years
MOST_AFTER = 100
AFTER_FAILURES: tuple[AfterFailure, ...] = ("fail", "run")
CHUNK_JOBS = 1000
CHUNK_CHARACTERS = 4 << 20

Key = tuple[str, str]


class Door:
    """What the last submit of a store met. Where caps or the blacklist ask for more than one statement, the next one
    does not try with one."""

    def __init__(self) -> None:
        self.is_watched = False


class Plain(NamedTuple):
    """What one statement must know of jobs that need nothing but their queue, besides their ids and payloads."""

    pattern: NewJob
    facts: Mapping[str, Any]
    #: One for all of them, or one for each.
    routes: list[int]
    hint: Hint
    until: int
    seen: int | None

    @classmethod
    def of(cls, jobs: Sequence[NewJob], numbers: Numbers) -> Plain | None:
        """Of jobs for which `can_be_at_once`. None: by their workflow's row they need more than that."""
        patterns = patterns_of(jobs)
        first = patterns[0]
        if numbers.stay(first) is not None:
            return None
        facts: dict[str, Any] = {"tenant": first.tenant, "queue": first.queue, "workflow": first.workflow}
        facts |= {"priority": first.priority, "policy": numbers.policy(first)}
        routes = [numbers.route(pattern) for pattern in patterns]
        until = numbers.as_of + span(LIFE)
        return cls(first, facts, routes, Hint.at(routes), until, numbers.seen if numbers.terms else None)

    def routes_of(self, count: int) -> list[int]:
        return self.routes if len(self.routes) == count else self.routes * count


def at_once(database: Database, jobs: Sequence[NewJob], plain: Plain) -> list[Submitted] | None:
    """In one statement, and the hint behind it. None: nothing was stored; a transaction must say why, or do it."""
    if database.one_table_per_statement:
        stored = database.write(lambda t: plainly(t, jobs, plain))
        if stored is not None:
            database.hint(plain.hint)
        return stored
    uids, count = ids_of(jobs), len(jobs)
    signatures, untils = signatures_of(jobs) or (None, None)
    earliest, latest = database.expected_now()
    [row] = database.once(
        "submit_at_once",
        hint=plain.hint,
        uids=uids,
        routes=plain.routes_of(count),
        payloads=payloads_of(jobs),
        traces=traces_of(jobs),
        signatures=signatures,
        untils=untils,
        jobs=count,
        earliest=earliest,
        latest=min(latest, plain.until),
        seen=plain.seen,
        **plain.facts,
    )
    if not row["is_open"]:
        return None
    if row["born"] == count:
        return [Submitted(uid, True) for uid in uids]
    born = dict.fromkeys(json.loads(row["uids"] or "[]"), True)
    return [Submitted(uid, created=born.pop(uid, False)) for uid in uids]


def can_be_at_once(jobs: Sequence[NewJob]) -> bool:
    """One batch of calls that need nothing but their queue, and differ in no more than what they say and how they are
    limited."""
    patterns = patterns_of(jobs)
    first = patterns[0]
    return is_one_chunk(jobs) and all(
        job.target is None
        and job.key is None
        and job.start_at is None
        and job.replay_of is None
        and job.made_by is None
        and not (job.delay or job.tags or job.on_hold or job.after or job.has_given_id)
        and job.workflow == first.workflow
        and job.said == first.said
        and job.tenant == first.tenant
        and job.queue == first.queue
        and job.priority == first.priority
        and (job.policy is first.policy or job.policy == first.policy)
        for job in patterns
    )


def alone(database: Database, jobs: Sequence[NewJob], numbers: Numbers) -> list[Submitted] | None:
    """The same for jobs that need more than their queue, where one statement makes that too: targets, tags, delays,
    a stay in the queue. None: nothing was stored."""
    earliest, latest = database.expected_now()
    facts: dict[str, int | None] = {"earliest": earliest, "latest": min(latest, numbers.as_of + span(LIFE))}
    facts["seen"] = numbers.seen if numbers.terms else None
    columns = [_columns(place, job, numbers) for place, job in enumerate(jobs)]
    rows = database.once("submit_jobs", hint=ANYWHERE, rows=packed(columns), alone=1, **facts)
    born = dict.fromkeys((row["uid"] for row in rows), True)
    return [Submitted(uid, born.pop(uid, False)) for uid in ids_of(jobs)] if born else None


def can_be_alone(jobs: Sequence[NewJob]) -> bool:
    return is_one_chunk(jobs) and not any(
        job.key or job.start_at or job.replay_of or job.on_hold or job.after or job.has_given_id
        for job in patterns_of(jobs)
    )


def is_one_chunk(jobs: Sequence[NewJob]) -> bool:
    return len(jobs) <= CHUNK_JOBS and sum(map(len, payloads_of(jobs))) <= CHUNK_CHARACTERS


def plainly(t: Transaction, jobs: Sequence[NewJob], plain: Plain) -> list[Submitted] | None:
    """The same where a statement writes to one table: in a transaction, row by row, which is cheaper there than to
    make a document of a batch and read it again. None: nothing was stored, and `submit` must say why, or do it."""
    door = t.one("submit_door")
    assert door is not None
    if door["is_watched"] or door["now"] > plain.until or plain.seen not in (None, door["seen"]):
        return None
    facts = {**plain.facts, "now": door["now"]}
    nothing = [None] * len(jobs)
    traces, (signatures, untils) = traces_of(jobs) or nothing, signatures_of(jobs) or (nothing, nothing)
    of_each = (ids_of(jobs), plain.routes_of(len(jobs)), payloads_of(jobs), traces, signatures, untils)
    answers = []
    for uid, route, payload, trace, signed, until in zip(*of_each, strict=True):
        said = {"uid": uid, "route": route, "payload": payload, "trace": trace, "signature": signed, "until": until}
        answers.append(Submitted(uid, t.run("submit_plain", **said, **facts) == 1))
    last = door["last"] or 0
    t.run("queue_plain", last=last)
    t.run("tell_plain", last=last)
    return answers


def submit(
    t: Transaction, jobs: Sequence[NewJob], numbers: Numbers, key_life: float, door: Door | None = None
) -> list[Submitted]:
    if t.one_table_per_statement and can_be_at_once(jobs):
        plain = Plain.of(jobs, numbers)
        if plain is not None and (stored := plainly(t, jobs, plain)) is not None:
            return stored
    jobs = list(jobs)  # from here on each is looked at
    owners = _owners(t, jobs, key_life)
    fresh = {job.id: job for job in jobs if owners.get(_key(job), job.id) == job.id}
    waits = _waits(jobs, {job.id: owners.get(_key(job), job.id) for job in jobs})
    born: dict[str, Row] = {}
    for chunk in _chunks(list(fresh.values())):
        born |= _insert(t, [_columns(place, job, numbers) for place, job in enumerate(chunk)])
    _check_given_ids(t, [job for job in jobs if job.has_given_id and owners.get(_key(job), job.id) == job.id], born)
    for row in list(born.values())[:1]:  # one instant and one look for all of them
        numbers.check(row["created_at"], row["seen"])
    pending.begin(
        t, [pending.Beginning(born[job.id], job, waits[job.id]) for job in fresh.values() if job.id in born]
    )
    if door is not None and born:
        door.is_watched = any(row["is_capped"] or row["is_guarded"] for row in born.values())
    if any(row["is_capped"] for row in born.values()):
        caps.check(t, [fresh[uid] for uid in born])
    if any(row["is_guarded"] for row in born.values()):
        breaker.admit(t, [(row["id"], fresh[uid]) for uid, row in born.items()])
    for job in (fresh[uid] for uid in born):
        if job.replay_of is not None:
            audit.note(t, job.replay_by or "?", "jobs.replay", job.replay_of, job.tenant, {"job": job.id})
    answers = []
    for job in jobs:
        owner = owners.get(_key(job), job.id)
        answers.append(Submitted(owner, created=owner == job.id and born.pop(owner, None) is not None))
    return answers


def _check_given_ids(t: Transaction, jobs: Sequence[NewJob], born: Mapping[str, Row]) -> None:
    """IdConflict if what is stored under an id is another call than was asked for, or another tenant's: which of
    the two, nobody is told."""
    ids = {job.id for job in jobs}
    if len(jobs) == len(ids & born.keys()):
        return  # all are new, and none is there twice
    calls = {row["uid"]: row for row in t.all("calls_of_jobs", uids=sorted(ids))}
    for job in jobs:
        call = calls.get(job.id)
        if call is None:
            raise StoreBusy(f"job {job.id} was forgotten while it was looked at; nothing was written, try again")
        if (job.tenant, job.workflow, job.payload) != (call["tenant"], call["workflow"], call["payload"]):
            raise IdConflict(job.id)


def expect(t: Transaction, jobs: Sequence[NewJob]) -> None:
    """The refusals that can be seen before anything is made for these jobs; the submit itself decides."""
    pending.check_known(t, jobs)
    # Who has a key, or an id of the caller's, may be here already.
    unkeyed = [job for job in jobs if job.key is None and not job.has_given_id]
    breaker.expect(t, unkeyed)
    caps.expect(t, unkeyed)


def _waits(jobs: Sequence[NewJob], known_as: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Whom each job waits for; a twin by the key of an earlier job is that job."""
    waits = {job.id: tuple(dict.fromkeys(known_as.get(other, other) for other in job.after)) for job in jobs}
    if circle := cycle({known_as[job]: others for job, others in waits.items() if known_as[job] == job}):
        raise InvalidInput(f"these jobs would wait for each other for ever: {' after '.join(circle)}")
    return waits


def _key(job: NewJob) -> Key | None:
    return None if job.key is None else (job.tenant, job.key)


def _owners(t: Transaction, jobs: Sequence[NewJob], key_life: float) -> dict[Key | None, str]:
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
    ours = {(row["tenant"], row["key"]) for row in t.all("add_keys", rows=packed(rows), life=span(key_life))}
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


def _insert(t: Transaction, rows: list[dict[str, Any]]) -> dict[str, Row]:
    born = t.all("submit_jobs", rows=packed(rows), alone=0, earliest=0, latest=0, seen=None)
    if t.one_table_per_statement and born:
        _insert_by_steps(t, rows, packed([row["id"] for row in born]))
    appointed = {row["uid"] for row in rows if row["start_at"] is not None}
    if appointments := [row["id"] for row in born if row["uid"] in appointed]:
        t.run("appoint", jobs=appointments)
    return {row["uid"]: row for row in born}


def _insert_by_steps(t: Transaction, rows: list[dict[str, Any]], numbers: str) -> None:
    """SQLite has no writing CTEs: a statement per table, and none for a table that gets nothing."""
    t.run("submit_ready", jobs=numbers)
    t.run("submit_events", jobs=numbers)
    if any(row["target"] is not None for row in rows):
        t.run("submit_line", jobs=numbers)
        t.run("submit_inbox", jobs=numbers)
    if any(row["delay"] or row["start_at"] is not None or row["expires_after"] is not None for row in rows):
        t.run("submit_timers", jobs=numbers)
    if any(row["tags"] for row in rows):
        t.run("submit_tags", jobs=numbers)


def _columns(place: int, job: NewJob, numbers: Numbers) -> dict[str, Any]:
    is_pending = job.on_hold or bool(job.after)
    expires = numbers.stay(job)
    return {
        "place": place,
        "uid": job.id,
        "tenant": job.tenant,
        "queue": job.queue,
        "workflow": job.workflow,
        "route": numbers.route(job),
        "target": numbers.target(job),
        "priority": job.priority,
        "payload": job.payload,
        "policy": numbers.policy(job),
        "start_at": None if job.start_at is None else microseconds(job.start_at),
        "delay": span(job.delay),
        # The stay in the queue begins when it is released.
        "expires_after": None if expires is None or is_pending else span(expires),
        "key": job.key,
        "tags": packed(job.tags) if job.tags else None,
        "state": JobState.PENDING if is_pending else JobState.QUEUED,
        "event_count": 2 if is_pending else 1,
        "on_hold": int(job.on_hold),
        "after_failure": job.after_failure if job.after else None,
        "replay_of": job.replay_of,
        "made_by": job.made_by,
        "trace": job.trace,
        "span": job.span,
        "signature": job.signature,
        "signed_until": job.signed_until,
    }


def check(jobs: Sequence[NewJob]) -> None:
    """Before anything is written: both databases refuse the same things with the same words."""
    is_clean = are_clean(jobs)
    for job in patterns_of(jobs) if is_clean else jobs:
        check_priority(job.priority)
        if not 0 <= job.delay <= LONGEST:
            raise InvalidInput(f"a delay of {job.delay} seconds is not between 0 and {LONGEST:g}")
        if len(job.after) > MOST_AFTER:
            raise InvalidInput(f"job {job.id} waits for {len(job.after)} others; the limit is {MOST_AFTER}")
        if job.after_failure not in AFTER_FAILURES:
            raise InvalidInput(f"after_failure={job.after_failure!r} is not one of {', '.join(AFTER_FAILURES)}")
        if EVERY in (job.tenant, job.target):
            raise InvalidInput(f"{EVERY} stands for all of them and names none")
        if not is_clean:
            check_text(job.payload, "the payload")
            for name in (job.id, *_names(job)):
                check_text(name, "a name")


def check_priority(priority: int) -> None:
    if not -MAX_PRIORITY <= priority <= MAX_PRIORITY:
        raise InvalidInput(f"priority {priority} is not between -{MAX_PRIORITY} and {MAX_PRIORITY}")


def are_clean(jobs: Sequence[NewJob]) -> bool:
    """One look at all texts of a batch together; what it finds is then looked for in each."""
    names = {name for job in patterns_of(jobs) for name in _names(job)}
    try:
        check_text("".join([*names, *ids_of(jobs), *payloads_of(jobs)]), "a batch")
    except NotStorable:
        return False
    return True


def _names(job: NewJob) -> Iterator[str]:
    texts = (job.tenant, job.queue, job.workflow, job.key, job.fingerprint, job.target, job.limit_key)
    return filter(None, (*texts, *job.tags, *job.after, job.replay_of))
