"""Gates: what shuts whole routes for a while (pauses of a queue, workflow or tenant; limits), and tenants' weights.

The rules themselves are one view, unstuck_gates: `look` here, the claim and `why` read the same; only limits are
counted by the claim itself, under their locks. Pauses of a target shut its line, not a route, and are the targets'
own business; they are only kept in the same table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, get_args

from unstuck.model.errors import (
    InvalidInput,
    OutcomeUnknown,
    SchemaMismatch,
    StoreUnavailable,
    UnknownTarget,
    UnknownTenant,
)
from unstuck.model.job import DEFAULT_TENANT, WorkflowRecord
from unstuck.model.limits import parse_rate
from unstuck.model.news import NewsKind
from unstuck.model.payload import clean_text
from unstuck.model.policy import Policy
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.guard.isolation import PATIENCE
from unstuck.store.life import ends, news
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.order import targets
from unstuck.store.order.limit_room import limited
from unstuck.store.order.name_ids import close_policies
from unstuck.store.order.pause_news import BY_TIME, pause_news
from unstuck.store.port import (
    BY_CODE,
    EVERY,
    Limit,
    LimitKind,
    LimitPart,
    OpenRoute,
    OpenRoutes,
    Pause,
    PauseKind,
    TenantRecord,
    Waiting,
    WaitingRoutes,
)
from unstuck.store.rows import instant, instant_or_none, microseconds, packed, span
from unstuck.telemetry import emit

#: Rows that one tenant's own workers may register: workflows and their versions.
MOST_OF_TENANT = 10_000
#: Routes without a limit key that are looked at besides a page of all.
MOST_PLAIN = 1000

# --- the look -----------------------------------------------------------------------------------------------------


def look(t: Transaction, after: int, limit: int) -> tuple[OpenRoutes, bool]:
    """One page of open routes, and whether there are limits at all. A database without gates pays for none."""
    rows = t.all("open_routes", after=after, most=limit)
    return _open_ones(t, rows, _looked_to(rows, limit) if rows else 0)


def look_at(t: Transaction, routes: Sequence[int]) -> tuple[OpenRoutes, bool]:
    """The same of these routes."""
    return _open_ones(t, t.all("open_routes_of", routes=list(routes)), 0)


def look_at_plain(t: Transaction) -> tuple[OpenRoutes, bool]:
    """The same of the routes without a limit key, whatever the number of those that have one."""
    found = [row["route"] for row in t.all("plain_routes", most=MOST_PLAIN)]
    return look_at(t, found) if found else (OpenRoutes(), False)


def _open_ones(t: Transaction, rows: Sequence[Row], looked_to: int) -> tuple[OpenRoutes, bool]:
    if not rows:
        return OpenRoutes(), False
    has_limits = bool(rows[0]["has_limits"])
    routes = [row["route"] for row in rows]
    paused = of_routes(t, "paused_routes", routes) if rows[0]["has_pauses"] else []
    limits = limited(t, routes) if has_limits else {}
    shut = {row["route"] for row in paused if row["probe"] is None} | {route for route in limits if limits[route]}
    found = [_open_route(row, row["route"] in limits) for row in rows if row["route"] not in shut]
    return OpenRoutes(found, looked_to), has_limits


def _open_route(row: Row, is_limited: bool) -> OpenRoute:
    return OpenRoute(row["route"], row["rank"], is_limited, row["job"])


def of_routes(t: Transaction, statement: str, routes: Sequence[int]) -> list[Row]:
    """What a statement says about these routes: at once, or one by one where a question costs no round trip and the
    planner finds its way into a view only so."""
    if t.one_table_per_statement:
        return [row for route in routes for row in t.all(statement, route=route)]
    return t.all(statement, routes=list(routes))


def _looked_to(rows: Sequence[Row], limit: int) -> int:
    return int(rows[-1]["route"]) if len(rows) >= limit else 0


def waits(t: Transaction, after: int, limit: int) -> WaitingRoutes:
    rows = t.all("waits", after=after, most=limit)
    # A route whose last job was taken between two steps of the statement has nothing to show.
    return WaitingRoutes(
        [waiting_of(row) for row in rows if row["uid"] is not None], _looked_to(rows, limit) if rows else 0
    )


def waiting_of(row: Row) -> Waiting:
    return Waiting(
        route=row["route"],
        id=row["uid"],
        tenant=row["tenant"],
        queue=row["queue"],
        workflow=row["workflow"],
        since=instant(row["available_at"]),
        is_paused=bool(row["is_paused"]),
    )


# --- pauses -------------------------------------------------------------------------------------------------------


def pause(t: Transaction, pause: Pause) -> Pause:
    tenant = _tenant_of(pause.kind, pause.name, pause.tenant)
    _check_tenant(t, tenant)
    if pause.kind == "target" and targets.pause(t, tenant, pause.name) is None:
        raise UnknownTarget(pause.name)
    until_at = None if pause.until_at is None else microseconds(pause.until_at)
    row = t.one(
        "set_pause",
        kind=pause.kind,
        name=pause.name,
        tenant=tenant,
        until_at=until_at,
        appointed=until_at if pause.is_appointed else None,
        by=clean_text(pause.by, 200),
        reason=clean_text(pause.reason, MAX_MESSAGE) if pause.reason else None,
    )
    assert row is not None
    news.tell(t, [pause_news(NewsKind.PAUSE_BEGUN, row, by=row["by"])])
    return _pause_of(row)


def unpause(t: Transaction, kind: PauseKind, name: str, tenant: str, by: str) -> bool:
    tenant = _tenant_of(kind, name, tenant)
    if kind == "target":
        targets.lock_named(t, tenant, name)  # before the pause's row, as a pause does
    dropped = t.one("drop_pause", kind=kind, name=name, tenant=tenant)
    if dropped is None:
        return False
    if kind == "target":
        targets.unpause(t, tenant, name)
    stood = dropped["until_at"] is None or dropped["until_at"] > dropped["now"]
    news.tell(t, [pause_news(NewsKind.PAUSE_ENDED, dropped, by=clean_text(by, 200) if stood else BY_TIME)])
    return bool(stood)


def end_pauses(t: Transaction, places: Sequence[tuple[str, str, str]]) -> int:
    """Of these, kind, name and tenant, whose time is over."""
    named = [dict(zip(("kind", "name", "tenant"), place, strict=True)) for place in places]
    rows = t.all("drop_ended_pauses", rows=packed(named))
    news.tell(t, [pause_news(NewsKind.PAUSE_ENDED, row, by=BY_TIME) for row in rows])
    return len(rows)


def pauses(t: Transaction, tenant: str | None) -> list[Pause]:
    return [_pause_of(row) for row in t.all("pauses", tenant=tenant)]


def _pause_of(row: Row) -> Pause:
    return Pause(
        kind=row["kind"],
        name=row["name"],
        tenant=row["tenant"],
        by=row["by"],
        since_at=instant(row["since_at"]),
        until_at=instant_or_none(row["until_at"]),
        reason=row["reason"],
    )


def _tenant_of(kind: str, name: str, tenant: str) -> str:
    """A pause or limit of a tenant belongs to that tenant, whichever tenant the caller speaks for."""
    return name if kind == "tenant" else tenant


def _check_tenant(t: Transaction, tenant: str) -> None:
    if tenant not in (EVERY, DEFAULT_TENANT) and t.one("tenant_is_known", tenant=tenant) is None:
        raise UnknownTenant(tenant)


# --- limits -------------------------------------------------------------------------------------------------------


def set_limit(t: Transaction, limit: Limit) -> Limit:
    row = t.one("set_limit", **_limit_columns(limit))
    assert row is not None
    return _limit_of(row)


def change_limit(t: Transaction, limit: Limit, parts: Collection[LimitPart]) -> Limit | None:
    says = {f"says_{part}": int(part in parts) for part in get_args(LimitPart)}
    row = t.one("change_limit", **_limit_columns(limit), **says)
    assert row is not None
    changed = _limit_of(row)
    return changed if changed.counts_something else _lift(t, limit.kind, limit.name, limit.tenant)[1]


def remove_limit(t: Transaction, kind: LimitKind, name: str, tenant: str) -> bool:
    return _lift(t, kind, name, tenant)[0]


def _lift(t: Transaction, kind: LimitKind, name: str, tenant: str) -> tuple[bool, Limit | None]:
    """Whether an operator had set one; and what holds in its place, if the code has a word."""
    place = {"kind": kind, "name": name, "tenant": _tenant_of(kind, name, tenant), "by": BY_CODE}
    row = t.one("restore_code_limit", **place)
    if row is not None:
        return True, _limit_of(row)
    return t.run("drop_limit", **place) == 1, None


def _limit_columns(limit: Limit) -> dict[str, Any]:
    return {
        "kind": limit.kind,
        "name": limit.name,
        "tenant": _tenant_of(limit.kind, limit.name, limit.tenant),
        "concurrency": limit.concurrency,
        "rate": limit.rate,
        "per_us": None if limit.rate is None else span(limit.per or 1.0),
        "max_queued": limit.max_queued,
        "by": clean_text(limit.by, 200),
    }


def limits(t: Transaction, tenant: str | None) -> list[Limit]:
    return [_limit_of(row) for row in t.all("limits", tenant=tenant)]


def _limit_of(row: Row) -> Limit:
    return Limit(
        kind=row["kind"],
        name=row["name"],
        tenant=row["tenant"],
        by=row["set_by"],
        concurrency=row["concurrency"],
        rate=row["rate"],
        per=None if row["per_us"] is None else row["per_us"] / 1_000_000,
        max_queued=row["max_queued"],
        set_at=instant(row["set_at"]),
    )


# --- tenants ------------------------------------------------------------------------------------------------------


def set_tenant(t: Transaction, name: str, weight: int, by: str) -> TenantRecord:
    row = t.one("set_tenant", name=name, weight=weight, by=clean_text(by, 200))
    assert row is not None
    return TenantRecord(row["name"], row["weight"])


def tenants(t: Transaction, after: str, limit: int) -> list[TenantRecord]:
    return [TenantRecord(row["name"], row["weight"]) for row in t.all("tenants", after=after, most=limit)]


def tenant(t: Transaction, name: str) -> TenantRecord | None:
    row = t.one("tenant", name=name)
    return None if row is None else TenantRecord(row["name"], row["weight"])


# --- what code says of itself -------------------------------------------------------------------------------------


class _Write(NamedTuple):
    """Something that the code of a workflow says and the database does not. `write` answers whether it could: what
    somebody else holds is not waited for."""

    workflow: str
    write: Callable[[Transaction], bool]


def register_workflows(
    database: Database,
    workflows: Sequence[WorkflowRecord],
    worker: int | None,
    queues: Sequence[str],
    app: str | None = None,
    tenant: str | None = None,
) -> frozenset[str]:
    """Write what differs, and answer of which workflows not all could be written. The worker's own row comes behind
    theirs, so that its beat waits for none of them. The limits come last: which of them holds depends on which
    workers serve. `tenant`: whose jobs alone the worker takes, and whose alone its rows are."""
    whose = tenant or EVERY
    in_order = sorted((replace(w, tenant=whose) for w in workflows), key=lambda w: (w.name, w.code_version))
    lacking = database.read(lambda t: _lacking(t, in_order))
    following = database.read(lambda t: _following(t, in_order, app))
    if tenant is not None and lacking:
        _check_room(database, tenant, len(lacking))
    held = _written(database, [*lacking, *following])
    if worker is not None:
        served: dict[str, Any] = {"queues": sorted(set(queues)), "workflows": sorted({w.name for w in workflows})}
        said = {"app": app, "tenant": tenant}
        serves = packed(served | {name: each for name, each in said.items() if each is not None})
        version = version_of(workflows)
        database.write(lambda t: t.run("set_serves", worker=worker, serves=serves, code_version=version))
    held |= _begun(database, [w.name for w in workflows if w.follows is not None])
    _, unkept = keep_code_limits(database)
    return held | (unkept & {w.name for w in workflows})


def _begun(database: Database, followers: Sequence[str]) -> frozenset[str]:
    """Behind the worker's own row: once it can be seen that they follow, nobody ends the reading of the feed any
    more, and what was ended before begins here. Those that could not be sure of it."""
    if not followers:
        return frozenset()
    try:
        database.write(ends.begin, patience=PATIENCE)
    except (StoreUnavailable, OutcomeUnknown, SchemaMismatch):
        raise
    except Exception as error:
        emit("not_registered", level=logging.WARNING, workflow=followers[0], error=str(error))
        return frozenset(followers)
    return frozenset()


def _check_room(database: Database, tenant: str, more: int) -> None:
    """Whoever has a tenant's key could fill the table otherwise. Old versions go with time."""
    row = database.read(lambda t: t.one("workflow_rows_of_tenant", tenant=tenant))
    if row is not None and row["number"] + more > MOST_OF_TENANT:
        raise InvalidInput(
            f"tenant {tenant} has {row['number']:,} versions of workflows of its own; the limit is {MOST_OF_TENANT:,}"
        )


def keep_code_limits(database: Database) -> tuple[int, frozenset[str]]:
    """The limits by code become those of the versions that the doors go by: how many were not, and of which workflows
    somebody holds them."""
    wrong = database.read(lambda t: t.all("wrong_code_limits", by=BY_CODE))
    held = _written(database, [_Write(row["name"], partial(_limit_by_code, said=row)) for row in wrong])
    return sum(row["name"] not in held for row in wrong), held


def _written(database: Database, writes: Sequence[_Write]) -> frozenset[str]:
    """All at once; if that fails, by bisection, so that a row that cannot be written keeps no other back."""
    if not writes:
        return frozenset()
    try:
        return database.write(lambda t: frozenset(write.workflow for write in writes if not write.write(t)))
    except (StoreUnavailable, OutcomeUnknown, SchemaMismatch):
        raise
    except Exception as error:
        if len(writes) == 1:
            emit("not_registered", level=logging.WARNING, workflow=writes[0].workflow, error=str(error))
            return frozenset({writes[0].workflow})
        middle = len(writes) // 2
        return _written(database, writes[:middle]) | _written(database, writes[middle:])


def _lacking(t: Transaction, workflows: Sequence[WorkflowRecord]) -> list[_Write]:
    """Nothing, most often: then nothing is written, and nobody's lock matters."""
    if not workflows:
        return []
    places = {
        "names": [w.name for w in workflows],
        "versions": sorted({w.code_version for w in workflows}),
        "tenants": sorted({w.tenant for w in workflows}),
    }
    known = {(row["name"], row["code_version"]): row for row in t.all("registered", **places)}
    lacking: list[_Write] = []
    for workflow in workflows:
        columns = _columns(workflow)
        row = known.get((workflow.name, workflow.code_version))
        if row is None or not row["is_newest"] or any(row[name] != columns[name] for name in columns):
            lacking.append(_Write(workflow.name, partial(_register, columns=columns, policy=workflow.policy)))
    return lacking


def _following(t: Transaction, workflows: Sequence[WorkflowRecord], app: str | None) -> list[_Write]:
    return [_Write(name, write) for name, write in ends.lacking(t, workflows, app)]


def _register(t: Transaction, columns: dict[str, Any], policy: Policy) -> bool:
    place = {name: columns[name] for name in ("name", "code_version", "tenant")}
    if _is_held(t, "free_workflow", **place):
        return False
    t.run("register_workflow", **columns)
    close_policies(t, columns["name"], policy, columns["tenant"])
    return True


def _is_held(t: Transaction, statement: str, **place: str) -> bool:
    """Locks the row if that needs no waiting. A row that is not there, or not yet, is nobody's."""
    row = t.one(statement, **place)
    return row is not None and not row["is_free"]


def version_of(workflows: Sequence[WorkflowRecord]) -> str | None:
    """All workflows of an app have that of the app."""
    return workflows[0].code_version if workflows else None


def _columns(workflow: WorkflowRecord) -> dict[str, Any]:
    return {
        "name": workflow.name,
        "code_version": workflow.code_version,
        "queue": workflow.queue,
        "policy": workflow.policy.to_json(),
        "max_timeout": workflow.max_timeout,
        "schema": packed(workflow.schema),
        "target": workflow.target,
        "limit_key": workflow.limit_key,
        "doc": clean_text(workflow.doc, 64 << 10) if workflow.doc else None,
        **_code_limit(workflow.concurrency, workflow.rate),
        **_code_limit(workflow.key_concurrency, workflow.key_rate, "key_"),
        "redact": packed(list(workflow.redact)),
        "tenant": workflow.tenant,
    }


def _code_limit(concurrency: int | None, rate: str | None, of: str = "") -> dict[str, int | None]:
    starts, per = parse_rate(rate) if rate is not None else (None, None)
    return {f"{of}concurrency": concurrency, f"{of}rate": starts, f"{of}per_us": None if per is None else span(per)}


def _limit_by_code(t: Transaction, said: Row) -> bool:
    """A limit that has left the code leaves the table, and does not come back when an operator's is lifted."""
    place = {name: said[name] for name in ("kind", "name", "tenant")}
    if _is_held(t, "free_code_limit", **place):
        return False
    if said["concurrency"] is None and said["rate"] is None:
        t.run("drop_code_limit", **place, by=BY_CODE)
        t.run("forget_code_limit", **place, by=BY_CODE)
    else:
        t.run("set_code_limit", **said, by=BY_CODE)
    return True
