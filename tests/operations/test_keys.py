"""API keys: who hands out what, whose are seen, what the audit keeps. Check 1, 3, 5, 27."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.operations.conftest import Ask
from tests.support.builders import a_job, a_worker, claim_all
from unstuck.model.errors import InvalidInput, KeyEnded, NotAsked, NotPermitted, UnknownKey
from unstuck.model.keys import digest, id_in
from unstuck.model.settlement import Parked
from unstuck.model.waits import Wait, WaitKind
from unstuck.operations import approvals, audit, keys, queues, tenants
from unstuck.operations.keyring import Keyring
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.table import INCLUDED, Caller, Role
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore
from unstuck.views import plain


@pytest.fixture
def by_key(store: SqlStore, ask: Ask) -> Any:
    """Whoever has a key made so, as a server knows them."""
    ring = Keyring(store)

    def caller(name: str, **facts: Any) -> Caller:
        tenant = facts.pop("tenant", "acme")
        made = keys.create(ask(tenant=tenant), name, **facts)
        return ring.authenticate(made.key).caller(ask())

    yield caller
    ring.close()


def test_a_key_is_shown_once_and_nothing_else_tells_it(ask: Ask, store: SqlStore) -> None:
    made = keys.create(ask(tenant="acme"), "ci", role="operator", expires="90d", queues=["io"], scopes=["act-as"])
    assert id_in(made.key) == made.id
    assert (made.name, made.tenant, made.role, made.state) == ("ci", "acme", "operator", "active")
    assert (made.queues, made.workflows, made.scopes, made.created_by) == (("io",), None, ("act-as",), "ada")
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).days in (89, 90)
    shown = keys.get(ask(), made.id)
    assert plain(shown) == {name: value for name, value in plain(made).items() if name != "key"}
    everything = json.dumps([plain(shown), plain(keys.list_(ask())), plain(audit.list_(ask()))])
    for secret in (made.key, made.key[13:], digest(made.key)):
        assert secret not in everything


def test_a_dump_of_the_database_holds_no_key(ask: Ask, store: SqlStore, store_url: str) -> None:
    """Check 5."""
    first = keys.create(ask(), "ci", role="reader")
    second = keys.rotate(ask(), first.id)
    keys.revoke(ask(), first.id)
    dump = dumped(store_url)
    assert first.id in dump, "the dump is one"
    assert second.id in dump
    for made in (first, second):
        assert made.key not in dump
        assert made.key[13:56] not in dump
    assert re.search(r"usk_[0-9a-z]{8}_", dump) is None


def dumped(url: str) -> str:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            return "\n".join(connection.iterdump())
        finally:
            connection.close()
    with psycopg.connect(url) as server:
        tables = server.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'unstuck%'")
        return "\n".join(
            str(row) for (table,) in tables.fetchall() for row in server.execute(f"SELECT * FROM {table}").fetchall()
        )


# --- who hands out what ---------------------------------------------------------------------------------------------


def test_a_tenant_admin_makes_keys_of_its_tenant_up_to_its_own_role(by_key: Any, ask: Ask) -> None:
    """Check 3."""
    admin = by_key("boss", role="tenant-admin")
    for role in ("reader", "submitter", "operator", "tenant-admin"):
        assert keys.create(admin, "x", role=role).tenant == "acme"
    for role in ("platform-admin", "worker"):
        with pytest.raises(NotPermitted if role == "worker" else InvalidInput):
            keys.create(admin, "x", role=role)
    for other in ("other", "*"):
        with pytest.raises(NotPermitted, match="acme alone"):
            keys.create(admin.about(other), "x", role="reader")
    with pytest.raises(NotPermitted, match="scope act-as"):
        keys.create(admin, "x", role="reader", scopes=["act-as"])
    deputy = by_key("deputy", role="tenant-admin", scopes=["act-as"])
    assert keys.create(deputy, "x", role="reader", scopes=["act-as"]).scopes == ("act-as",)
    for role in ("reader", "submitter", "operator", "worker"):
        with pytest.raises(NotPermitted, match="needs the role tenant-admin"):
            keys.create(by_key(role, role=role), "x", role="reader")
    assert keys.create(by_key("root", role="platform-admin", tenant=None), "x", role="worker").tenant is None


def test_an_admin_of_tenants_has_no_say_about_keys_above_it(by_key: Any, ask: Ask) -> None:
    """It is bound to no tenant, so it sees the platform's keys: it neither renews nor ends them."""
    admin = by_key("wide", role="tenant-admin", tenant=None)
    root = keys.create(ask(), "root", role="platform-admin")
    for refused in (keys.rotate, keys.revoke):
        with pytest.raises(NotPermitted, match="no say"):
            refused(admin, root.id)
    with pytest.raises(NotPermitted, match="no say"):
        keys.create(admin, "x", role="platform-admin")


def test_a_key_of_another_tenant_looks_like_an_unknown_one(by_key: Any, ask: Ask) -> None:
    """Check 1."""
    admin = by_key("boss", role="tenant-admin")
    theirs = keys.create(ask(tenant="other"), "x", role="reader")
    platform = keys.create(ask(), "x", role="reader")
    for refused in (keys.get, keys.revoke, keys.rotate):
        said = set()
        for ident in (theirs.id, platform.id, "zzzzzzzz"):
            with pytest.raises(UnknownKey) as caught:
                refused(admin, ident)
            said.add(str(caught.value).replace(ident, "ID"))
        assert len(said) == 1
    assert [key.name for key in keys.list_(admin)] == ["boss"]
    assert keys.get(ask(), theirs.id).state == "active"


def test_a_key_that_is_pasted_whole_is_understood_and_never_repeated(ask: Ask) -> None:
    made = keys.create(ask(), "ci", role="reader")
    assert keys.get(ask(), made.key).id == made.id
    for bad in (made.key[:-1], made.key + "x", f"{made.key} ", made.key.replace("usk", "usx")):
        with pytest.raises(UnknownKey) as caught:
            keys.revoke(ask(), bad)
        assert made.key[13:50] not in str(caught.value)
        assert made.key[13:50] not in repr(vars(caught.value))


@pytest.mark.parametrize(
    "bad",
    [
        {"role": "god"}, {"role": "reader", "scopes": ["root"]}, {"role": "reader", "scopes": "act-as"},
        {"role": "reader", "queues": []}, {"role": "reader", "queues": "io"}, {"role": "reader", "workflows": [""]},
        {"role": "reader", "expires": 0}, {"role": "reader", "expires": "soon"}, {"role": "reader", "expires": -1},
        {"role": "platform-admin", "tenant": "acme"}, {"role": "reader", "name": ""},
        {"role": "reader", "name": "a\nb"},
        {"role": "reader", "name": "anna via key x"}, {"role": "reader", "name": "\x00"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_bad_input_makes_nothing(ask: Ask, bad: dict[str, Any]) -> None:
    tenant, name = bad.pop("tenant", None), bad.pop("name", "ci")
    with pytest.raises(InvalidInput):
        keys.create(ask(tenant=tenant), name, **bad)
    assert [*keys.list_(ask(), ended=True)] == []


def test_a_list_is_paged_and_shows_what_ended_only_if_asked(ask: Ask) -> None:
    made = [keys.create(ask(), f"k{n}", role="reader") for n in range(5)]
    keys.revoke(ask(), made[0].id)
    first = keys.list_(ask(), limit=2)
    second = keys.list_(ask(), limit=2, after=first.next)
    assert [key.name for key in (*first, *second)] == ["k4", "k3", "k2", "k1"]
    assert [key.name for key in keys.list_(ask(), limit=2, after=second.next)] == []
    assert [key.state for key in keys.list_(ask(), ended=True)] == ["active"] * 4 + ["revoked"]


def test_a_rotated_key_keeps_its_rights_and_lasts_as_long_as_it_was_to(ask: Ask, clock: StoreClock) -> None:
    old = keys.create(ask(tenant="acme"), "ci", role="operator", expires="10d", queues=["io"], scopes=["act-as"])
    clock.advance(days=4)
    new = keys.rotate(ask(by="eve"), old.id, overlap="5m")
    same = ("name", "tenant", "role", "scopes", "queues", "workflows")
    assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
    assert (new.rotated_from, new.created_by, new.key != old.key) == (old.id, "eve", True)
    assert new.expires_at is not None
    assert (new.expires_at - new.created_at).total_seconds() == pytest.approx(864_000, abs=5)
    assert keys.get(ask(), old.id).rotated_to == new.id
    with pytest.raises(KeyEnded):
        keys.rotate(ask(), old.id)
    clock.advance(minutes=6)
    assert keys.get(ask(), old.id).state == "expired"
    assert keys.rotate(ask(), new.id, expires="1h").rotated_from == new.id


# --- who asks -------------------------------------------------------------------------------------------------------


def test_over_a_key_its_owner_asks_and_only_act_as_may_name_another(by_key: Any, ask: Ask) -> None:
    """Check 27: the audit keeps both."""
    tenants.weigh(ask(), "acme", 1)
    deploy = by_key("deploy", role="operator")
    queues.pause(deploy, "io")
    with pytest.raises(NotPermitted, match="act-as"):
        deploy.about(by="anna")
    assert deploy.about(by="deploy").by == "deploy"
    proxy = by_key("proxy", role="operator", scopes=["act-as"])
    queues.pause(proxy.about(by="anna"), "cpu")
    queues.pause(proxy.about(by="anna").about(by="bob"), "gpu")
    for bad in ("anna via key root", "x" * 101, ""):
        with pytest.raises(InvalidInput):
            proxy.about(by=bad)
    said = {line.subject: line.by for line in audit.list_(ask(tenant="acme"), verb="queues.pause")}
    assert said == {"io": "deploy", "cpu": "anna via key proxy", "gpu": "bob via key proxy"}


def test_a_question_for_certain_people_is_answered_for_them_by_a_key_that_may_speak_for_them(
    store: SqlStore, by_key: Any
) -> None:
    job = a_job(tenant="acme")
    store.submit([job])
    worker = a_worker(store)
    [attempt] = claim_all(store, worker)
    asked = Wait(WaitKind.APPROVAL, "approval#1", "Push?", who=("anna",))
    store.settle(worker.number, [Report(attempt.ref, Parked(asked))])
    proxy = by_key("proxy", role="operator", scopes=["act-as"])
    for other in (by_key("deploy", role="operator"), proxy, proxy.about(by="bob")):
        with pytest.raises(NotAsked):
            approvals.approve(other, job.id)
    assert approvals.approve(proxy.about(by="anna"), job.id).answered_by == "anna via key proxy"


# --- role by operation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_each_role_may_ask_what_the_table_says_and_nothing_else(by_key: Any, role: Role) -> None:
    """Check 3, A37: deny by default, for each operation, by a key of each role; only admins change settings."""
    caller = by_key("who", role=role, tenant=None if role is Role.PLATFORM_ADMIN else "acme")
    assert (caller.role, caller.bound) == (role, None if role is Role.PLATFORM_ADMIN else "acme")
    allowed = set()
    for operation in OPERATIONS.values():
        try:
            operation.admitted(caller)
            allowed.add(operation.name)
        except NotPermitted:
            pass
    assert allowed == {name for name, found in OPERATIONS.items() if found.entry.role in INCLUDED[role]}
    told = {
        Role.READER: ({"jobs.list", "settings.get"}, {"jobs.enqueue", "jobs.cancel", "keys.list"}),
        Role.SUBMITTER: ({"jobs.enqueue"}, {"jobs.cancel", "queues.pause", "approvals.approve"}),
        Role.OPERATOR: ({"jobs.cancel", "queues.pause"}, {"keys.list", "blacklist.add", "settings.set"}),
        Role.TENANT_ADMIN: ({"keys.create", "blacklist.add"}, {"settings.set", "tenants.list", "workers.kill"}),
        Role.PLATFORM_ADMIN: ({"settings.set", "tenants.list", "keys.create"}, set()),
        Role.WORKER: (set(), set(OPERATIONS)),
    }[role]
    assert told[0] <= allowed
    assert not told[1] & allowed
