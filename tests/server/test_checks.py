"""The checks of the threat model that concern HTTP, each named by its number; and that none is without a test.

Most stand where their subject is tested, and say so in their docstrings ("Check 7"). Here are the list, a test that
walks it, and those checks that go through the whole API.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.conftest import Site, problem
from tests.support.builders import a_worker, begin, boom, claim_all, claimed, settle, submitted
from tests.support.parking import Stage
from tests.tiers import slow
from unstuck.model.alerts import finding
from unstuck.model.job import WorkflowRecord
from unstuck.model.keys import SECRETS, id_in, spell
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Raised
from unstuck.operations import (
    blacklist,
    bulks,
    events,
    hooks,
    keyring,
    keys,
    limits,
    pauses,
    queues,
    schedules,
    targets,
    webhooks,
    workflows,
)
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.routes import PREFIX, routes
from unstuck.operations.table import INCLUDED, Caller, Role
from unstuck.server import openapi
from unstuck.server.door import HttpDoor
from unstuck.server.endpoints import Endpoints
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.store.port import AttemptOutput
from unstuck.store.sql_store import SqlStore
from unstuck.views.keys import NewKeyView

ROOT = Path(__file__).parents[2]
SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)

BUILT = {
    1: "a foreign id is an unknown id: status, words, time",
    2: "lists, counts and cursors tell nothing of another tenant",
    3: "each role may ask what the table says; a new route is shut by default",
    4: "nothing can be set besides what a request takes",
    5: "keys: hashed, shown once, revoked within 5 s",
    6: "failed keys: the same words, the same time, throttled",
    7: "the body limit counts bytes as they come",
    8: "what JSON may be",
    9: "rates and bounds, with Retry-After",
    10: "no pickle, no eval, no code by name",
    11: "frames of an executor are hostile bytes",
    12: "signatures: over the bytes as they came; the algorithm is a fact of the key",
    13: "a signed submit that is sent again is the same job",
    18: "cookies, CSRF, no change by GET, CORS off",
    19: "answers: CSP, nosniff, no frames (the dashboard's pages come later)",
    20: "no key in an address; a cookie or a one-time ticket instead, ended with its key",
    22: "the claim's three parts are compared in full",
    23: "SQL by parameters alone (row level security later)",
    24: "nothing secret in logs",
    25: "errors tell nothing of the inside",
    26: "what anybody is told: that it lives, and is ready",
    27: "the audit: who, what, by which key, from where (its hash chain later)",
}
LATER = {
    14: "signed jobs", 15: "webhooks", 16: "webhooks", 17: "webhooks", 21: "remote workers",
    28: "executors in a cage",
}  # fmt: skip


def test_each_check_that_is_built_is_shown_by_a_test_that_names_it_and_no_other() -> None:
    shown: dict[int, list[str]] = defaultdict(list)
    for path in (ROOT / "tests").rglob("test_*.py"):
        for number, name in _named(path.read_text()):
            shown[number].append(f"{path.relative_to(ROOT)}::{name}")
    assert sorted(BUILT | LATER) == list(range(1, 29))
    assert [number for number in BUILT if number not in shown] == [], "built, and named by no test"
    assert sorted(set(shown) - set(BUILT)) == [], "shown: it belongs to what is built"


def _named(text: str) -> Iterator[tuple[int, str]]:
    if "heck " not in text:
        return
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for number in re.findall(r"\b[Cc]heck (\d+)", ast.get_docstring(node) or ""):
                yield int(number), node.name


def shown(key: NewKeyView | str) -> dict[str, str]:
    return {"authorization": f"Bearer {key if isinstance(key, str) else key.key}"}


def a_key(store: SqlStore, role: str, tenant: str | None = None, name: str = "one", **more: Any) -> NewKeyView:
    return keys.create(Caller(store, "ada", tenant), name, role=role, **more)


# --- 1 and 6: time --------------------------------------------------------------------------------------------------


def looks_alike(one: Callable[[], object], other: Callable[[], object], rounds: int = 300, tries: int = 4) -> bool:
    """Whether nobody could tell them apart by the time they take: of any two, either is the slower one about as
    often. A machine that does something else meanwhile is given another try."""
    for _ in range(tries):
        taken: list[list[float]] = [[], []]
        for number in range(rounds):
            for place in (0, 1) if number % 2 else (1, 0):
                begun = time.perf_counter()
                (one, other)[place]()
                taken[place].append(time.perf_counter() - begun)
        slower = sum((a > b) + (a == b) / 2 for a in taken[0] for b in taken[1]) / rounds**2
        if 0.42 < slower < 0.58:
            return True
    return False


@slow
def test_a_difference_in_time_would_be_seen() -> None:
    """The scale itself: a tenth of a millisecond on top of half a one."""

    def takes(seconds: float) -> Callable[[], object]:
        def spin() -> None:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                pass

        return spin

    assert looks_alike(takes(0.0005), takes(0.0005))
    assert not looks_alike(takes(0.0005), takes(0.0006))


@slow
def test_a_foreign_id_takes_as_long_as_an_unknown_one(site: Site, store: SqlStore) -> None:
    """Check 1."""
    foreign, unknown = submitted(store, tenant="beta").id, "01900000-0000-7000-8000-000000000000"
    headers = shown(a_key(store, "tenant-admin", "acme"))
    for method, path in (("GET", ""), ("GET", "/history"), ("POST", "/cancel"), ("GET", "/why")):

        def ask(job: str, method: str = method, path: str = path) -> Callable[[], object]:
            body: dict[str, Any] | None = {} if method == "POST" else None
            return lambda: problem(
                site.client.request(method, f"/api/v1/jobs/{job}{path}", headers=headers, json=body),
                404,
                "UnknownJob",
            )

        assert looks_alike(ask(foreign), ask(unknown)), f"{method} {path}"


@slow
def test_an_unknown_key_takes_as_long_as_a_wrong_one(
    site: Site, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check 6: by its header, and by logging in."""
    monkeypatch.setattr(keyring, "FAILURES", 1 << 40)
    known = a_key(store, "reader").id
    wrong, unknown = (_with_id(ident) for ident in (known, "0" * 8))
    assert id_in(wrong) == known
    asks: list[Callable[[str], httpx2.Response]] = [
        lambda key: site.get("/api/v1/jobs", headers=shown(key)),
        lambda key: site.post("/api/v1/session", {"key": key}),
    ]
    for ask in asks:
        assert {ask(key).status_code for key in (wrong, unknown)} == {401}
        assert looks_alike(lambda ask=ask: ask(wrong), lambda ask=ask: ask(unknown))  # type: ignore[misc]


def _with_id(ident: str) -> str:
    number = int(ident, 36)
    return spell(number, SECRETS // 3)


# --- 2: nothing of another tenant -----------------------------------------------------------------------------------

CANARY = "CANARY77"
#: Names of the other tenant's; an answer repeats what it was asked about, so they are not the canary itself.
FOREIGN = {"queue": "q77x", "workflow": "w77x", "target": "t77x", "limit": "l77x", "schedule": "s77x", "hook": "h77x"}
FOREIGN["webhook"] = "v77x"


def inhabited(store: SqlStore) -> str:
    """A tenant with something of every kind, and the canary in all of it; the id of a job of its own."""
    beta, stage = Caller(store, f"{CANARY} by", "beta"), Stage(store)
    facts = {
        "tenant": "beta",
        "queue": FOREIGN["queue"],
        "tags": (CANARY,),
        "payload": json.dumps({"kwargs": {"a": CANARY}}),
    }
    job = submitted(store, **facts, workflow=FOREIGN["workflow"], target=FOREIGN["target"], key=CANARY).id
    submitted(store, **facts, workflow=FOREIGN["workflow"], limit_key=FOREIGN["limit"])
    worker = a_worker(store)
    failed, running_ = (claimed(store, worker, **facts) for _ in range(2))
    begin(store, worker, failed, running_)
    store.keep_output([AttemptOutput(each.ref, output=f"{CANARY}\n") for each in (failed, running_)])
    settle(store, worker, failed.ref, Raised(ErrorInfo("ValueError", CANARY, stack=CANARY)))
    stage.asks(f"{CANARY}?", of=facts)
    events.send(beta, CANARY, payload=CANARY, topic=CANARY)
    queues.pause(beta, FOREIGN["queue"], reason=CANARY)
    targets.pause(beta, FOREIGN["target"], reason=CANARY)
    workflows.pause(beta, FOREIGN["workflow"], reason=CANARY)
    limits.key(beta, FOREIGN["limit"], concurrency=1)
    schedules.create(beta, FOREIGN["schedule"], "greet", every=60, kwargs={"name": CANARY}, tags=[CANARY])
    schedules.run_now(beta, FOREIGN["schedule"])
    hooks.create(beta, FOREIGN["hook"], "greet", arguments={"name": {"value": CANARY}}, tags=[CANARY])
    webhooks.create(beta, FOREIGN["webhook"], f"https://93.184.216.34/{CANARY}", topic=CANARY)
    webhooks.test(beta, FOREIGN["webhook"])
    blacklist.add(beta, FOREIGN["workflow"], reason=CANARY)
    bulks.start(beta, "cancel", tag="nobody", reason=CANARY)
    a_key(store, "reader", "beta", CANARY)
    store.see_alerts("job_queued", [finding("job_queued", (job,), job, CANARY, f"/jobs/{job}", tenant="beta")])
    assert pauses.list_(beta).items
    return job


def readings(job: str) -> Iterator[tuple[str, bool]]:
    """Every address that reads, and whether it names something of the other tenant's."""
    names = {"job": job, **FOREIGN, "name": FOREIGN["limit"], "number": "1", "key": "aaaaaaaa", "order": "1"}
    for route in routes().values():
        if route.method == "GET":
            path = re.sub(r"{(\w+)}", lambda found: names[found[1]], PREFIX + route.path)
            yield path + ("?timeout=0" if route.name == "jobs.wait" else ""), "{" in route.path
            for field, word in (("queue", "queue"), ("workflow", "workflow"), ("target", "target")):
                if field in route.query.__struct_fields__:
                    yield f"{path}?{field}={FOREIGN[word]}", True
            for field in ("tag", "subject"):
                if field in route.query.__struct_fields__:
                    yield f"{path}?{field}={job}", True
    yield f"/api/v1/jobs/{job}/status", True
    yield "/api/platform/blacklist", False


def test_nothing_that_can_be_read_tells_of_another_tenant(site: Site, store: SqlStore) -> None:
    """Check 2: every address that reads, as each role; nor does a cursor lead there."""
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    job = inhabited(store)
    submitted(store, tenant="acme")
    theirs = shown(a_key(store, "tenant-admin", "beta"))
    told = [site.get(path, headers=theirs).text for path, _ in readings(job)]
    assert sum(CANARY in text for text in told) > 15, "it is there to be told"
    for role in (Role.READER, Role.TENANT_ADMIN):
        ours = shown(a_key(store, role, "acme"))
        for path, names_it in readings(job):
            answer = site.get(path, headers=ours)
            assert answer.status_code < 500, path
            assert CANARY not in answer.text, f"{role} {path}: {answer.text}"
            for name in () if names_it else (job, *FOREIGN.values()):
                assert name not in answer.text, f"{role} {path}: {answer.text}"
        for path in ("/api/v1/jobs", "/api/v1/events", "/api/v1/audit", "/api/v1/keys"):
            cursor = site.get(f"{path}?limit=1", headers=theirs).json()["next"]
            answer = site.get(f"{path}?limit=50", headers=ours, params={"after": cursor})
            assert CANARY not in answer.text, path
            for bad in ("-1", "9" * 40, "x", f"{cursor}x", "1;--", "%00", "start:1:2:3"):
                refused = site.get(path, headers=ours, params={"after": bad})
                assert 400 <= refused.status_code < 500, f"{path} {bad}: {refused.text}"
    assert set(site.get("/api/v1/stats", headers=ours).json()["states"].values()) <= {0, 1}


# --- 3: roles -------------------------------------------------------------------------------------------------------

_OPEN = {"session.begin", "session.get", "session.end"}


@SQLITE
def test_each_role_may_ask_what_the_document_says_and_nothing_else(site: Site, store: SqlStore) -> None:
    """Check 3: every role and every operation of the OpenAPI document; what it does not hold does not answer."""
    document = json.loads(openapi.text())
    told = {
        (method.upper(), path): one for path, several in document["paths"].items() for method, one in several.items()
    }
    every = {(each.method, each.path) for each in site.server._api._endpoints}
    # What workers at a distance ask is a protocol of their own, which is in no document.
    of_workers = {(method, path) for method, path in every if path.startswith("/api/v1/worker")} - told.keys()
    assert every - of_workers == told.keys()
    of_workers -= {("GET", "/api/v1/worker/reader")}  # whose key it is, for whoever looks at a far worker's health
    for role in Role:
        headers = shown(a_key(store, role, None if role is Role.PLATFORM_ADMIN else "acme", "role"))
        for method, path in of_workers:
            answer = site.client.request(method, path, json={} if method == "POST" else None, headers=headers)
            if Role.WORKER in INCLUDED[role]:
                assert answer.status_code in (200, 422), f"{role} {path}: {answer.text}"
            else:
                assert "needs the role worker" in problem(answer, 403, "NotPermitted")["detail"], f"{role} {path}"
        for (method, path), one in told.items():
            needed = re.search(r"Needs the role ([a-z-]+)\.", one.get("description", ""))
            if one["operationId"] in _OPEN or one["operationId"].startswith(("keys.", "sessions.")):
                assert needed or one["operationId"] in _OPEN
                continue  # they would end each other; `test_keys` has them
            assert needed is not None, path
            body: dict[str, Any] | None = {} if method in ("POST", "PUT") else None
            answer = site.client.request(method, re.sub(r"{\w+}", "1", path), json=body, headers=headers)
            if Role(needed[1]) in INCLUDED[role]:
                assert answer.status_code not in (401, 500), f"{role} {path}: {answer.text}"
                is_refused = answer.status_code == 403 and "needs the role" in answer.text
                assert not is_refused, f"{role} {path}: {answer.text}"
            else:
                assert "needs the role" in problem(answer, 403, "NotPermitted")["detail"], f"{role} {path}"


# --- 4, 8, 10, 23: what may be said ---------------------------------------------------------------------------------


@SQLITE
def test_no_request_takes_a_field_that_it_does_not_name(site: Site) -> None:
    """Check 4: of any route, in its body and in its query."""
    names = {"state_", "token", "bound", "role_", "signature", "created_at", "store", "fingerprint"}
    for route in routes().values():
        path = PREFIX + re.sub(r"{\w+}", "1", route.path)
        query = "&".join(f"{name}=1" for name in names)
        body = None if route.body is None else dict.fromkeys(names, 1)
        answer = site.client.request(route.method, f"{path}?{query}", json=body)
        refused = {(each["in"], each["pointer"]) for each in problem(answer, 422, "WrongArguments")["errors"]}
        for name in names:
            assert ("query", f"/{name}") in refused, f"{route.name}: {answer.text}"
            assert body is None or ("body", f"/{name}") in refused, f"{route.name}: {answer.text}"


def test_nothing_that_is_stored_or_sent_is_ever_run_as_code() -> None:
    """Check 10: no pickle, marshal, yaml, eval or exec, but for annotations of the app's own code, and the names of
    the fields of our own records."""
    banned = re.compile(
        r"^\s*(import|from)\s+(pickle|cPickle|marshal|shelve|dill|cloudpickle|yaml|jsonpickle)\b|(?<![\w.])(eval|exec)\(",
        re.MULTILINE,
    )
    found = {
        f"{path.relative_to(ROOT)}: {match.group(0).strip()}"
        for path in (ROOT / "src").rglob("*.py")
        for match in banned.finditer(path.read_text())
    }
    assert found == {"src/unstuck/intake/arguments.py: eval(", "src/unstuck/records.py: exec("}


INJECTED = [
    "' OR '1'='1", "'; DROP TABLE unstuck_jobs; --", '" OR ""="', "%' OR 1=1 --", "1) UNION SELECT digest --",
    "%", "_", "\\", "*", "${jndi:ldap://x}", "{{7*7}}", "$1", ":tenant", "?", "{in :ids TEXT}", "\u202e", "a\nb",
]  # fmt: skip


def test_words_that_mean_something_to_a_database_mean_nothing(site: Site, store: SqlStore) -> None:
    """Check 23: in every filter, as a name in a path, as a cursor; nothing is found by them, and nothing breaks."""
    submitted(store, tenant="default", tags=("x",), queue="q", workflow="greet", target="t")
    before = [job["id"] for job in site.get("/api/v1/jobs").json()["items"]]
    for text in INJECTED:
        for name in ("workflow", "queue", "error_type", "target", "tag"):
            answer = site.get("/api/v1/jobs", params={name: text})
            assert (answer.status_code == 200 and answer.json()["items"] == []) or answer.status_code == 422, (
                answer.text
            )
        for path in ("/api/v1/jobs/{}", "/api/v1/targets/{}", "/api/v1/workflows/{}", "/api/v1/keys/{}"):
            answer = site.get(path.format(httpx2.QueryParams({"": text}).__str__()[1:].replace("+", "%20")))
            assert answer.status_code in (404, 409, 422), f"{path} {text!r}: {answer.text}"
        for path in ("/api/v1/audit", "/api/v1/jobs", "/api/v1/events"):
            assert site.get(path, params={"after": text}).status_code == 422, text
        assert site.get("/api/v1/audit", params={"verb": text}).status_code == 422
    assert [job["id"] for job in site.get("/api/v1/jobs").json()["items"]] == before != []


# --- 24, 25, 26: what is told to whom -------------------------------------------------------------------------------


@SQLITE
def test_no_secret_reaches_a_log_whatever_it_is_said_in(
    site: Site, store: SqlStore, greet: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Check 24: keys, cookies, tokens and payloads, whether they work or not."""
    key = a_key(store, "platform-admin")
    caplog.set_level(logging.DEBUG)
    begun = site.post("/api/v1/session", {"key": key.key})
    secret, token = site.client.cookies["unstuck-session"], begun.json()["csrf"]
    site.client.cookies.clear()
    headers = shown(key)
    for more in (headers, {"cookie": f"unstuck-session={secret}"}, shown(key.key[:-1]), {"authorization": CANARY}):
        for path in ("/api/v1/jobs", f"/api/v1/jobs/{CANARY}", f"/api/v1/jobs?tag={CANARY}", f"/{CANARY}"):
            site.get(path, headers=more)
        body = {"workflow": greet, "kwargs": {"card": CANARY}, "tags": [CANARY], "key": CANARY}
        site.post("/api/v1/jobs", body, headers=more | {"x-csrf-token": token})
        site.post("/api/v1/jobs", body, headers=more | {"idempotency-key": CANARY, "x-request-id": f"{CANARY} x"})
        site.client.post("/api/v1/jobs", content=f'{{"workflow": "{CANARY}'.encode(), headers=more)
    site.post("/api/v1/session", {"key": CANARY})
    site.raw(f"GET /{CANARY} HTTP/9.9\r\n{CANARY}\r\n\r\n".encode())
    out, err = capfd.readouterr()
    # The client's are not ours; and uvicorn's access log, which the server has silenced, pytest wakes again.
    others = ("httpx2", "httpcore2", "uvicorn.access")
    ours = [record for record in caplog.records if not record.name.startswith(others)]
    logged = "\n".join([out, err, *(f"{each.getMessage()} {each.exc_text}" for each in ours)])
    for hidden in (key.key, key.key[:-1], secret, token, CANARY):
        assert hidden not in logged


LAYERS = [
    (HttpDoor, "admit"),
    (Endpoints, "find"),
    (SqlStore, "pauses"),
    (HttpAnswer, "unless_known"),
    (Exchange, "check"),
]


@pytest.mark.parametrize(("owner", "name"), LAYERS, ids=lambda each: getattr(each, "__name__", each))
def test_an_error_of_any_layer_tells_nothing_of_the_inside(
    shared_site: Site, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    """Check 25."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"{CANARY} in {__file__}")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        answer = shared_site.get("/api/v1/pauses")
    problem(answer, 500, "ServerError")
    for inside in (CANARY, "Traceback", "RuntimeError", ".py", str(ROOT), "SELECT"):
        assert inside not in answer.text
    assert not {"server", "x-powered-by"} & answer.headers.keys()


#: What scanners look for, besides what is there.
SCANNED = ["/docs", "/redoc", "/metrics", "/debug", "/admin", "/.git/config", "/.env", "/static",
           "/server-status", "/api", "/api/v2/jobs", "/api/v1/../../etc/passwd", "/openapi.json"]  # fmt: skip


@SQLITE
def test_anybody_is_told_that_it_lives_and_nothing_else(site: Site, store: SqlStore) -> None:
    """Check 26: every path of the document by every method, and what scanners look for."""
    a_key(store, "reader")
    public = {"/healthz": {"alive": True}, "/readyz": {"ready": True}}
    for path, told in public.items():
        assert site.get(path).json() == told
    document = json.loads(openapi.text())
    for path in [*document["paths"], *SCANNED]:
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            body: dict[str, Any] | None = {} if method in ("POST", "PUT", "PATCH") else None
            answer = site.client.request(method, re.sub(r"{\w+}", "1", path), json=body)
            expected = {401, 404, 405, 422} if path == "/api/v1/session" else {401, 404, 405}
            assert answer.status_code in expected, f"{method} {path}: {answer.status_code} {answer.text}"
            assert not {"server", "x-powered-by"} & answer.headers.keys()


# --- 27: the audit --------------------------------------------------------------------------------------------------


def requests(job: dict[str, str], key: str, session: int) -> Iterator[tuple[str, str, str, dict[str, Any] | None]]:
    """What each verb of the audit is done by: verb, method, path, body."""
    for verb in ("cancel", "interrupt", "skip", "retry", "resume", "release", "run-now", "replay"):
        called = {"run-now": "retry", "retry": "resume"}.get(verb, verb)
        yield f"jobs.{called}", "POST", f"/jobs/{job[verb]}/{verb}", {}
    yield "jobs.resolve", "POST", f"/jobs/{job['resolve']}/resolve", {"result": 1}
    yield "jobs.reprioritise", "POST", f"/jobs/{job['reprioritise']}/reprioritise", {"priority": 3}
    yield "approvals.approve", "POST", f"/approvals/{job['approve']}/approve", {}
    yield "approvals.reject", "POST", f"/approvals/{job['reject']}/reject", {}
    yield "dead_letters.redrive", "POST", f"/dead-letters/{job['redrive']}/redrive", {}
    yield "dead_letters.discard", "POST", f"/dead-letters/{job['discard']}/discard", {}
    yield "bulks.start", "POST", "/bulks", {"verb": "cancel", "tag": "nobody"}
    yield "events.send", "POST", "/events", {"event": "paid", "topic": "x"}
    yield "blacklist.add", "POST", "/blacklist", {"workflow": "bad", "reason": "x"}
    yield "blacklist.remove", "DELETE", "/blacklist/bad", None
    yield "keys.create", "POST", "/keys", {"name": "new", "role": "reader"}
    yield "keys.rotate", "POST", f"/keys/{key}/rotate", {}
    yield "keys.revoke", "DELETE", f"/keys/{key}", None
    yield "sessions.end", "DELETE", f"/sessions/{session}", None
    for noun, name in (("queues", "q"), ("targets", "t"), ("workflows", "greet"), ("tenants", "acme")):
        for verb in ("pause", "unpause"):
            yield f"{noun}.{verb}", "POST", f"/{noun}/{name}/{verb}", {}
    for noun, name in (("queues", "q"), ("workflows", "greet"), ("tenants", "acme")):
        yield f"{noun}.limit", "POST", f"/{noun}/{name}/limit", {"concurrency": 3}
        yield f"{noun}.unlimit", "POST", f"/{noun}/{name}/unlimit", {}
    yield "keys.limit", "POST", "/limits/keys/k", {"concurrency": 3}
    yield "keys.unlimit", "DELETE", "/limits/keys/k", None
    yield "tenants.weight", "POST", "/tenants/acme/weigh", {"weight": 3}
    for verb in ("ack", "mute", "unmute"):
        yield f"alerts.{verb}", "POST", f"/alerts/1/{verb}", {}
    yield "settings.set", "PUT", "/settings/breaker_tenants", {"value": 7}
    yield "signing.revoke", "POST", "/signing/web/revoke", {"reason": "stolen"}
    yield "signing.unrevoke", "POST", "/signing/web/unrevoke", {}
    yield "workers.drain", "POST", "/workers/drain", {"every": True}
    yield "schedules.create", "POST", "/schedules", {"name": "s", "workflow": "greet", "cron": "@daily"}
    yield "schedules.update", "PATCH", "/schedules/s", {"priority": 3}
    for verb in ("pause", "resume", "run_now"):
        yield f"schedules.{verb}", "POST", f"/schedules/s/{verb.replace('_', '-')}", {}
    day = "2020-02-29T00:00:00Z"
    yield "schedules.backfill", "POST", "/schedules/s/backfill", {"since": day, "until": day}
    yield "schedules.delete", "DELETE", "/schedules/s", None
    yield "hooks.create", "POST", "/hooks", {"name": "h", "workflow": "greet"}
    yield "hooks.update", "PATCH", "/hooks/h", {"priority": 3}
    for verb in ("rotate", "pause", "resume"):
        yield f"hooks.{verb}", "POST", f"/hooks/h/{verb}", {}
    yield "hooks.delete", "DELETE", "/hooks/h", None
    yield "webhooks.create", "POST", "/webhooks", {"name": "w", "url": "https://93.184.216.34/"}
    yield "webhooks.update", "PATCH", "/webhooks/w", {"topic": "x"}
    for verb in ("test", "rotate", "pause", "disable", "enable"):
        yield f"webhooks.{verb}", "POST", f"/webhooks/w/{verb}", {}
    yield "webhooks.replay", "POST", "/webhooks/w/replay", {"since": day}
    yield "webhooks.delete", "DELETE", "/webhooks/w", None


#: Done through the same two functions as those above, and each takes a situation of its own.
ELSEWHERE = {
    "bulks.cancel",
    "dead_letters.resign",
    "doctor.fix",
    "notifications.ack",
    "quarantine.retry",
    "workers.kill",
    "workers.recycle",
    "workers.stack",
}


def situations(store: SqlStore) -> dict[str, str]:
    """A job for each verb."""
    stage, worker = Stage(store), a_worker(store)
    blocking = submitted(store, target="blocked", retries=0).id
    while store.ingest().entries:
        pass
    [first] = [attempt for attempt in claim_all(store, worker) if attempt.id == blocking]
    tried = {"skip": first} | {verb: claimed(store, worker, retries=0) for verb in ("retry", "resolve", "replay")}
    letters = {"dead_letter": "exhausted", "retries": 0}
    tried |= {verb: claimed(store, worker, **letters) for verb in ("redrive", "discard")}
    for attempt in tried.values():
        settle(store, worker, attempt.ref, boom())
    failed = {verb: attempt.id for verb, attempt in tried.items()}
    paused = submitted(store).id
    return failed | {
        **{verb: submitted(store).id for verb in ("cancel", "reprioritise")},
        "interrupt": paused,
        "resume": paused,
        "release": submitted(store, on_hold=True).id,
        "run-now": submitted(store, delay=1000.0).id,
        "approve": stage.asks(),
        "reject": stage.asks(),
    }


def test_every_privileged_verb_is_written_down_with_its_key_and_its_address(site: Site, store: SqlStore) -> None:
    """Check 27."""
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    submitted(store, tenant="acme", queue="q", target="t")
    submitted(store, queue="q", target="t")
    store.see_alerts("worker_silent", [finding("worker_silent", ("w",), "w", "it is gone", "/workers")])
    admin, ended = a_key(store, "platform-admin", name="root", scopes=["act-as"]), a_key(store, "reader")
    session = site.post("/api/v1/session", {"key": admin.key}).json()["session"]
    site.client.cookies.clear()
    headers, done = shown(admin), set[str]()
    for verb, method, path, body in requests(situations(store), ended.id, session):
        before = store.audit(limit=1)[0].number
        answer = site.client.request(method, PREFIX + path, json=body, headers=headers)
        assert answer.is_success, f"{verb}: {answer.text}"
        lines = [line for line in store.audit() if line.number > before]
        assert verb in {line.verb for line in lines}, verb
        for line in lines:
            assert (line.by, line.key, line.address) == ("root", admin.id, "127.0.0.1"), f"{verb}: {line}"
        done.add(verb)
    audited = {each.entry.audited for each in OPERATIONS.values() if each.entry.audited is not None}
    assert audited - done == ELSEWHERE
    spoken = site.post("/api/v1/queues/q/pause", {"by": "anna"}, headers=headers)
    assert spoken.is_success
    line = store.audit(limit=1)[0]
    assert (line.by, line.key, line.address) == ("anna via key root", admin.id, "127.0.0.1")
    queues.unpause(Caller(store, "ada"), "q")
    line = store.audit(limit=1)[0]
    assert (line.by, line.key, line.address) == ("ada", None, None), "whoever has the database is not over HTTP"
    told = [
        site.get("/api/v1/audit?limit=1&verb=tenants", headers=shown(a_key(store, role, "acme"))).json()["items"][0]
        for role in ("operator", "tenant-admin")
    ]
    assert [(line["key"], line["address"]) for line in told] == [(admin.id, None), (admin.id, "127.0.0.1")]


@SQLITE
def test_no_operation_that_is_asked_over_http_changes_the_audit_or_takes_from_it(site: Site, store: SqlStore) -> None:
    """Check 27: it is only added to."""
    admin = shown(a_key(store, "platform-admin"))
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        body: dict[str, Any] | None = None if method == "DELETE" else {}
        for path in ("/api/v1/audit", "/api/v1/audit/1"):
            answer = site.client.request(method, path, json=body, headers=admin)
            assert answer.status_code in (404, 405)
    statements = (ROOT / "src/unstuck/store/sql").rglob("*.sql")
    writes = re.compile(r"(UPDATE|DELETE FROM)\s+unstuck_audit\b")
    found = {
        match.string[match.start() : match.end()]
        for path in statements
        for match in writes.finditer(path.read_text())
    }
    assert found == {"DELETE FROM unstuck_audit"}, "only the janitor forgets what is old"
