"""Every operation asked over HTTP answers what it answers without a server: the same views, with the same values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import unstuck
from tests.app.hand import Hand
from tests.client.code import deploy, with_code
from tests.support.parking import Stage
from unstuck.model.alerts import finding
from unstuck.model.keys import NewBrowserSession
from unstuck.model.settlement import ErrorInfo, Raised, Returned
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.routes import routes
from unstuck.operations.table import Operation
from unstuck.store.port import HookRefusal
from unstuck.store.sql_store import SqlStore
from unstuck.views import plain

#: What moves with each look: ages, and where a reader stands in what grows.
MOVES = frozenset(
    {"at", "age_ms", "sequence", "seconds", "now", "silent_ms", "took_ms", "database", "detail", "last_used_at"}
)
#: What errors carry of what was asked.
CARRIED = frozenset({"worker", "job", "target", "workflow"})
READS = [operation for operation in OPERATIONS.values() if operation.entry.effect == "read"]


@pytest.fixture
def busy(here: unstuck.App, store: SqlStore) -> dict[str, Any]:
    """A database where something of everything happened; the arguments of operations, by name."""
    with_code(here)
    deploy(here)
    hand, stage = Hand(store), Stage(store)
    done = here.jobs.enqueue("note", args=["hello"], kwargs={"n": 2**70, "x": 0.1}, tags=["a"])
    hand.run_one(Returned('{"deep": [1, 2.5, null, "text"], "big": 1180591620717411303424}'), "it said\n")
    failed = here.jobs.enqueue("note", args=["no"], policy={"retries": 0, "dead_letter": "exhausted"})
    hand.run_one(Raised(ErrorInfo("ValueError", "no", stack="line 1")), "and failed\n")
    waiting = stage.begun()
    stage.part(waiting, "half", '{"x": 1}', 1)
    held = here.jobs.enqueue("note", args=["held"], hold=True, delay=60, policy={"timeout": 60}, limit_key="k")
    here.jobs.enqueue("note", args=["line"], target="acme/site", after=[held.id])
    here.queues.pause("money", seconds=600, reason="lunch")
    here.targets.pause("acme/site")
    here.queues.limit("money", concurrency=3, rate="5/s")
    here.limits.key("k", concurrency=1)
    here.blacklist.add("bill", reason="bad")
    here.settings.set("breaker_tenants", 7)
    bulk = here.bulks.start("cancel", workflow="bill")
    here.schedules.create(
        "nightly", "note", cron="0 3 * * *", zone="Europe/Berlin", args=["by the clock"], tags=["a"]
    )
    here.schedules.run_now("nightly")
    here.hooks.create("pushes", "note", arguments={"text": "body.text"}, tags=["a"])
    here.hooks.rotate("pushes", overlap=600)
    [hook] = stage.store.hooks(None)
    stage.store.refuse_hook_deliveries([HookRefusal(hook.number, "misfit", "there is no body.text", 422, "id:1")])
    here.webhooks.create("money", "https://93.184.216.34/", topic="x")
    here.webhooks.test("money")
    here.schedules.pause("nightly", seconds=600, reason="lunch")
    here.signing.revoke("old-1", reason="a laptop was lost")
    key = here.keys.create("reader", role="reader")
    here.keys.revoke(key.id)
    # Once there was a key, the server asks for one.
    admin = here.keys.create("root", role="platform-admin")
    stage.store.open_browser_session(NewBrowserSession("0" * 64, admin.id, 600.0, 600.0), "root")
    order = here.workers.drain("hand").items[0]
    stage.store.see_alerts("worker_silent", [finding("worker_silent", ("w",), "w", "it is gone", "/workers")])
    return {
        "job": [done.id, failed.id, waiting.id, held.id],
        "workflow": ["note"],
        "target": ["acme/site"],
        "name": ["default"],
        "number": [bulk.number],
        "key": [key.id],
        "order": [order.number],
        "schedule": ["nightly"],
        "hook": ["pushes", "nothing"],
        "webhook": ["money", "nothing"],
        "admin": admin.key,
    }


def asked(operation: Operation[Any, Any], busy: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    needed = [
        p.name
        for p in [*inspect.signature(operation.function).parameters.values()][1:]
        if p.default is p.empty and p.kind is not p.KEYWORD_ONLY
    ]
    at_once = {"timeout": 0} if "timeout" in inspect.signature(operation.function).parameters else {}
    if operation.name == "settings.get":
        yield ("breaker_tenants",), {}
    elif not needed:
        yield (), at_once
    else:
        for value in busy[needed[0]]:
            yield (value,), at_once


def answer(face: Any, operation: Operation[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The view, or what it was refused with: its type, its words and what it carries."""
    try:
        return getattr(getattr(face, operation.noun), operation.verb)(*args, **kwargs)
    except unstuck.UnstuckError as error:
        return type(error), str(error), {name: value for name, value in vars(error).items() if name in CARRIED}


def still(value: Any) -> Any:
    """Without what moves between two looks."""
    if isinstance(value, dict):
        return {name: still(each) for name, each in value.items() if name not in MOVES}
    if type(value) is str:
        return re.sub(r"\b[0-9.]+ ?(ms|s|m|min|h)\b", "so long", value)  # "ended: COMPLETED 2s ago"
    return [still(each) for each in value] if isinstance(value, list) else value


def test_every_read_is_the_same_over_http(url: str, here: unstuck.App, busy: dict[str, Any]) -> None:
    client, empty = unstuck.Client(url, busy["admin"]), []
    for operation in READS:
        for args, kwargs in asked(operation, busy):
            local = answer(here, operation, args, kwargs)
            remote = answer(client, operation, args, kwargs)

            assert type(remote) is type(local), operation.name
            assert still(plain(remote)) == still(plain(local)), operation.name
            _check_kinds(local, remote, operation.name)
            if isinstance(local, unstuck.Page) and not local.items:
                empty.append(operation.name)
    # What nothing was found of proves little: these alone, and of some jobs.
    assert set(empty) <= {
        "approvals.list", "notifications.list", "quarantine.list", "keys.list", "jobs.steps", "jobs.partials",
        "jobs.waits", "jobs.children", "jobs.attempts", "jobs.logs", "jobs.history",
    }  # fmt: skip


def _check_kinds(local: Any, remote: Any, where: str) -> None:
    """Enums, instants and views are what they are, not texts and mappings that look like them."""
    if local is None or remote is None:
        return
    if hasattr(local, "__struct_fields__"):
        assert type(local) is type(remote), where
        for name in local.__struct_fields__:
            _check_kinds(getattr(local, name), getattr(remote, name), f"{where}.{name}")
    elif isinstance(local, tuple) and isinstance(remote, tuple):
        for one, other in zip(local, remote, strict=False):
            _check_kinds(one, other, where)
    elif where.endswith("shown_state"):
        assert str(local) == str(remote)
    elif not where.endswith(tuple(MOVES)):
        assert type(local) is type(remote), f"{where}: {type(local)} {type(remote)}"


CHANGES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("queues.pause", ("io",), {"seconds": "5m", "reason": "x", "by": "anna"}),
    ("queues.unpause", ("io",), {}),
    ("queues.limit", ("io",), {"concurrency": 2, "rate": "5/s"}),
    ("queues.unlimit", ("io",), {}),
    ("targets.pause", ("acme/site",), {}),
    ("targets.unpause", ("acme/site",), {}),
    ("tenants.pause", ("acme",), {}),
    ("tenants.unpause", ("acme",), {}),
    ("tenants.weigh", ("acme", 3), {}),
    ("tenants.limit", ("acme",), {"concurrency": 4}),
    ("tenants.unlimit", ("acme",), {}),
    ("workflows.pause", ("note",), {}),
    ("workflows.unpause", ("note",), {}),
    ("workflows.limit", ("note",), {"concurrency": 4}),
    ("workflows.unlimit", ("note",), {}),
    ("limits.key", ("k/1",), {"concurrency": 1}),
    ("limits.unlimit_key", ("k/1",), {}),
    ("blacklist.add", ("note",), {"reason": "bad"}),
    ("blacklist.remove", ("note",), {}),
    ("settings.set", ("breaker_tenants", 9), {}),
    ("settings.reset", ("breaker_tenants",), {}),
    ("quarantine.retry", (), {}),
    ("bulks.start", ("cancel",), {"workflow": "note"}),
    ("bulks.cancel", (1,), {}),
    ("events.send", ("paid", {"n": 1}), {"topic": "t", "id": "e1"}),
    ("keys.create", ("anna",), {"role": "reader"}),
]


def test_every_change_answers_the_same_over_http(client: unstuck.Client, here: unstuck.App) -> None:
    """Each is asked of the database, then over HTTP; what the first left, the second finds, or does again."""
    with_code(here)
    deploy(here)
    here.jobs.enqueue("note", args=["x"], target="acme/site")
    here.jobs.enqueue("note", args=["x"], tenant="acme")
    for name, args, kwargs in CHANGES:
        noun, verb = name.split(".")
        if name in ("blacklist.remove", "bulks.cancel"):
            remote = getattr(getattr(client, noun), verb)(*args, **kwargs)
            assert type(remote).__name__ in ("BlacklistRemoved", "BulkView")
            continue
        if name == "keys.create":
            # From here on the server asks for one.
            made = client.keys.create(*args, **kwargs)
            assert made.key.startswith("usk_")
            assert made.name == "anna"
            continue
        local = getattr(getattr(here, noun), verb)(*args, **kwargs)
        remote = getattr(getattr(client, noun), verb)(*args, **kwargs)
        assert type(remote) is type(local), name
        assert plain(remote).keys() == plain(local).keys()
        _check_kinds(local, remote, name)


def test_the_face_of_a_client_has_every_operation() -> None:
    client, aclient = unstuck.Client("http://localhost:1"), unstuck.AsyncClient("http://localhost:1")
    for operation in OPERATIONS.values():
        parameters = inspect.signature(getattr(getattr(client, operation.noun), operation.verb)).parameters
        alone = getattr(getattr(aclient, operation.noun), operation.verb)
        assert inspect.signature(alone).parameters == parameters
        assert inspect.iscoroutinefunction(alone) == (operation.entry.effect != "stream")
    assert len(routes()) > 80
