"""Breaker: it trips inside a settlement; and the blacklist, its gate at every door, and the settings of both.

Theory of operation. A settlement that brings marks against workflows locks their breakers when all else of it is
written, counts in a later statement (the first took its snapshot before it waited), and makes the entry, its
notification and its audit line in the same transaction. Once an entry is made, by whomever, the guard is shut: that
waits for the claims under way, and those that come see the entry or take nothing. Nothing is written behind a shut
guard, for no claim gets past it: a line of audit that takes long to write must not keep all jobs from their start.
Breakers, entries and the guard are locked after everything else (`store/lock_order.py`). The doors only look: a job
that slips in beside an entry that is just being made is met at the claim's own gate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from unstuck.model.errors import UnknownTenant
from unstuck.model.guard import (
    EVERY,
    LINK,
    MANUAL,
    SETTINGS,
    SYSTEM,
    TITLE,
    BlacklistEntry,
    BreakerMark,
    BreakerStand,
    Harm,
    Rules,
    SettingRecord,
    auto_reason,
    notice,
    refused,
    rules_of,
    total,
    values_of,
)
from unstuck.model.job import DEFAULT_TENANT, NewJob
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import clean_text
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE, moment
from unstuck.store.rows import instant, instant_or_none, packed, span

Key = tuple[str, str]
_LAST = 1 << 62
#: Seconds. While somebody waits to shut the guard no claim gets in either: not for longer than the claims under way
#: may take.
PATIENCE = 0.5


@dataclass(frozen=True, slots=True)
class StuckMark:
    """What an attempt's end says against its workflow."""

    job: int
    token: int
    harm: Harm


# --- the breaker --------------------------------------------------------------------------------------------------


def count(t: Transaction, marks: Sequence[StuckMark]) -> int:
    """Called last by every settlement, for it may shut the guard: how many workflows went on the blacklist by it."""
    if not marks:
        return 0
    rules = rules_in_force(t)
    by_key = _by_workflow(t, [mark for mark in marks if mark.harm in rules.counted])
    common = {(EVERY, workflow) for _, workflow in by_key} if rules.tenants else set()
    for tenant, workflow in sorted(by_key.keys() | common):
        t.run("lock_breaker", tenant=tenant, workflow=workflow)
    for key in sorted(by_key):
        t.run("add_stucks", rows=packed([_columns(key, mark) for mark in by_key[key]]))
        for mark in by_key[key]:
            t.run("renew_entry", job=mark.job)
    tripped = sum(_trip(t, key, rules) for key in sorted(by_key))
    tripped += sum(_trip_for_all(t, workflow, rules) for _, workflow in sorted(common))
    if tripped:
        t.all("shut_guard")
    return tripped


def _by_workflow(t: Transaction, marks: Sequence[StuckMark]) -> dict[Key, list[StuckMark]]:
    if not marks:
        return {}
    of = {mark.job: mark for mark in marks}
    found: dict[Key, list[StuckMark]] = defaultdict(list)
    for row in t.all("workflows_of_jobs", jobs=sorted(of)):
        found[row["tenant"], row["workflow"]].append(of[row["job"]])
    return found


def _columns(key: Key, mark: StuckMark) -> dict[str, Any]:
    is_proven = mark.harm != "freeze"
    kind = mark.harm if is_proven else "stuck"
    return {
        "tenant": key[0],
        "workflow": key[1],
        "job": mark.job,
        "token": mark.token,
        "kind": kind,
        "is_proven": int(is_proven),
    }


def _window(t: Transaction, key: Key, rules: Rules) -> dict[Harm, int]:
    rows = t.all("count_stucks", tenant=key[0], workflow=key[1], span=span(rules.window))
    return {row["kind"]: row["marks"] for row in rows}


def _trip(t: Transaction, key: Key, rules: Rules) -> int:
    marks = rules.counting(_window(t, key, rules))
    return _bar(t, *key, marks, rules) if rules.trips(marks) else 0


def _trip_for_all(t: Transaction, workflow: str, rules: Rules) -> int:
    """The marks of several tenants together: a tenant alone must never shut out another."""
    rows = t.all("count_stucks_of_all", workflow=workflow, span=span(rules.window))
    marks: Counter[Harm] = Counter()
    for row in rows:
        marks[row["kind"]] += row["marks"]
    tenants = len({row["tenant"] for row in rows if row["kind"] in rules.counted})
    found = rules.counting(marks)
    return _bar(t, EVERY, workflow, found, rules, tenants) if rules.trips_for_all(found, tenants) else 0


def _bar(t: Transaction, tenant: str, workflow: str, marks: dict[Harm, int], rules: Rules, tenants: int = 1) -> int:
    """At most one entry stands against a workflow of a tenant; it makes no difference who asked for it."""
    if _against(t, tenant, workflow) is not None:
        return 0
    entry = _enter(t, tenant, workflow, auto_reason(marks), SYSTEM, total(marks))
    if entry is None:
        return 0
    message = notice(tenant, workflow, marks, rules, tenants)
    audit.add_notification(t, TITLE, message, LINK, "warning", tenant, workflow, entry.stuck_count)
    return 1


def _enter(
    t: Transaction, tenant: str, workflow: str, reason: str, by: str, stuck_count: int | None = None
) -> BlacklistEntry | None:
    """Under the breaker's lock; None: there was one already. The caller shuts the guard when all is written."""
    row = t.one("add_entry", tenant=tenant, workflow=workflow, reason=reason, by=by, stuck_count=stuck_count)
    if row is None:
        return None
    facts = {"reason": reason, "stuck_count": stuck_count}
    audit.note(t, by, "blacklist.add", workflow, tenant, facts)
    told = {"number": row["id"], "by": by, **facts}
    news.tell(t, [NewsItem(NewsKind.BLACKLIST_ADDED, told, tenant=tenant, workflow=workflow)])
    return entry_of(row)


# --- the blacklist ------------------------------------------------------------------------------------------------


def add(t: Transaction, tenant: str, workflow: str, reason: str, by: str) -> tuple[BlacklistEntry, bool]:
    """By a person. An entry that stands already stays as it is: then the second answer is False."""
    if tenant not in (EVERY, DEFAULT_TENANT) and t.one("tenant_is_known", tenant=tenant) is None:
        raise UnknownTenant(tenant)
    t.run("lock_breaker", tenant=tenant, workflow=workflow)
    made = _enter(t, tenant, workflow, MANUAL + clean_text(reason, MAX_MESSAGE), clean_text(by, 200))
    if made is not None:
        t.all("shut_guard")
        return made, True
    return next(e for e in _entries(t, [workflow]) if e.tenant == tenant), False


def lift(
    t: Transaction, tenant: str | None, workflow: str, by: str, why: str | None = None, entry: int | None = None
) -> list[BlacklistEntry]:
    """The entry of one tenant (EVERY: that of all tenants) or, with None, whatever stands against the workflow; with
    `entry` no other than this. The marks so far count no more."""
    cleared = None if tenant == EVERY else tenant
    t.all("lock_breakers", workflow=workflow, tenant=cleared)
    who = clean_text(by, 200)
    rows = t.all("remove_entries", workflow=workflow, tenant=tenant, by=who, entry=entry)
    if not rows:
        return []
    t.run("clear_window", workflow=workflow, tenant=cleared)
    entries = sorted((entry_of(row) for row in rows), key=lambda gone: gone.number)
    for gone in entries:
        audit.note(t, who, "blacklist.remove", workflow, gone.tenant, {"reason": gone.reason, "why": why})
    news.tell(t, [_removed(gone, who, why) for gone in entries])
    return entries


def _removed(gone: BlacklistEntry, by: str, why: str | None) -> NewsItem:
    told = {"number": gone.number, "by": by, "why": why}
    return NewsItem(NewsKind.BLACKLIST_REMOVED, told, tenant=gone.tenant, workflow=gone.workflow)


def active(t: Transaction, tenant: str | None) -> list[BlacklistEntry]:
    found = [entry_of(row) for row in t.all("active_entries", tenant=tenant)]
    return sorted(found, key=lambda entry: entry.number)


def history(
    t: Transaction, tenant: str | None, workflow: str | None, before: int | None, limit: int
) -> list[BlacklistEntry]:
    rows = t.all("blacklist_history", tenant=tenant, workflow=workflow, before=before or _LAST, most=limit)
    return [entry_of(row) for row in rows]


def marks_against(t: Transaction, tenant: str, workflow: str) -> int:
    """How many count at this moment."""
    rules = rules_in_force(t)
    return total(rules.counting(_window(t, (tenant, workflow), rules)))


def stand(t: Transaction, tenant: str, workflow: str, limit: int) -> BreakerStand:
    rules = rules_in_force(t)
    number = total(rules.counting(_window(t, (tenant, workflow), rules)))
    rows = t.all("marks_of", tenant=tenant, workflow=workflow, span=span(rules.window), most=limit)
    lasts = timedelta(seconds=rules.window)
    marks = [
        BreakerMark(at=at, until_at=at + lasts, harm=row["kind"], job=row["uid"])
        for row in rows
        for at in [instant(row["at"])]
        if row["kind"] in rules.counted
    ]
    return BreakerStand(rules, number, tuple(marks))


def entry_of(row: Row) -> BlacklistEntry:
    return BlacklistEntry(
        number=row["id"],
        tenant=row["tenant"],
        workflow=row["workflow"],
        reason=row["reason"],
        blacklisted_by=row["blacklisted_by"],
        blacklisted_at=instant(row["blacklisted_at"]),
        stuck_count=row["stuck_count"],
        removed_at=instant_or_none(row["removed_at"]),
        removed_by=row["removed_by"],
        renewed_at=instant_or_none(row["renewed_at"]),
        probe=row["probe"],
    )


# --- the gate at the doors ----------------------------------------------------------------------------------------


def check(t: Transaction, tenant: str, workflow: str) -> None:
    """WorkflowBlacklisted if it is: for the verbs that bring a job back into the queue."""
    if (entry := _against(t, tenant, workflow)) is not None:
        raise refused(entry)


def expect(t: Transaction, jobs: Iterable[NewJob]) -> None:
    """The same before anything is made for these jobs: a look that lets a probe pass, the submit itself decides."""
    wanted = list(jobs)
    for job, entry in _blacklisted(t, wanted):
        if not _may_probe(t, entry, [job]):
            raise refused(entry)


def admit(t: Transaction, born: Sequence[tuple[int, NewJob]]) -> None:
    """Jobs that this transaction has inserted: it must not be committed if one of them is blacklisted, unless it is
    the probe of its entry."""
    numbers = {job.id: number for number, job in born}
    asked: dict[int, list[NewJob]] = defaultdict(list)
    entries: dict[int, BlacklistEntry] = {}
    for job, entry in _blacklisted(t, [job for _, job in born]):
        asked[entry.number].append(job)
        entries[entry.number] = entry
    for number, jobs in sorted(asked.items()):
        if not _may_probe(t, entries[number], jobs) or not let_through(t, number, numbers[jobs[0].id]):
            raise refused(entries[number])


def _blacklisted(t: Transaction, jobs: Sequence[NewJob]) -> list[tuple[NewJob, BlacklistEntry]]:
    entries = _entries(t, sorted({job.workflow for job in jobs}))
    return [(job, entry) for job in jobs for entry in entries if entry.bars(job.tenant, job.workflow)]


def _may_probe(t: Transaction, entry: BlacklistEntry, jobs: Sequence[NewJob]) -> bool:
    """One job alone, that can start now."""
    if not entry.is_auto or entry.probe is not None or len(jobs) != 1:
        return False
    job = jobs[0]
    is_due = not (job.on_hold or job.after or job.delay or job.start_at)
    return is_due and is_probe_due(entry, rules_in_force(t), moment(t))


def is_probe_due(entry: BlacklistEntry, rules: Rules, now: int) -> bool:
    if rules.probe_after is None or not entry.is_auto or entry.probe is not None:
        return False
    since = entry.renewed_at or entry.blacklisted_at
    return instant(now - span(rules.probe_after)) >= since


def let_through(t: Transaction, entry: int, job: int) -> bool:
    """False: another was faster."""
    return t.run("let_probe_through", entry=entry, job=job) == 1


def _against(t: Transaction, tenant: str, workflow: str) -> BlacklistEntry | None:
    return next((entry for entry in _entries(t, [workflow]) if entry.bars(tenant, workflow)), None)


def _entries(t: Transaction, workflows: list[str]) -> list[BlacklistEntry]:
    return [entry_of(row) for row in t.all("entries_against", workflows=workflows)] if workflows else []


# --- the settings -------------------------------------------------------------------------------------------------


def rules_in_force(t: Transaction) -> Rules:
    """Read in the transaction that goes by them: a change holds everywhere from its commit on."""
    return rules_of((row["name"], row["value"]) for row in t.all("settings_set"))


def settings(t: Transaction) -> list[SettingRecord]:
    rows = {row["name"]: row for row in t.all("settings_set")}
    values = values_of((name, row["value"]) for name, row in rows.items())
    return [_setting(name, values[name], rows.get(name)) for name in SETTINGS]


def _setting(name: str, value: Any, row: Row | None) -> SettingRecord:
    known = SETTINGS[name]
    if row is None:
        return SettingRecord(name, value, known.default, known.meaning)
    return SettingRecord(name, value, known.default, known.meaning, instant(row["set_at"]), row["set_by"])


def change_setting(t: Transaction, name: str, value: str | None, by: str) -> SettingRecord:
    """`value` is JSON text that was checked; None: the default again."""
    before = next(record for record in settings(t) if record.name == name)
    who = clean_text(by, 200)
    if value is None:
        t.run("drop_setting", name=name)
    else:
        t.run("set_setting", name=name, value=value, by=who)
    after = next(record for record in settings(t) if record.name == name)
    detail = {"before": before.value, "after": after.value, "default": value is None or None}
    audit.note(t, who, "settings.set", name, EVERY, detail)
    return after


def forget_stucks(t: Transaction, retention: float, batch: int, past: int) -> int:
    """Never before the window has passed over them."""
    kept = max(retention, rules_in_force(t).window)
    return t.run("forget_stucks", retention=span(kept), batch=batch, past=past)
