"""Workers at a distance that do not behave: what they forge, flood and lost is refused, and nothing is changed."""

from __future__ import annotations

import gc
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from tests.server.conftest import JSON, Site, problem, running
from tests.server.test_remote_workers import GREET, NIGHTLY, FarWorker, a_far_worker, enter_at, replace_job, told
from tests.support.builders import chance, record, submitted
from tests.support.eventually import eventually
from tests.support.far_workers import worker_key
from tests.tiers import slow
from unstuck.assembly.server import ServerOptions
from unstuck.assembly.worker import WorkerOptions, server_port
from unstuck.model.errors import InvalidInput
from unstuck.model.job import AttemptRef
from unstuck.model.keys import id_in
from unstuck.model.lifecycle import JobState
from unstuck.model.news import Publication
from unstuck.model.offers import claim_id, remote_incarnation
from unstuck.model.schedules import DeclaredSchedule
from unstuck.model.settlement import Returned
from unstuck.operations import health, jobs, keys, notifications, workers
from unstuck.operations.metrics import MetricsMemory, measure
from unstuck.operations.table import Caller
from unstuck.server import bodies, remote_workers
from unstuck.server.exchange import Exchange
from unstuck.store.port import AttemptOutput, NewChild, NewStep, Report, Verdict, Wanted, wire
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def worker(site: Site, store: SqlStore) -> Iterator[FarWorker]:
    entered = enter_at(site, store, "host", queues=["default"])
    yield entered
    entered.port.close()


def settled(site: Site, worker: FarWorker, ref: AttemptRef) -> object:
    answer = told(site, worker, "settle", reports=[wire.ReportWire.of(Report(ref, Returned("1"), 5))])
    return answer.json()["settled"][0]["verdict"]


def test_a_token_that_was_not_given_ends_and_acknowledges_nothing(
    worker: FarWorker, site: Site, store: SqlStore
) -> None:
    job = submitted(store)
    claim = claim_id(worker.number, chance.nonce())
    (given,) = worker.port.take(worker.number, claim, worker.wanted())
    for forged in (given.ref._replace(token=given.ref.token + 1), given.ref._replace(job=given.ref.job + 1)):
        answer = told(site, worker, "acknowledge", claim=claim, offers=[forged])
        assert answer.json() == {"verdicts": ["fenced"]}
    for ref in (given.ref._replace(token=-1), given.ref._replace(token=1 << 63), given.ref._replace(job=0)):
        assert told(site, worker, "settle", reports=[_report(ref, claim)]).status_code in (403, 422)
    assert settled(site, worker, given.ref._replace(claim=claim)) == "fenced", "an offer that was not heard of"
    assert worker.port.acknowledge(worker.number, claim, [given.ref]) == [Verdict.DONE]
    mine = given.ref._replace(claim=claim)
    for forged in (mine._replace(token=mine.token + 1), mine._replace(claim=claim_id(worker.number, chance.nonce()))):
        assert settled(site, worker, forged) == "fenced"
    assert [event.kind for event in store.history("default", job.id)] == ["submitted", "claimed"]
    assert settled(site, worker, mine) == "done"


def _report(ref: AttemptRef, claim: str) -> wire.ReportWire:
    return wire.ReportWire.of(Report(ref._replace(claim=claim), Returned("1"), 5))


def test_of_a_job_that_it_lost_nothing_is_written_any_more(worker: FarWorker, site: Site, store: SqlStore) -> None:
    job = submitted(store)
    (lost,) = worker.take()
    worker.port.renew(worker.number, 1.0)
    (found,) = eventually(lambda: store.recover_lost(0.0))
    assert found.id == job.id
    heir = enter_at(site, store, "heir")
    (given,) = heir.take()
    ref = lost.ref
    answers = {
        "record_steps": told(site, worker, "record_steps", steps=[NewStep(ref, "s", 1, "1", 3)]),
        "keep_output": told(site, worker, "keep_output", outputs=[AttemptOutput(ref, "x", '{"done": 1}')]),
        "keep_part": told(site, worker, "keep_part", ref=ref, serial=1, name="p", value="1"),
        "spend": told(site, worker, "spend", ref=ref, serial=1, amounts={"tokens": 1.0}),
        "ask": told(site, worker, "ask", ref=ref, kind="timeout", reason="x"),
        "journal": told(site, worker, "journal", ref=ref),
        "gather": told(site, worker, "gather", ref=ref, children=[job.id]),
        "payloads": told(site, worker, "payloads", refs=[ref]),
        "spawn": told(site, worker, "spawn", child=NewChild(ref, "c", 1, replace_job(store, lost))),
    }
    for verb, answer in answers.items():
        assert answer.json() in (None, "fenced", ["fenced"], {"payloads": [None]}), (verb, answer.text)
    assert settled(site, worker, ref) == "fenced"
    assert store.steps_of("default", job.id) == []
    assert store.children_of("default", job.id) == []
    assert [event.kind for event in store.history("default", job.id)][2:] == ["lost", "claimed"]
    assert heir.settle(given.ref) is Verdict.DONE
    assert record(store, job.id).state is JobState.COMPLETED
    heir.port.close()


def test_more_than_one_body_may_hold_is_refused_of_every_kind(worker: FarWorker, site: Site, store: SqlStore) -> None:
    ref = AttemptRef(1, 1, claim_id(worker.number, chance.nonce()))
    offer = ref._replace(claim=ref.claim + "~")
    many = wire.MOST_AT_ONCE + 1
    for verb, body in (
        ("settle", {"reports": [wire.ReportWire.of(Report(ref, Returned("1"), 5))] * many}),
        ("record_steps", {"steps": [NewStep(ref, "s", 1, "1", 3)] * many}),
        ("acknowledge", {"claim": ref.claim, "offers": [offer] * many}),
        ("workflows", {"workflows": [GREET] * many, "queues": ["default"]}),
        ("workflows", {"workflows": [GREET], "queues": ["default"] * many}),
    ):
        refused = problem(told(site, worker, verb, **body), 422, "InvalidInput")
        assert f"{many:,}" in refused["detail"], verb
    for names in ("workflows", "queues", "quick", "alone", "signed"):
        claim, wanted = claim_id(worker.number, chance.nonce()), worker.wanted(**{names: ("greet",) * many})
        refused = problem(told(site, worker, "take", claim=claim, wanted=wanted), 422, "InvalidInput")
        assert f"{many:,}" in refused["detail"], names
    for wait in (-1.0, 31.0, 1e9):
        claim = claim_id(worker.number, chance.nonce())
        wanted = replace(worker.wanted(), wait=wait)
        problem(told(site, worker, "take", claim=claim, wanted=wanted), 422, "InvalidInput")
    submitted(store)
    greedy = told(
        site, worker, "take", claim=claim_id(worker.number, chance.nonce()), wanted=worker.wanted(slots=1 << 40)
    )
    assert len(greedy.json()["jobs"]) == 1


def test_a_queue_outside_its_grant_is_neither_registered_nor_served(
    worker: FarWorker, site: Site, store: SqlStore
) -> None:
    elsewhere = replace(GREET, queue="other")
    problem(told(site, worker, "workflows", workflows=[elsewhere], queues=["default"]), 403, "NotPermitted")
    problem(told(site, worker, "workflows", workflows=[GREET], queues=["default", "other"]), 403, "NotPermitted")
    submitted(store, queue="other")
    assert worker.take(queues=("default", "other")) == []
    (seen,) = store.workers()
    assert seen.serves["queues"] == ["default"]
    known = store.workflow("greet")
    assert known is not None
    assert known.queue == "default"


def test_a_body_that_is_too_large_is_not_read_and_told(worker: FarWorker, site: Site, store: SqlStore) -> None:
    ref = AttemptRef(1, 1, claim_id(worker.number, chance.nonce()))
    huge = [AttemptOutput(ref, "x" * (wire.MOST_BYTES + 1))]
    problem(told(site, worker, "keep_output", outputs=huge), 413, "TooLarge")
    (line,) = store.audit(None, verb="workers.refuse", limit=10)
    assert (line.by, line.key, line.address) == ("host", id_in(worker.key), "127.0.0.1")
    assert "larger than" in line.detail["reason"]


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("control", {"seen": "x" * (8 << 10), "wait": 30.0}),
        ("take", {"claim": "c", "wanted": Wanted(1, ("x" * (2 << 20),), (), wait=30.0)}),
    ],
)
def test_who_waits_may_say_little_and_more_is_told(
    worker: FarWorker, site: Site, store: SqlStore, verb: str, said: dict[str, Any]
) -> None:
    """A key may have thousands of them, and a server keeps what each said until it is answered."""
    problem(told(site, worker, verb, **said), 413, "TooLarge")
    (line,) = store.audit(None, verb="workers.refuse", limit=10)
    assert (line.by, line.key) == ("host", id_in(worker.key))
    assert "larger than" in line.detail["reason"]


def test_of_those_who_wait_no_body_is_kept(worker: FarWorker, store: SqlStore) -> None:
    names = tuple(f"{number:0200}" for number in range(wire.MOST_AT_ONCE - 1))

    def kept() -> list[int]:
        gc.collect()
        found = [each for each in gc.get_objects() if isinstance(each, Exchange)]
        return [len(each.body) for each in found if each.own_path.endswith("/take")]

    with ThreadPoolExecutor(1) as one:
        poll = one.submit(lambda: worker.take(workflows=("greet", *names), wait=30.0))
        eventually(lambda: kept() == [0], timeout=20)
        job = submitted(store)
        assert [given.id for given in poll.result(30)] == [job.id]


def test_only_so_many_large_bodies_come_at_once_of_a_server_and_of_a_key(
    worker: FarWorker, site: Site, store: SqlStore
) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with ExitStack() as begun:

        def begin(key: str) -> bool:
            """A body that never comes; whether the server waits for it."""
            connection = begun.enter_context(socket.create_connection((host, int(port)), timeout=20))
            lines = [
                "POST /api/v1/worker/settle HTTP/1.1", f"host: {host}:{port}", f"authorization: Bearer {key}",
                "content-type: application/json", f"content-length: {bodies.MOST_BYTES + 1}", "expect: 100-continue",
            ]  # fmt: skip
            connection.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
            return connection.recv(100).startswith(b"HTTP/1.1 100 ")

        of_key = [True] * bodies.MOST_LARGE_OF_KEY + [False]
        assert [begin(worker.key) for _ in of_key] == of_key
        for _ in range(bodies.MOST_LARGE // bodies.MOST_LARGE_OF_KEY - 1):
            assert all(begin(key) for key in [worker_key(store)] * bodies.MOST_LARGE_OF_KEY)
        assert not begin(worker_key(store))
        assert told(site, worker, "probe").status_code == 200
    ref = AttemptRef(1, 1, claim_id(worker.number, chance.nonce()))
    large = [AttemptOutput(ref, "x" * bodies.MOST_BYTES)]
    eventually(lambda: told(site, worker, "keep_output", outputs=large).status_code == 200)


def test_a_flood_by_one_key_is_refused_and_another_worker_goes_on(store: SqlStore, store_url: str) -> None:
    with running(ServerOptions(store_url, port=0, rate=4.0)) as site:
        flooding = enter_at(site, store, "flooding")
        answers = [told(site, flooding, "probe") for _ in range(40)]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert refused
        problem(refused[0], 429, "TooManyRequests")
        assert int(refused[0].headers["retry-after"]) >= 1
        (line,) = store.audit(None, verb="workers.refuse", limit=10)
        assert (line.by, line.key) == ("flooding", id_in(flooding.key))
        assert line.detail["reason"] == "this key may ask 4 times a second"
        job = submitted(store)
        other = enter_at(site, store, "other")
        (given,) = other.take()
        assert other.settle(given.ref) is Verdict.DONE
        assert record(store, job.id).state is JobState.COMPLETED
        for each in (flooding, other):
            each.port.close()


def test_a_flood_of_other_questions_is_no_refusal_of_a_worker(store: SqlStore, store_url: str) -> None:
    """Those about workers have almost the address of those that workers ask."""
    with running(ServerOptions(store_url, port=0, rate=4.0)) as site:
        headers = {"authorization": f"Bearer {keys.create(Caller(store, 'ada'), 'ann', role='reader').key}"}
        answers = [site.get("/api/v1/workers", headers=headers) for _ in range(20)]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert store.audit(None, verb="workers.refuse", limit=10) == []


@pytest.mark.parametrize(
    "hostile",
    [
        *({"link": link} for link in ("https://evil.example/", "//evil.example/", "/\\evil.example", "/\n/evil")),
        {"link": "javascript:alert(1)"},
        {"link": ""},
        {"severity": "x" * 70_000},
        {"severity": "\x1b[31m"},
    ],
)
def test_news_of_a_worker_lead_nowhere_else_and_are_as_bad_as_news_can_be(
    site: Site, store: SqlStore, hostile: dict[str, str]
) -> None:
    worker = enter_at(site, store, "host")
    said = {"title": "t", "message": "m", "link": "/workers", "severity": "warning"}
    problem(told(site, worker, "notify", **(said | hostile)), 422, "InvalidInput")
    assert notifications.list_(Caller(store, "ada")).items == ()
    told(site, worker, "notify", **(said | {"title": "\x1b[31mt", "message": "m\x1b[2J"}))
    (seen,) = notifications.list_(Caller(store, "ada")).items
    assert (seen.title, seen.message, seen.link) == ("?[31mt", "m?[2J", "/workers")
    worker.port.close()


def test_one_key_has_only_so_many_workers_that_live(
    worker: FarWorker, site: Site, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_workers, "MOST_OF_KEY", 3)
    headers = {**JSON, "authorization": f"Bearer {worker.key}"}
    incarnations = [remote_incarnation(id_in(worker.key), chance.nonce()) for _ in range(3)]

    def register(incarnation: str) -> Any:
        body = wire.RegisterBody(wire.PROTOCOL, a_far_worker(incarnation))
        return site.client.post("/api/v1/worker/register", content=wire.encoded(body), headers=headers)

    assert [register(each).status_code for each in incarnations] == [200, 200, 429]
    told_so = problem(register(incarnations[2]), 429, "TooManyRequests")["detail"]
    assert told_so == "3 workers live by this key already: make a key for each host"
    assert register(incarnations[0]).status_code == 200, "an answer that was lost is told again"
    assert [line.detail["reason"] for line in store.audit(None, verb="workers.refuse", limit=10)] == [told_so]
    enter_at(site, store, "another").port.close()
    assert len(list(workers.list_(Caller(store, "ada")))) == 4
    worker.port.unregister_worker(worker.number)
    assert register(incarnations[2]).status_code == 200


#: What may stand where something else is expected.
_NASTY: tuple[object, ...] = (
    None, -1, 1 << 31, 1 << 63, -(1 << 63), 1e308, "", "a\x00b", "\x1b[31m", "\ud800", "x" * 70_000,
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", [], {"": None}, "[" * 5000,
)  # fmt: skip


def _places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Everything in it that could be something else. A policy is checked as a whole."""
    if path:
        yield path
    if path[-1:] == ("policy",):
        return
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _places(each, (*path, name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _places(each, (*path, number))


def _with(value: Any, path: tuple[Any, ...], put: object) -> Any:
    if not path:
        return put
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], put)
    return copy


def test_whatever_a_worker_tells_of_itself_people_are_still_answered(
    worker: FarWorker, site: Site, store: SqlStore
) -> None:
    job = submitted(store)
    ada, memory = Caller(store, "ada"), MetricsMemory()
    told_names = ("slots", "beat", "ready", "roles", "pids", "executors", "workflows", "import_error", "polled_ago")
    broken: dict[str, str] = {}
    for put in _NASTY:
        info = dict.fromkeys((*told_names, "code_version", "draining_for", "drain", "kill_grace"), put)
        said = json.dumps({"worker": worker.number, "incarnation": worker.incarnation, "lease": 60.0, "info": info})
        headers = {**JSON, "authorization": f"Bearer {worker.key}"}
        site.client.post("/api/v1/worker/renew", content=said.encode(), headers=headers)
        try:
            assert jobs.why(ada, job.id).reasons
            assert workers.list_(ada)
            assert health.check(ada).checks
            assert measure(ada, memory)
        except Exception as error:
            broken[str(put)[:20]] = repr(error)[:200]
    assert broken == {}


@slow
@pytest.mark.timeout(300)
def test_no_word_of_a_worker_is_more_than_a_server_can_refuse(worker: FarWorker, site: Site, store: SqlStore) -> None:
    """Each value that each verb takes is replaced by what is of another kind, too large, or no text of a database."""
    submitted(store)
    (given,) = worker.take()
    ref, claim = given.ref, claim_id(worker.number, chance.nonce())
    started = {str(ref.job): store.now()}
    said_by: dict[str, dict[str, object]] = {
        "register": {},
        "workflows": {"workflows": [GREET], "queues": ["default"], "app": "shop"},
        "declare": {
            "app": "shop", "origin": "o", "code_version": "v1",
            "declared": [DeclaredSchedule("default", "n", NIGHTLY)],
        },
        "take": {"claim": claim, "wanted": worker.wanted(), "again": False},
        "acknowledge": {"claim": claim, "offers": [ref._replace(claim=claim + "~")]},
        "settle": {"reports": [wire.ReportWire.of(Report(ref._replace(token=ref.token + 1), Returned("1"), 5))]},
        "payloads": {"refs": [ref]},
        "renew": {"lease": 60.0, "state": "active", "info": {"slots": 4}},
        "reconcile": {
            "renewed": worker.port.renew(worker.number, 60.0), "held": [ref], "pending_claims": [claim],
            "settling": [ref], "started": started,
        },
        "ask": {"ref": ref, "kind": "drain", "reason": "x"},
        "keep_output": {"outputs": [AttemptOutput(ref, "hello", '{"done": 1}')]},
        "journal": {"ref": ref, "after": 0},
        "record_steps": {"steps": [NewStep(ref, "s", 1, "1", 3)]},
        "spend": {"ref": ref, "serial": 1, "amounts": {"tokens": 1.0}},
        "keep_part": {"ref": ref, "serial": 1, "name": "p", "value": "1"},
        "publish_from": {"ref": ref, "place": 1, "given": Publication("told", "{}")},
        "spawn": {"child": NewChild(ref, "c", 1, replace_job(store, given))},
        "gather": {"ref": ref, "children": [given.id], "release_target": False},
        "lift_body_mark": {"job": ref.job},
        "answer_order": {"number": 1, "answer": "done", "refused": False},
        "notify": {"title": "t", "message": "m", "link": "/", "severity": "warning"},
        "fence_worker": {"reason": "x"},
    }  # fmt: skip
    who = {"worker": worker.number, "incarnation": worker.incarnation}
    headers = {**JSON, "authorization": f"Bearer {worker.key}"}
    broken: dict[tuple[object, ...], str] = {}
    for verb, body in said_by.items():
        said = (
            wire.RegisterBody(wire.PROTOCOL, a_far_worker(worker.incarnation)) if verb == "register" else who | body
        )
        plain = json.loads(wire.encoded(said))
        for path in _places(plain):
            for put in _NASTY:
                text = json.dumps(_with(plain, path, put)).encode()
                answer = site.client.post(f"/api/v1/worker/{verb}", content=text, headers=headers)
                if answer.status_code not in (200, 400, 403, 409, 413, 422):
                    broken[verb, *path, str(put)[:20]] = answer.text[:200]
    assert not broken, "\n".join(map(str, broken))


@pytest.mark.parametrize(
    ("address", "told_so"),
    [
        ("ftp://jobs.example.org", "no server's address"),
        ("https://", "no server's address"),
        ("https://ann:pass@jobs.example.org", "no name and no password"),
        ("https://jobs.example.org/?x=1", "no server's address"),
        ("https://jobs.example.org\r\nX: y", "cannot be read"),
        ("https://jobs.exämple.org", "no server's address"),
        ("https://jobs.example.org:port", "cannot be read"),
        ("http://jobs.example.org", "where others can read it"),
        ("http://127.0.0.1.example.org", "where others can read it"),
    ],
)
def test_a_hostile_name_of_a_server_is_refused_before_a_key_goes_there(address: str, told_so: str) -> None:
    options = WorkerOptions("shop:app", "", server=address, key=f"usk_{'a' * 8}_{'b' * 32}")
    with pytest.raises(InvalidInput, match=told_so) as refused:
        server_port(options, remote_incarnation("a" * 8, chance.nonce()))
    assert "b" * 32 not in str(refused.value)
