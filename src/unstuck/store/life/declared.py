"""Declared schedules: what the code of an app says, version by version, and how it becomes what runs.

Each version of an app that has workers keeps what it declares in a row. The newest of them that has live workers
decides: what it declares is there, what it declares no more is removed (and keeps its row), so an old worker that
starts late revives nothing and a rollback brings back what was. Where no version has a live worker nothing changes.
A worker that begins sees to that at once; for the end of a version's last worker, which nobody announces, a duty.

An app is known by its name. Two that are different and have one name would take turns at removing each other's
schedules: so the second is refused while a worker of the first lives. Different means imported from another place.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from unstuck.clock import boot
from unstuck.model.errors import Conflict, InvalidInput, StoreBusy, UnstuckError
from unstuck.model.payload import check_name, clean_text
from unstuck.model.schedules import DeclaredSchedule, ScheduleSpec, plainly
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.guard import audit, isolation
from unstuck.store.guard.bisection import AWAY
from unstuck.store.life import schedules
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.rows import packed
from unstuck.telemetry import emit

REFUSED = "Schedules were not taken from the code"
MOST_DECLARED = 10_000


def declare(
    database: Database, app: str, origin: str, code_version: str, declared: Sequence[DeclaredSchedule]
) -> list[str]:
    """Of an app that declares none, and never did, nothing is written."""
    if len(declared) > MOST_DECLARED:
        return [f"app {app} declares {len(declared)} schedules; the limit is {MOST_DECLARED}"]
    known = database.read(lambda t: t.all("declared_of", app=app))
    if not declared and not known:
        return []
    body = packed([[each.tenant, each.name, _plain(each.body)] for each in declared])

    def work(t: Transaction) -> list[str]:
        rows = t.all("declared_of", app=app)
        other = next((row for row in rows if row["is_live"] and row["origin"] != origin), None)
        if other is not None:
            told = (
                f"app {app} is {other['origin']} (version {other['code_version']}, with live workers) and {origin}: "
                "two apps of one name would remove each other's schedules; give one of them another name: App(name=…)"
            )
            _notify(t, app, told)
            return [told]
        mine = next((row for row in rows if row["code_version"] == code_version), None)
        if mine is None or mine["body"] != body or mine["origin"] != origin:
            t.run("declare", app=app, code_version=code_version, origin=origin, body=body)
        return []

    if refused := database.write(work, patience=isolation.PATIENCE):
        return refused
    done = _reconcile(database, app)
    if done.held is not None:
        raise done.held
    return done.refused


def _plain(body: str) -> str:
    """As it will stand, lest it seem to differ for ever; what cannot be read is refused when it is to be made."""
    try:
        return plainly(ScheduleSpec.from_json(body)).to_json()
    except schedules.UNREADABLE:
        return body


def reconcile_all(database: Database) -> int:
    """All that can be written is; then it raises if somebody holds the rest."""
    apps = [row["app"] for row in database.read(lambda t: t.all("declaring_apps"))]
    done = [_reconcile(database, app) for app in apps]
    for each in done:
        if each.held is not None:
            raise each.held
    return sum(each.changed for each in done)


class _Reconciled(NamedTuple):
    """`held`: a row could not be had, the first of them."""

    changed: int
    refused: list[str]
    held: StoreBusy | None


def _reconcile(database: Database, app: str) -> _Reconciled:
    """A look first: most often there is nothing to do. What cannot be written keeps nothing else from its place."""
    changed, refused, held = 0, list[str](), list[StoreBusy]()
    began = boot()
    for each in database.read(lambda t: _wrong(t, app)):
        try:
            mend = partial(_mend, app=app, each=each)
            changed += database.write(mend, patience=isolation.PATIENCE)
        except AWAY:
            raise
        except StoreBusy as error:
            held.append(error)
            if boot() - began > isolation.LONGEST:
                break
        except Exception as error:
            told = f"schedule {each.name} of app {app} was not taken from its code: {_problem(error)}"
            refused.append(told)
            tell = partial(_notify, app=app, told=told)
            database.write(tell, patience=isolation.PATIENCE)
    for told in refused:
        emit("schedule_refused", level=logging.WARNING, app=app, problem=clean_text(told, MAX_MESSAGE))
    return _Reconciled(changed, refused, held[0] if held else None)


def _problem(error: Exception) -> str:
    """Ours are made to be read; what a database refuses is told by its kind too."""
    return str(error) if isinstance(error, UnstuckError) else isolation.problem_of(error)


def _notify(t: Transaction, app: str, told: str) -> bool:
    return audit.notify(t, REFUSED, told, f"/schedules?app={app}", "warning")


def _wrong(t: Transaction, app: str) -> list[DeclaredSchedule]:
    """What is not as the deciding version says: what is to be made or changed, and (without a body) removed."""
    wanted = _wanted(t, app)
    if wanted is None:
        return []
    rows = {(row["tenant"], row["name"]): row for row in t.all("schedules_of_app", app=app)}
    lacking = [each for place, each in wanted.items() if not _stands(rows.get(place), each)]
    gone = [place for place, row in rows.items() if place not in wanted and row["removed_at"] is None]
    return lacking + [DeclaredSchedule(*place, body="") for place in gone]


def _wanted(t: Transaction, app: str) -> dict[tuple[str, str], DeclaredSchedule] | None:
    """None: no version has a live worker."""
    rows = t.all("declared_of", app=app)
    if not rows or not rows[0]["is_live"]:
        return None
    declared = [DeclaredSchedule(*each) for each in json.loads(rows[0]["body"])]
    return {(each.tenant, each.name): each for each in declared}


def _stands(row: Row | None, declared: DeclaredSchedule) -> bool:
    return row is not None and row["removed_at"] is None and row["body"] == declared.body


def _mend(t: Transaction, app: str, each: DeclaredSchedule) -> int:
    """Looks again under the lock: others may have done it, or another version decides meanwhile."""
    wanted = _wanted(t, app)
    row = t.one("lock_schedule", tenant=each.tenant, name=each.name)
    if wanted is None:
        return 0
    said = wanted.get((each.tenant, each.name))
    by = f"app {app}"
    if said is None:
        if row is None or row["owner"] != app or row["removed_at"] is not None:
            return 0
        schedules.remove(t, row, by)
        return 1
    check_name(said.tenant, "tenant")
    check_name(said.name, "schedule")
    spec = _spec(said)
    if row is None or row["removed_at"] is not None:
        schedules.create(t, said.tenant, said.name, spec, by, owner=app)
        return 1
    if row["owner"] != app:
        if row["body"] == said.body and _is_part(app, row["owner"]):
            return 0  # it stands as it should
        whose = "a person made" if row["owner"] is None else f"app {row['owner']} declares"
        raise Conflict(f"{whose} a schedule of this name")
    if row["body"] == said.body:
        return 0
    schedules.change(t, row, spec, by, app)
    return 1


def _is_part(app: str, owner: str | None) -> bool:
    """Whether both are one app, of which workers at a distance have a part: `shop@acme:train` (remote_checks.py)."""
    return owner is not None and app.partition("@")[0] == owner.partition("@")[0]


def _spec(said: DeclaredSchedule) -> ScheduleSpec:
    try:
        return ScheduleSpec.from_json(said.body)
    except schedules.UNREADABLE as error:
        raise InvalidInput(f"it cannot be read: {error!r}") from None
