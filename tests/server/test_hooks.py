"""Deliveries over HTTP: who is believed, what is answered, what is written down, and what a stranger costs."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.conftest import Site, problem, running
from tests.support.builders import TENANT
from tests.support.eventually import eventually
from tests.support.hooks import SEALER, github, made, register, standard, stripe, verbs
from tests.support.signing import a_key
from unstuck.assembly.server import ServerOptions
from unstuck.intake.hooks import MadeHook
from unstuck.model.lifecycle import JobState
from unstuck.server import bodies
from unstuck.server.hooks import LINES
from unstuck.signing import SigningKeys
from unstuck.store.port import HookDelivery, JobFilter, Limit
from unstuck.store.sql_store import SqlStore

BODY = b'{"repo": "a/b"}'


def send(site: Site, hook: MadeHook | str, body: bytes, headers: dict[str, str], query: str = "") -> Any:
    uid = hook if isinstance(hook, str) else hook.hook.uid
    return site.client.post(f"/hooks/{uid}{query}", content=body, headers=headers)


def log(store: SqlStore, hook: MadeHook) -> list[HookDelivery]:
    return store.hook_deliveries(hook.hook.number, limit=1000)


def jobs(store: SqlStore) -> list[Any]:
    return list(store.jobs(TENANT, JobFilter(newest_first=False), 1000).jobs)


def now(store: SqlStore) -> float:
    return store.now().timestamp()


def test_a_signed_delivery_is_a_job_once_it_is_answered(site: Site, store: SqlStore) -> None:
    hook = made(store)
    first = send(site, hook, BODY, github(hook.secret, BODY), "?n=7")
    [job] = jobs(store)
    assert (first.status_code, first.json()) == (202, {"id": "d-1", "job": job.id})
    assert '"args":["a/b",7]' in job.payload

    again = send(site, hook, BODY, github(hook.secret, BODY))
    assert (again.status_code, again.json()) == (200, first.json())
    assert len(jobs(store)) == 1
    [row] = log(store, hook)
    assert (row.calls, row.address, row.size) == (2, "127.0.0.1", len(BODY))


def test_each_scheme_is_understood_as_it_is_sent(site: Site, store: SqlStore) -> None:
    plain, paid = made(store, "plain", scheme="standard"), made(store, "paid", scheme="stripe")
    at, event = now(store), b'{"id": "evt_1", "repo": "a/b"}'
    assert send(site, plain, BODY, standard(plain.secret, BODY, at)).json()["id"] == "msg_1"
    assert send(site, paid, event, stripe(paid.secret, event, at)).json()["id"] == "evt_1"
    assert send(site, paid, event, stripe(paid.secret, event, at - 5)).status_code == 200, "signed anew, and the same"
    assert len(jobs(store)) == 2
    late = send(site, plain, BODY, standard(plain.secret, BODY, at - 301, "msg_2"))
    problem(late, 401, "NotSigned")
    assert log(store, plain)[0].problem == "out_of_time"
    store.set_setting("hook_replay_window", "600", "ada")
    verbs(store).update("plain", priority=1)  # so that it is looked at again at once
    eventually(
        lambda: send(site, plain, BODY, standard(plain.secret, BODY, at - 301, "msg_3")).status_code == 202,
        timeout=20,
    )


def test_a_stranger_learns_nothing_and_leaves_few_lines(site: Site, store: SqlStore) -> None:
    hook = made(store)
    unknown = send(site, "hk_" + "a" * 24, BODY, github("s" * 20, BODY))
    told = problem(unknown, 404, "NotFound")
    assert told["detail"] == problem(site.client.post("/nowhere", content=b""), 404, "NotFound")["detail"]
    answers = [send(site, hook, BODY, github("wrong" * 5, BODY, f"d-{n}")) for n in range(30)]
    first = problem(answers[0], 401, "NotSigned")
    unsigned = problem(send(site, hook, BODY, {}), answers[-1].status_code, answers[-1].json()["code"])
    assert first["detail"] == "its signature does not hold, or is too old"
    assert {each.status_code for each in answers} == {401, 429}
    assert unsigned["code"] == "TooManyRequests"
    assert LINES <= len(log(store, hook)) <= LINES + 3
    assert {each.problem for each in log(store, hook)} <= {"wrong_signature", "unsigned"}
    good = send(site, hook, BODY, github(hook.secret, BODY))
    assert good.status_code == 202, "whoever fails from the same address keeps nobody out"


def test_what_does_not_fit_is_refused_and_written_down(site: Site, store: SqlStore) -> None:
    hook = made(store)
    for number, (body, words) in enumerate(
        [(b"{}", "there is no body.repo"), (b"no json", "not JSON"), (b'{"repo": 1}', "expected string")]
    ):
        refused = send(site, hook, body, github(hook.secret, body, f"d-{number}"))
        assert words in problem(refused, 422, "Refused")["detail"]
        [row, *_] = log(store, hook)
        assert (row.outcome, row.status, row.key, row.job) == ("refused", 422, f"id:d-{number}", None)
        assert words in str(row.reason)
    assert jobs(store) == []
    fitting = send(site, hook, BODY, github(hook.secret, BODY, "d-0"))
    assert fitting.status_code == 202, "a refusal is no delivery that came before"


def test_a35_every_gate_holds_for_deliveries(site: Site, store: SqlStore) -> None:
    """A35: blacklist, caps and pauses"""
    hook = made(store)
    store.set_limit(Limit("queue", "default", TENANT, "ada", max_queued=1))
    assert send(site, hook, BODY, github(hook.secret, BODY, "d-1")).status_code == 202
    full = send(site, hook, BODY, github(hook.secret, BODY, "d-2"))
    problem(full, 429, "TooManyRequests")
    assert int(full.headers["retry-after"]) >= 1
    store.remove_limit("queue", "default", TENANT, "ada")
    store.blacklist_add(TENANT, "build", "it loops", "ada")
    refused = problem(send(site, hook, BODY, github(hook.secret, BODY, "d-3")), 422, "Refused")
    assert "it loops" not in json.dumps(refused), "a sender is nobody of ours"
    verbs(store).pause("pushes")
    eventually(lambda: send(site, hook, BODY, github(hook.secret, BODY, "d-4")).status_code == 503, timeout=20)
    reasons = [str(each.reason) for each in log(store, hook) if each.outcome == "refused"]
    assert reasons[0] == "the hook is paused"
    assert any("WorkflowBlacklisted" in each for each in reasons)
    assert any("TooManyQueued" in each for each in reasons)
    assert len(jobs(store)) == 1


def test_an_edit_counts_at_once_and_a_rotated_secret_within_five_seconds(site: Site, store: SqlStore) -> None:
    hook = made(store)
    assert send(site, hook, BODY, github(hook.secret, BODY, "d-1")).status_code == 202
    verbs(store).update("pushes", queue="other")
    assert send(site, hook, BODY, github(hook.secret, BODY, "d-2")).status_code == 202
    assert [job.queue for job in jobs(store)] == ["default", "other"], "what the server knew is not gone by any more"
    began = time.monotonic()
    new = verbs(store).rotate("pushes", overlap=0.0)
    eventually(lambda: send(site, hook, BODY, github(new.secret, BODY, "d-3")).status_code in (200, 202), timeout=20)
    assert time.monotonic() - began < 8
    assert send(site, hook, BODY, github(hook.secret, BODY, "d-4")).status_code in (401, 429)


def test_large_and_slow_bodies_cost_nobody_a_thread(
    site: Site, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = made(store, max_bytes=1000)
    assert send(site, hook, BODY, github(hook.secret, BODY)).status_code == 202
    large = b"x" * (10 << 20)
    problem(send(site, hook, large, github(hook.secret, large)), 413, "TooLarge")
    monkeypatch.setattr(bodies, "LONGEST", 1.0)
    host, port = site.url.removeprefix("http://").rsplit(":", 1)
    head = f"POST /hooks/{hook.hook.uid} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n{{".encode()
    slow = [socket.create_connection((host, int(port)), timeout=20) for _ in range(40)]
    try:
        for each in slow:
            each.sendall(head)
        quick = send(site, hook, BODY, github(hook.secret, BODY, "d-2"))
        assert quick.status_code == 202, "forty who send slowly take no thread from anybody"
        assert b"408" in slow[0].recv(100)
    finally:
        for each in slow:
            each.close()
    eventually(lambda: {"too_large", "too_slow"} <= {str(each.problem) for each in log(store, hook)}, timeout=20)
    assert len(log(store, hook)) < 20


@pytest.fixture
def signing_site(store_url: str, store: SqlStore) -> Iterator[Site]:
    keys = SigningKeys(
        [a_key(purposes=("fire",))], SigningKeys.of(None, ["workflow:build"], may_lack_keys=True).required
    )
    with running(ServerOptions(store_url, port=0, signing=keys, sealer=SEALER)) as found:
        yield found


def test_a_hooks_job_is_signed_by_the_servers_key_and_its_secret_is_sealed(
    signing_site: Site, store: SqlStore
) -> None:
    hook = made(store, sealer=SEALER)
    assert send(signing_site, hook, BODY, github(hook.secret, BODY)).status_code == 202
    [job] = jobs(store)
    assert job.signature is not None
    assert job.made_by == "hook"
    other = made(store, "elsewhere")
    # One in clear text works, too; it is known within half a second.
    eventually(
        lambda: send(signing_site, other, BODY, github(other.secret, BODY)).status_code in (200, 202), timeout=20
    )


def test_where_a_signature_is_required_and_no_key_is_held_a_delivery_is_refused(
    store_url: str, store: SqlStore
) -> None:
    register(store)
    keys = SigningKeys(
        [a_key(purposes=("submit", "spawn"))], SigningKeys.of(None, ["workflow:build"], may_lack_keys=True).required
    )
    with running(ServerOptions(store_url, port=0, signing=keys)) as site:
        hook, sealed = made(store), made(store, "sealed", sealer=SEALER)
        problem(send(site, hook, BODY, github(hook.secret, BODY)), 422, "Refused")
        problem(send(site, sealed, BODY, github(sealed.secret, BODY)), 503, "NotReady")
    assert "SignatureRefused" in str(log(store, hook)[0].reason)
    assert "sealing_keys" in str(log(store, sealed)[0].reason)
    assert jobs(store) == []


def test_hooks_are_asked_for_over_http_and_the_secret_is_told_once(site: Site, store: SqlStore) -> None:
    register(store)
    body = {"name": "pushes", "workflow": "build", "scheme": "github", "arguments": {"repo": "body.repo"}}
    created = site.post("/api/v1/hooks", body)
    assert created.status_code == 201
    view = created.json()
    assert len(view["secret"]) == 64
    assert view["path"] == f"/hooks/{view['id']}"
    assert view["sealed"] is False
    assert "secret" not in site.get("/api/v1/hooks/pushes").json()
    assert view["secret"] not in site.get("/api/v1/hooks").text
    tried = site.post("/api/v1/hooks/pushes/dry-run", {"body": {"repo": "a/b"}}).json()
    assert tried == {"accepted": True, "signed": None, "arguments": {"repo": "a/b"}, "problem": None, "reason": None}
    wrong = site.post("/api/v1/hooks/pushes/dry-run", {"body": "{}", "headers": github("x" * 20, b"{}")}).json()
    assert (wrong["accepted"], wrong["signed"], wrong["problem"]) == (False, False, "wrong_signature")
    right = site.post("/api/v1/hooks/pushes/dry-run", {"body": "{}", "headers": github(view["secret"], b"{}")}).json()
    assert (right["signed"], right["problem"]) == (True, "misfit")
    rotated = site.post("/api/v1/hooks/pushes/rotate", {"overlap": "1h"}).json()
    assert rotated["secret"] != view["secret"]
    assert len(rotated["secrets"]) == 2
    assert site.client.patch("/api/v1/hooks/pushes", json={"priority": 4}).json()["priority"] == 4
    sent = site.client.post(f"/hooks/{view['id']}", content=BODY, headers=github(view["secret"], BODY))
    assert sent.status_code == 202
    listed = site.get("/api/v1/hooks/pushes/deliveries").json()["items"]
    assert [(each["outcome"], each["job"], each["delivery"]) for each in listed] == [
        ("accepted", sent.json()["job"], "d-1")
    ]
    assert site.client.delete("/api/v1/hooks/pushes").status_code == 200
    problem(site.get("/api/v1/hooks/pushes"), 404, "UnknownHook")
    secrets = [each for each in site.get("/api/v1/audit").json()["items"] if view["secret"] in json.dumps(each)]
    assert secrets == []
    assert site.get("/api/v1/health").json()["healthy"] in (True, False)
    assert jobs(store)[0].state is JobState.QUEUED
