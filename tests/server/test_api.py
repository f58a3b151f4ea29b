"""Everything of the table over HTTP: jobs from their submit to their end, pages, tags, the paths that others know."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.server.conftest import Site, problem
from tests.support.builders import a_worker, begin, claim_all, record, settle, submitted
from unstuck.model import errors
from unstuck.model.settlement import ErrorInfo, Raised, Returned
from unstuck.operations.routes import PREFIX, routes
from unstuck.server.problems import ERRORS
from unstuck.store.guard import dead_letters
from unstuck.store.port import NewLetter
from unstuck.store.sql_store import SqlStore


def test_a_job_from_its_submit_to_its_end(site: Site, store: SqlStore, greet: str) -> None:
    made = site.post("/api/v1/jobs", {"workflow": greet, "args": ["ada"], "priority": 5, "tags": ["x"]})
    assert made.status_code == 201
    job = made.json()
    assert (job["state"], job["priority"], job["created"]) == ("QUEUED", 5, True)
    assert made.headers["location"] == f"/api/v1/jobs/{job['id']}"
    found = site.get(made.headers["location"]).json()
    assert (found["args"], found["state"]) == (["ada"], "QUEUED")
    assert site.get(f"/api/v1/jobs/{job['id']}/why").json()["job"] == job["id"]
    ada = a_worker(store)
    [held] = claim_all(store, ada)
    begin(store, ada, held)
    assert site.get(f"/api/v1/jobs/{job['id']}").json()["state"] == "RUNNING"
    settle(store, ada, held.ref, Returned('"hello ada"'))
    ended = site.get(f"/api/v1/jobs/{job['id']}").json()
    assert (ended["state"], ended["result"]) == ("COMPLETED", "hello ada")
    problem(site.post(f"/api/v1/jobs/{job['id']}/cancel"), 409, "IllegalMove")
    again = site.post(f"/api/v1/jobs/{job['id']}/replay")
    assert again.status_code == 201
    assert again.json()["replay_of"] == job["id"]
    assert again.headers["location"].endswith(again.json()["id"])


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_every_read_without_a_thing_is_answered_as_its_route_says(site: Site, greet: str) -> None:
    site.post("/api/v1/jobs", {"workflow": greet})
    for route in routes().values():
        if route.method == "GET" and not route.names:
            answer = site.get(PREFIX + route.path)
            assert answer.status_code == 200, f"{route.name}: {answer.text}"
            msgspec.json.decode(answer.content, type=route.answer)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_every_question_about_a_job_is_answered_as_its_route_says(site: Site, store: SqlStore, greet: str) -> None:
    job = site.post("/api/v1/jobs", {"workflow": greet, "target": "t"}).json()["id"]
    letter = NewLetter(record(store, job).number, 1, "default", "default", greet, "altered", "m", None)
    store._database.write(lambda t: dead_letters.add(t, [letter]))
    for route in routes().values():
        if route.method == "GET" and "job" in route.names:
            at_once = "?timeout=0" if "timeout" in route.query.__struct_fields__ else ""
            answer = site.get(PREFIX + route.path.format(job=job) + at_once)
            assert answer.status_code == 200, f"{route.name}: {answer.text}"
            msgspec.json.decode(answer.content, type=route.answer)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_an_unknown_thing_is_a_404_or_a_422_of_every_route_and_never_a_500(site: Site) -> None:
    for route in routes().values():
        for name in ("nobody", "99", "..", "a/b", "\u202e", "%00", " "):
            parts = [quote(name, safe="") if part.startswith("{") else part for part in route.path.split("/")]
            path = PREFIX + "/".join(parts)
            body: Any = None if route.body is None else {}
            answer = site.client.request(route.method, path, json=body)
            assert answer.status_code < 500 or answer.status_code == 504, f"{route.name} {path}: {answer.text}"


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_limit_that_no_database_could_hold_is_refused_by_every_list(site: Site) -> None:
    for route in routes().values():
        if "limit" in route.query.__struct_fields__ and not route.names:
            refused = site.get(f"{PREFIX}{route.path}?limit={10**24}")
            assert refused.status_code == 422, f"{route.name}: {refused.text}"


# --- pages and tags -----------------------------------------------------------------------------------------------


def test_pages_lead_to_the_next(site: Site, store: SqlStore) -> None:
    made = [submitted(store).id for _ in range(5)]
    seen: list[str] = []
    path: str | None = "/api/v1/jobs?limit=2&newest_first=false"
    while path is not None:
        page = site.get(path)
        seen += [job["id"] for job in page.json()["items"]]
        path = page.links["next"]["url"] if "next" in page.links else None
        assert (path is None) == (page.json()["next"] is None)
    assert seen == made
    problem(site.get("/api/v1/jobs?after=nonsense"), 422, "InvalidInput")
    problem(site.get("/api/v1/jobs?limit=0"), 422, "InvalidInput")


def test_what_is_known_already_is_not_sent_again(site: Site, store: SqlStore) -> None:
    job = submitted(store).id
    first = site.get("/api/v1/queues")
    tag = first.headers["etag"]
    again = site.get("/api/v1/queues", headers={"if-none-match": f'"x", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    site.post(f"/api/v1/jobs/{job}/cancel")
    assert site.get("/api/v1/queues", headers={"if-none-match": tag}).status_code == 200


def test_a_head_is_a_get_without_its_body(site: Site) -> None:
    head = site.client.head("/api/v1/jobs")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"] == site.get("/api/v1/jobs").headers["etag"]


def test_a_wait_ends_with_its_job_or_with_its_time(site: Site, store: SqlStore) -> None:
    job = submitted(store).id
    assert site.get(f"/api/v1/jobs/{job}/wait?timeout=0.1").json()["state"] == "QUEUED"
    problem(site.get(f"/api/v1/jobs/{job}/wait?timeout=2h"), 422, "InvalidInput")
    problem(site.post(f"/api/v1/jobs/{job}/stack", {"timeout": "2h"}), 422, "InvalidInput")
    ended = threading.Thread(target=lambda: site.post(f"/api/v1/jobs/{job}/cancel"))
    ended.start()
    assert site.get(f"/api/v1/jobs/{job}/wait?timeout=20").json()["state"] == "CANCELLED"
    ended.join()


# --- names --------------------------------------------------------------------------------------------------------


def test_a_name_in_a_path_may_hold_a_slash(site: Site, store: SqlStore) -> None:
    submitted(store, target="acme/site")
    submitted(store, target="..")
    assert site.get("/api/v1/targets/acme%2Fsite").json()["name"] == "acme/site"
    assert site.raw(b"GET /api/v1/targets/%2E%2E HTTP/1.1\r\nhost: localhost\r\n\r\n").status == 200
    assert site.post("/api/v1/targets/acme%2Fsite/pause", {"seconds": "5m"}).json()["name"] == "acme/site"
    problem(site.get("/api/v1/targets/acme/site"), 404, "NotFound")


def test_who_and_whose_are_said_with_the_request(site: Site, store: SqlStore, greet: str) -> None:
    site.post("/api/v1/jobs", {"workflow": greet, "tenant": "acme"})
    site.post("/api/v1/jobs?tenant=acme", {"workflow": greet})
    assert len(site.get("/api/v1/jobs?tenant=acme").json()["items"]) == 2
    assert not site.get("/api/v1/jobs").json()["items"]
    site.post("/api/v1/queues/io/pause?tenant=acme", {"by": "anna"})
    assert site.get("/api/v1/audit?tenant=acme").json()["items"][0]["by"] == "anna"
    assert len(site.get("/api/v1/jobs?tenant=*").json()["items"]) == 2
    problem(site.post("/api/v1/jobs?tenant=*", {"workflow": greet}), 422, "InvalidInput")


# --- once ---------------------------------------------------------------------------------------------------------


def test_the_same_idempotency_key_is_the_same_job(site: Site, greet: str) -> None:
    """A45"""
    asked = {"workflow": greet, "args": [1]}
    once = {"idempotency-key": "order-7"}
    first = site.post("/api/v1/jobs", asked, headers=once)
    again = site.post("/api/v1/jobs", asked | {"key": "order-7"}, headers=once)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first.json()["key"] == "order-7"
    found = problem(site.post("/api/v1/jobs", asked | {"key": "other"}, headers=once), 422, "WrongArguments")
    assert found["errors"][0]["pointer"] == "/key"
    problem(site.post("/api/v1/jobs", {"workflow": greet, "args": [2]}, headers=once), 422, "KeyConflict")
    assert len(site.get("/api/v1/jobs").json()["items"]) == 1
    job = first.json()["id"]
    problem(site.post(f"/api/v1/jobs/{job}/replay", headers=once), 422, "InvalidInput")


def test_a_batch_answers_each_submit_in_its_place(site: Site, greet: str) -> None:
    asked = [
        {"workflow": greet},
        {"workflow": "unknown"},
        {"workflow": greet, "priority": "high"},
        5,
        {"workflow": greet},
    ]
    for expected in (201, 200):
        answer = site.post("/api/v1/jobs/batch", {"jobs": asked}, headers={"idempotency-key": "night"})
        items = answer.json()["items"]
        assert [item["status"] for item in items] == [expected, 404, 422, 422, expected]
        assert [item["job"] and item["job"]["key"] for item in items] == ["night#0", None, None, None, "night#4"]
        assert items[1]["problem"]["code"] == "UnknownWorkflowName"
    assert len(site.get("/api/v1/jobs").json()["items"]) == 2
    bodies: list[Any] = [{}, {"jobs": {}}, {"jobs": [], "more": 1}, [], {"jobs": [{}] * 1001}]
    for body in bodies:
        problem(site.post("/api/v1/jobs/batch", body), 422, "WrongArguments")


# --- the paths that others know -----------------------------------------------------------------------------------


def test_a_jobs_status_in_one_flat_object(site: Site, store: SqlStore) -> None:
    ident = submitted(store, retries=3).id
    ada = a_worker(store)
    [held] = claim_all(store, ada)
    begin(store, ada, held)
    running = site.get(f"/api/v1/jobs/{ident}/status").json()
    assert (running["status"], running["worker_id"], running["lease_owner"]) == ("RUNNING", "ada", "ada")
    assert running["lease_expires_at"] > running["heartbeat_at"]
    assert running["cancel_requested"] is False
    site.post(f"/api/v1/jobs/{ident}/cancel")
    assert site.get(f"/api/v1/jobs/{ident}/status").json()["cancel_requested"] is True
    settle(store, ada, held.ref, Raised(ErrorInfo("ValueError", "no", stack="")))
    ended = site.get(f"/api/v1/jobs/{ident}/status").json()
    assert ended["status"] == "CANCELLED"
    assert set(ended) >= {"retry_count", "error_type", "error_message", "duration_ms"}
    problem(site.get("/api/v1/jobs/0190/status"), 404, "UnknownJob")


def test_the_platforms_blacklist(site: Site, greet: str) -> None:
    """A57"""
    path = "/api/platform/blacklist"
    assert site.get(path).json() == []
    assert site.post(path, {"workflow_id": greet, "reason": "it hangs"}).json() == {"success": True}
    [entry] = site.get(path).json()
    assert (entry["workflow_id"], entry["stuck_count"], entry["removed_at"]) == (greet, None, None)
    assert entry["reason"].endswith("it hangs")
    problem(site.post("/api/v1/jobs", {"workflow": greet}), 409, "WorkflowBlacklisted")
    assert site.client.delete(f"{path}/{greet}").json() == {"success": True}
    assert site.get(path).json() == []
    problem(site.client.delete(f"{path}/{greet}"), 404, "NotBlacklisted")
    problem(site.post(path, {"reason": "what?"}), 422, "WrongArguments")


def test_a_job_is_resumed_on_its_own_target_only(site: Site, store: SqlStore) -> None:
    ident = submitted(store, target="acme/site").id
    site.post(f"/api/v1/jobs/{ident}/interrupt")
    problem(site.post(f"/targets/other/jobs/{ident}/resume/"), 404, "UnknownJob")
    assert site.get(f"/api/v1/jobs/{ident}").json()["state"] == "PAUSED"
    assert site.post(f"/targets/acme%2Fsite/jobs/{ident}/resume/").json()["state"] == "QUEUED"


# --- the server itself --------------------------------------------------------------------------------------------


def test_it_says_whether_it_lives_and_whether_it_is_ready(site: Site) -> None:
    assert site.get("/healthz").json() == {"alive": True}
    assert site.get("/readyz").json() == {"ready": True}


def test_a_request_keeps_its_id(site: Site) -> None:
    assert site.get("/healthz", headers={"x-request-id": "req-7"}).headers["x-request-id"] == "req-7"
    strange = site.get("/healthz", headers={"x-request-id": "a b<script>"}).headers["x-request-id"]
    assert len(strange) == 32


def test_every_answer_is_safe_to_show(site: Site) -> None:
    """Check 19."""
    for path in ("/healthz", "/api/v1/jobs", "/nowhere"):
        headers = site.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_a_path_and_a_method_that_are_not_there(site: Site) -> None:
    for path in (
        "/api/v1",
        "/api/v1/",
        "/api/v1/nothing",
        "/api/v1//jobs",
        "/api/v1/jobs/../jobs",
        "/etc/passwd",
    ):
        assert site.raw(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()).problem["code"] == "NotFound"
    refused = site.client.delete("/api/v1/jobs")
    problem(refused, 405, "MethodNotAllowed")
    assert refused.headers["allow"] == "GET, POST, HEAD"
    problem(site.client.options("/api/v1/jobs"), 405, "MethodNotAllowed")


def test_every_error_of_ours_has_its_status_and_its_page(site: Site) -> None:
    kinds = {
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.UnstuckError)
    }
    assert kinds == set(ERRORS)
    for kind in ERRORS:
        page = site.get(f"/problems/{kind.__name__}")
        assert str(ERRORS[kind].status) in page.text
    problem(site.get("/problems/Nothing"), 404, "NotFound")


def test_a_queue_that_is_full_says_when_to_come_again(site: Site, greet: str) -> None:
    site.post("/api/v1/queues/default/limit", {"max_queued": 1})
    assert site.post("/api/v1/jobs", {"workflow": greet}).status_code == 201
    refused = site.post("/api/v1/jobs", {"workflow": greet})
    problem(refused, 429, "TooManyQueued")
    assert int(refused.headers["retry-after"]) >= 1
