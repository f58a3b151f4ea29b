"""Waits: what parked jobs wait for, what answers them, and what came before anybody asked.

Theory of operation. A wait is a row. An event, a person, the end of the children, or time answers it; the first
transaction that writes the answer, under that row's lock, decides. Events and parks of one address exclude each other
(an advisory lock; SQLite has one writer): a park sees every event that was sent before, and an event sees every wait
that was asked before, so no event passes a wait by. A park that finds the address in use does not look at its events
and leaves an inbox entry: the next ingest looks at them once the address is free. An answer touches nothing but the
row and the inbox, so it cannot wait in a circle. The job itself is woken by the next ingest, or by the janitor whose
timer came due.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from unstuck.model.children import MOST_CHILDREN
from unstuck.model.errors import EventConflict, InvalidInput, NotAsked, NotWaiting, told
from unstuck.model.keys import Within, person_in
from unstuck.model.lifecycle import JobState
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import MAX_NAME, MAX_PAYLOAD, check_text, clean_text
from unstuck.model.policy import LONGEST, Policy
from unstuck.model.waits import (
    BY_SHELL,
    MOST_WAITS,
    Answer,
    Signalled,
    Wait,
    WaitKind,
    WaitRecord,
    spec_of,
)
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children
from unstuck.store.flow.pages import rows_behind
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE, ahead_of
from unstuck.store.read.lookup import job_row
from unstuck.store.rows import address_of, instant, packed, span, terms_of, wait_of

#: An event that nobody waited for in time is forgotten.
UNCLAIMED_LIFE = 86400.0
MAX_KEY = 2 * MAX_NAME
MAX_QUESTION = 8 << 10
MOST_ASKED = 100
#: When the last one of a page was asked, and the number of its job.
_CURSOR = re.compile("([0-9]{1,18}):([0-9]{1,18})")
#: The end of the year 9999, in microseconds: no later instant can be shown to anybody.
_LAST_INSTANT = 253_402_300_799_999_999


def check(wait: Wait) -> None:
    """What a handler asks for reaches us from its process: nothing that a database would refuse may get further."""
    _check_text(wait.key, "the wait's key", MAX_KEY)
    _check_text(wait.name, "the wait's name", MAX_QUESTION if wait.kind is WaitKind.APPROVAL else MAX_NAME)
    _check_text(wait.topic or "", "the topic", MAX_NAME)
    _check_text(wait.default or "", "the default", MAX_PAYLOAD)
    for one in wait.who:
        _check_text(one, "the one who is asked", MAX_NAME)
    for child in wait.children:
        _check_text(child, "the id of a child", MAX_NAME)
    if wait.timeout is not None and not 0 < wait.timeout <= LONGEST:
        raise InvalidInput(f"a wait of {wait.timeout!r} seconds must be above 0 and at most {LONGEST:g}")
    if wait.until is not None and not 0 <= wait.until <= _LAST_INSTANT:
        raise InvalidInput("the instant it waits for lies beyond what a calendar holds")
    if len(wait.children) > MOST_CHILDREN or len(wait.who) > MOST_ASKED:
        raise InvalidInput(f"it waits for more than {MOST_CHILDREN} children, or asks more than {MOST_ASKED} people")


def check_event(event: str, payload: str, topic: str | None, id: str | None = None) -> None:
    _check_text(event, "the event's name", MAX_NAME)
    _check_text(id or "", "the event's id", MAX_NAME)
    _check_text(topic or "", "the topic", MAX_NAME)
    _check_text(payload, "the event's payload", MAX_PAYLOAD)


def _check_text(text: str, what: str, most: int) -> None:
    check_text(text, what)
    if len(text) > most:
        raise InvalidInput(f"{what} has {len(text):,} characters; the limit is {most:,}")


def _hold_address(t: Transaction, tenant: str, address: str) -> None:
    """Until the commit. No lock that others may hold while they want this one is asked for afterwards."""
    if not t.one_table_per_statement:
        t.all("lock_addresses", keys=[_mutex(tenant, address)])


def free_addresses(t: Transaction, addresses: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of (tenant, address) that are free, locked until the commit. A caller that serves many waits for none."""
    wanted = {address: _mutex(*address) for address in addresses}
    if t.one_table_per_statement or not wanted:
        return set(wanted)
    ours = {row["key"] for row in t.all("try_addresses", keys=sorted(set(wanted.values())))}
    return {address for address, key in wanted.items() if key in ours}


def _mutex(tenant: str, address: str) -> int:
    import hashlib

    digest = hashlib.blake2b(f"{tenant}\0{address}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# --- park ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParkingJob:
    """A running job whose row is locked, and what it parks for."""

    row: Row
    wait: Wait
    policy: Policy

    @property
    def address(self) -> str | None:
        return address_of(self.row["uid"], self.wait.topic) if self.wait.kind is WaitKind.EVENT else None

    @property
    def place(self) -> tuple[int, int, str]:
        return self.row["job"], self.row["run"], self.wait.key

    @property
    def wanted_event(self) -> dict[str, Any]:
        """What would answer it."""
        whose = {"job": self.row["job"], "tenant": self.row["tenant"], "run": self.row["run"]}
        return {**whose, "address": self.address, "event": self.wait.name}


def full(t: Transaction, parks: Sequence[tuple[Row, Wait]]) -> set[int]:
    """Those of these running jobs whose run has had all its waits. Each attempt asks once at most, so there is
    nothing to count before a job has had that many attempts."""
    many = [
        {"job": row["job"], "run": row["run"], "key": wait.key} for row, wait in parks if row["token"] > MOST_WAITS
    ]
    found = t.all("count_waits", rows=packed(many), most=MOST_WAITS) if many else ()
    return {row["job"] for row in found if row["waits"] >= MOST_WAITS}


def ask(t: Transaction, askings: Sequence[ParkingJob], told: list[NewsItem]) -> dict[int, Row]:
    """Write down what these jobs wait for, with the answers that have come early: the wait of each job, as a row.
    Questions to people are `told`, behind the moves."""
    if not askings:
        return {}
    free = free_addresses(t, [(one.row["tenant"], one.address) for one in askings if one.address])
    places = [dict(zip(("job", "run", "key"), one.place, strict=True)) for one in askings]
    # The same key twice in one run is the same wait: what answered it then answers it now.
    known = {(row["job"], row["run"], row["key"]): row for row in t.all("waits_asked", rows=packed(places))}
    fresh = [one for one in askings if one.place not in known]
    events = [one for one in fresh if one.address]
    unclaimed = take_unclaimed(t, [one.wanted_event for one in events if (one.row["tenant"], one.address) in free])
    ahead = ahead_of(t) if any(one.wait.until is not None for one in fresh) else 0
    asked = {
        one.row["job"]: known.get(one.place) or _columns(one, unclaimed.get(one.row["job"]), ahead) for one in askings
    }
    if fresh:
        t.run("add_waits", rows=packed([asked[one.row["job"]] for one in fresh]))
        told += [_asked_news(asked[one.row["job"]], one) for one in fresh if one.wait.kind is WaitKind.APPROVAL]
    if late := [one.row["job"] for one in events if (one.row["tenant"], one.address) not in free]:
        announce(t, late)  # to be compared with the unclaimed events there are once their address is free
    gathers = [one for one in askings if one.wait.kind is WaitKind.CHILDREN]
    children.watch(t, {one.row["job"]: one.wait for one in gathers if asked[one.row["job"]]["answer"] is None})
    return asked


def _columns(one: ParkingJob, event_row: Row | None, ahead: int) -> dict[str, Any]:
    row, wait = one.row, one.wait
    until = wait.until + ahead if wait.until is not None else row["now"] + span(wait.limit(one.policy))
    return {
        "job": row["job"],
        "run": row["run"],
        "key": wait.key,
        "tenant": row["tenant"],
        "kind": wait.kind,
        "name": wait.name,
        "address": one.address,
        "spec": packed(spec_of(wait)),
        "token": row["token"],
        "asked_at": row["now"],
        "until_at": until,
        "answer": Answer.EVENT if event_row else None,
        "payload": event_row["payload"] if event_row else None,
        "answered_at": row["now"] if event_row else None,
        "by": event_row["by"] if event_row else None,
        "comment": None,
    }


def _asked_news(wait: Row, one: ParkingJob) -> NewsItem:
    data = {"key": wait["key"], "question": wait["name"], "who": list(one.wait.who) or None}
    data["until"] = instant(wait["until_at"]).isoformat()
    return NewsItem(NewsKind.APPROVAL_ASKED, data, job=wait["job"], run=wait["run"], token=wait["token"])


def decided_news(wait: Row) -> NewsItem:
    """By a person, or by its time."""
    data = {"key": wait["key"], "question": wait["name"], "answer": wait["answer"], "by": wait["by"]}
    data["comment"] = wait["comment"]
    return NewsItem(NewsKind.APPROVAL_DECIDED, data, job=wait["job"], run=wait["run"], token=wait["token"])


def _without_job(wanted: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if name != "job"}


def take_unclaimed(t: Transaction, wanted: Sequence[dict[str, Any]]) -> dict[int, Row]:
    """For each of these jobs, whose addresses are ours, the oldest unclaimed event for it, if there is one."""
    if t.one_table_per_statement:
        taken = {one["job"]: t.one("take_unclaimed_event", **_without_job(one)) for one in wanted}
        return {job: event_row for job, event_row in taken.items() if event_row is not None}
    turns: Counter[tuple[str, str, str]] = Counter()
    rows = []
    for one in wanted:
        place = (one["tenant"], one["address"], one["event"])
        rows.append({**one, "turn": turns[place]})
        turns[place] += 1
    return {row["job"]: row for row in t.all("take_unclaimed_events", rows=packed(rows))} if rows else {}


def asked_facts(wait: Row) -> dict[str, Any]:
    """What the history says of a job that parks."""
    return {**named(wait), "until": instant(wait["until_at"]).isoformat()}


def answered_facts(wait: Row) -> dict[str, Any]:
    """What the history says of a job that goes on; the answer itself may be large, and stays with the wait."""
    said = {"answer": wait["answer"], "by": wait["by"] or "janitor", "comment": wait["comment"]}
    at = wait["answered_at"]
    return {**named(wait), **said, "answered_at": None if at is None else instant(at).isoformat()}


def named(wait: Row) -> dict[str, Any]:
    return {"wait": wait["kind"], "name": wait["name"] or None, "key": wait["key"]}


# --- answers ------------------------------------------------------------------------------------------------------


def signal(
    t: Transaction,
    tenant: str,
    event: str,
    payload: str,
    by: str,
    job: str | None,
    topic: str | None,
    id: str | None = None,
) -> Signalled:
    """The oldest wait for it is answered; else it stays unclaimed, under this number; 0 if it was answered. An `id`
    that is known says what became of the event then, and nothing is written; EventConflict if it was another."""
    import hashlib

    address = address_of(job or "", topic)
    _hold_address(t, tenant, address)
    if id is None:
        return _send(t, tenant, address, event, payload, by, job)
    place = {"tenant": tenant, "address": address, "id": id}
    fingerprint = hashlib.sha256(f"{len(event)}:{event}{payload}".encode()).hexdigest()
    known = t.one("known_event_id", **place)
    if known is not None:
        if known["fingerprint"] != fingerprint:
            raise EventConflict(id)
        return Signalled(known["job"], known["number"], is_repeat=True)
    sent = _send(t, tenant, address, event, payload, by, job)
    t.run(
        "keep_event_id",
        **place,
        fingerprint=fingerprint,
        job=sent.job,
        number=sent.number,
        life=span(UNCLAIMED_LIFE),
    )
    return sent


def _send(t: Transaction, tenant: str, address: str, event: str, payload: str, by: str, job: str | None) -> Signalled:
    by = clean_text(by, MAX_NAME)
    while True:
        # Again after each miss: a wait that went while we reached for it may have gone with its run.
        run = None if job is None else _run_to_come(t, tenant, job)
        found = t.one("oldest_wait", tenant=tenant, address=address, event=event, run=run)
        if found is None:
            break
        answer = {"answer": Answer.EVENT, "payload": payload, "by": by, "comment": None}
        if t.run("answer_wait", job=found["job"], run=found["run"], key=found["key"], **answer):
            announce(t, [found["job"]])
            return Signalled(found["uid"], 0)
    sent = {"tenant": tenant, "address": address, "event": event, "payload": payload, "run": run, "by": by}
    kept = t.one("add_unclaimed_event", **sent, life=span(UNCLAIMED_LIFE))
    assert kept is not None
    return Signalled(None, int(kept["id"]))


def _run_to_come(t: Transaction, tenant: str, uid: str) -> int:
    """The run that an event sent now is meant for: of a paused job the one that its resume opens."""
    row = job_row(t, tenant, uid)
    state = JobState(row["state"])
    if state.is_final:
        raise NotWaiting(f"job {uid} has ended ({state}): it waits for no event any more")
    return int(row["run"]) + (state is JobState.PAUSED)


def announce(t: Transaction, jobs: Iterable[int]) -> None:
    t.run("add_inbox", rows=packed([{"target": None, "job": job} for job in jobs]))


def decide(
    t: Transaction, tenant: str, uid: str, answer: Answer, by: str, comment: str | None, key: str | None
) -> WaitRecord:
    """A person's word on the open approval; the first counts, also against a deadline or a cancel."""
    row = job_row(t, tenant, uid)
    said = clean_text(comment, MAX_MESSAGE) if comment else None
    decided = t.all(
        "decide_wait", job=row["number"], key=key, answer=answer, by=clean_text(by, MAX_NAME), comment=said
    )
    if not decided:
        raise NotWaiting(_why_not(t, job_row(t, tenant, uid), key))
    record = wait_of({**decided[0], "uid": uid, "workflow": row["workflow"]})
    if record.wait.who and person_in(by).removesuffix(BY_SHELL) not in record.wait.who:
        raise NotAsked(uid, record.wait.name, record.wait.who, by)
    news.tell(t, [decided_news(decided[0])])
    announce(t, [row["number"]])
    return record


def _why_not(t: Transaction, job: Row, key: str | None) -> str:
    uid, state = job["uid"], JobState(job["state"])
    asked = [wait_of(row) for row in t.all("job_waits", tenant=job["tenant"], uid=uid)]
    if asked and state is JobState.WAITING and (last := asked[-1]).answer is None:
        if last.wait.kind is WaitKind.APPROVAL:
            return f"job {uid} waits for another approval, {last.wait.key!r}: {last.wait.name!r}"
        return f"job {uid} waits for no approval, but for {_what(last.wait)}"
    decided = [record for record in asked if record.wait.kind is WaitKind.APPROVAL and key in (None, record.wait.key)]
    if decided and decided[-1].answer is not None:
        last = decided[-1]
        return f"{last.wait.name!r} of job {uid} is decided already: {last.answer} by {last.by or 'nobody'}"
    return f"job {uid} is {state} and waits for no approval"


def _what(wait: Wait) -> str:
    match wait.kind:
        case WaitKind.EVENT:
            return f"event {wait.name!r}" + (f" on topic {wait.topic!r}" if wait.topic else "")
        case WaitKind.CHILDREN:
            return f"{len(wait.children)} children to end"
        case WaitKind.TIME:
            return "a time"
        case WaitKind.APPROVAL:
            return f"the approval {wait.name!r}"


def key_of(wait: Row) -> dict[str, Any]:
    return {"job": wait["job"], "run": wait["run"], "key": wait["key"]}


def drop_timers(t: Transaction, waits: Iterable[Row]) -> None:
    if rows := [{"due_at": wait["until_at"], "job": wait["job"]} for wait in waits]:
        t.run("take_timers", kind="wait", rows=packed(rows))


# --- stopped, resumed ---------------------------------------------------------------------------------------------


def abandon(t: Transaction, job: int, run: int) -> None:
    """It is cancelled or interrupted while it waits, and its row is locked: nothing may wake or fail it any more."""
    t.run("drop_wait_timers", job=job, run=run)
    t.run("drop_open_wait", job=job, run=run)
    t.run("forget_dependencies", job=job)


def begin_run(t: Transaction, row: Row, run: int) -> None:
    """What was sent to earlier runs is not for this one."""
    t.run("drop_unclaimed_events", tenant=row["tenant"], address=address_of(row["uid"], None), run=run)


# --- what people read ---------------------------------------------------------------------------------------------


def of_job(t: Transaction, tenant: str, uid: str) -> list[WaitRecord]:
    job_row(t, tenant, uid)
    return by_id(t, tenant, uid)


def waits_page(t: Transaction, tenant: str, uid: str, skip: int) -> list[WaitRecord]:
    """Some of them in the same order, behind the first `skip`: what a job asks for next comes last."""
    job = job_row(t, tenant, uid)["number"]
    return [wait_of(row) for row in rows_behind(t, "waits_page", skip, job=job)]


def by_id(t: Transaction, tenant: str, uid: str) -> list[WaitRecord]:
    """The same of a job that is there."""
    return [wait_of(row) for row in t.all("job_waits", tenant=tenant, uid=uid)]


def page(
    t: Transaction, tenant: str | None, kind: str, after: str, limit: int, within: Within | None = None
) -> list[WaitRecord]:
    """The oldest first. A cursor says itself where it points to: the wait it was given for may be gone by now."""
    asked = {"kind": kind, "most": limit, **_place_of(after), **terms_of(within)}
    everywhere = tenant is None
    rows = t.all("open_waits_everywhere", **asked) if everywhere else t.all("open_waits", tenant=tenant, **asked)
    return [replace(wait_of(row), cursor=f"{row['asked_at']}:{row['job']}") for row in rows]


def _place_of(cursor: str) -> dict[str, int]:
    if not cursor:
        return {"after_at": 0, "after_job": 0}
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInput(f"after={told(repr(cursor))} is not where a page ended; take it from the last one shown")
    return {"after_at": int(found[1]), "after_job": int(found[2])}
