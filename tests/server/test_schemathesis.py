"""Schemathesis on every route, as each role, in two tenants: no error of the server, every answer as the document
says, what does not fit it refused, whoever may not ask told so, and nothing of the other tenant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.conftest import Site, running
from tests.support.builders import all_routes, boom, submitted
from tests.support.parking import Stage
from tests.tiers import commit_on_sqlite, slow
from unstuck.assembly.server import ServerOptions
from unstuck.operations import bulks, hooks, keys, schedules
from unstuck.operations.table import INCLUDED, Caller, Role
from unstuck.server import openapi
from unstuck.store.port import Limit, Share
from unstuck.store.sql_store import SqlStore

CHECKS = [
    status_code_conformance, content_type_conformance, response_schema_conformance, response_headers_conformance,
]  # fmt: skip
#: Of every kind of request to every route.
FEW = 2


@dataclass(frozen=True)
class Furnished:
    """What there is of one tenant, by the names that paths have for it."""

    tenant: str
    jobs: list[str]
    key: str

    def each(self, path: str) -> Iterator[dict[str, str]]:
        """The names in this path, again and again, of everything that there is."""
        named = {
            "job": cycle(self.jobs),
            "target": cycle(["acme/site", "blocked"]),
            "queue": cycle(["default"]),
            "workflow": cycle(["greet"]),
            "key": cycle([self.key]),
            "schedule": cycle(["nightly"]),
            "hook": cycle(["pushes"]),
            "name": cycle([self._name(path)]),
        }
        inside = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        while True:
            yield {name: next(named[name]) if name in named else "1" for name in inside}

    def _name(self, path: str) -> str:
        if "/settings/" in path:
            return "breaker_tenants"
        return self.tenant if "/tenants/" in path else "vendor"


def furnished(store: SqlStore, tenant: str) -> Furnished:
    """A job of every kind, each with what it may have."""
    stage, of = Stage(store), {"tenant": tenant}
    submitted(store, workflow=f"fails-{tenant}", retries=0, target="blocked", **of)
    store.ingest()
    [route] = [route for route in all_routes(store) if route.workflow == f"fails-{tenant}"]
    [failing] = store.claim(stage.worker.number, f"claim-{tenant}", [Share(route.number, 1)])
    busy = stage.begun(**of)
    stage.step(busy, "build", '"built"')
    stage.part(busy, "page", "1", 1)
    store.spend(busy.ref, 1, {"tokens": 3})
    jobs = [
        submitted(store, workflow="greet", target="acme/site", limit_key="vendor", **of).id,
        submitted(store, workflow="greet", on_hold=True, **of).id,
        busy.id,
        stage.asks(of=of),
        stage.end(stage.begun(**of)),
        stage.end(failing, boom()),
    ]
    store.set_limit(Limit("key", "vendor", tenant, "ada", concurrency=3))
    ada = Caller(store, "ada", tenant)
    bulks.start(ada, "cancel", workflow="nobody")
    schedules.create(ada, "nightly", "greet", cron="@daily", kwargs={"name": "ada"})
    hooks.create(ada, "pushes", "greet", arguments={"name": "body.name"})
    return Furnished(tenant, jobs, keys.create(ada, "spare", role="reader").id)


@slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("store_url", "role"),
    [*(("sqlite", role) for role in Role), ("postgres", Role.PLATFORM_ADMIN), ("postgres", Role.TENANT_ADMIN)],
    indirect=["store_url"],
)
def test_no_finding(role: Role, store_url: str, store: SqlStore, greet: str) -> None:
    acme, beta = furnished(store, "acme"), furnished(store, "beta")
    asking = [(None, acme, None)] if role is Role.PLATFORM_ADMIN else [("acme", acme, beta), ("beta", beta, acme)]
    made = {tenant: keys.create(Caller(store, "ada", tenant), "st", role=role).key for tenant, _, _ in asking}
    with running(ServerOptions(store_url, port=0, rate=1e6)) as site:
        for tenant, own, foreign in asking:
            walker = Walker(site, role, made[tenant], own, foreign)
            for operation in walker.operations():
                walker.walk(operation, FEW)


@commit_on_sqlite
@pytest.mark.sample
@pytest.mark.timeout(300)
def test_no_finding_in_what_a_reader_asks(store_url: str, store: SqlStore, greet: str) -> None:
    acme, beta = furnished(store, "acme"), furnished(store, "beta")
    key = keys.create(Caller(store, "ada", "acme"), "st", role="reader").key
    with running(ServerOptions(store_url, port=0, rate=1e6)) as site:
        walker = Walker(site, Role.READER, key, acme, beta)
        for operation in walker.operations():
            if operation.method == "get" and operation.path.startswith("/api/v1/jobs"):
                walker.walk(operation, 1)


class Walker:
    """Asks as one key; `foreign` is what it must not see."""

    def __init__(self, site: Site, role: Role, key: str, own: Furnished, foreign: Furnished | None) -> None:
        self._site = site
        self._role = role
        self._shown = {"authorization": f"Bearer {key}"}
        self._own = own
        self._foreign = foreign

    def operations(self) -> Iterator[Any]:
        """Of the whole document; what the server shows this key is the part that it may ask."""
        shown = self._site.get("/openapi.json", headers=self._shown).json()
        roles = _roles()
        assert {*_named(shown)} == {
            name
            for name in _named(json.loads(openapi.text()))
            if name not in roles or roles[name] in INCLUDED[self._role]
        }
        yield from _operations().values()

    def walk(self, operation: Any, few: int) -> None:
        name = operation.definition.raw["operationId"]
        fitting = _cases(name, few)
        if (needed := _roles().get(name)) is not None and needed not in INCLUDED[self._role]:
            self._ask(fitting[:1], expect=403)
            return
        self._ask(fitting)
        rejects = [negative_data_rejection] if name != "jobs.batch" else []  # of a batch each item has its own answer
        self._ask(_cases(name, few, GenerationMode.NEGATIVE), rejects)
        if "{" not in operation.path:
            return
        there, simple = self._own.each(operation.path), _cases(name, 1, is_named=True)
        for _ in range(max(few, len(self._own.jobs) if "{job}" in operation.path else 1)):
            self._ask(simple, names=next(there))
        if "{job}" in operation.path and self._foreign is not None:
            self._ask(simple, names=next(self._foreign.each(operation.path)), expect=404)

    def _ask(
        self,
        cases: Sequence[Any],
        more_checks: Sequence[Any] = (),
        *,
        names: dict[str, str] | None = None,
        expect: int | None = None,
    ) -> None:
        foreign = self._foreign.jobs if self._foreign is not None else []
        for case in cases:
            if names:
                _hurry(case)
                case.path_parameters = names
            answer = case.call_and_validate(
                base_url=self._site.url, headers=self._shown, checks=[*CHECKS, *more_checks], timeout=90
            )
            # 504 is an answer: a worker that is not there did not give its own in time.
            assert answer.status_code < 500 or answer.status_code == 504, answer.text
            if expect is not None:
                assert answer.status_code in (expect, 400, 422), answer.text
                assert expect == 404 or answer.status_code == 403, answer.text
            elif not names or names.get("job") not in foreign:
                assert not [job for job in foreign if job in answer.text]


@cache
def _operations() -> dict[str, Any]:
    """Of the whole document, by their names."""
    whole = schemathesis.openapi.from_dict(json.loads(openapi.text()))
    found = [each.ok() for each in whole.get_all_operations()]  # type: ignore[union-attr]
    return {each.definition.raw["operationId"]: each for each in found}


@cache
def _cases(
    name: str, few: int, mode: GenerationMode = GenerationMode.POSITIVE, is_named: bool = False
) -> Sequence[Any]:
    """So many requests, the simplest first; `is_named`: with names in their path that are put there later. They are
    made once for all who ask: with one seed they are the same, and to make one takes longer than to answer it."""
    operation = _operations()[name]
    made: list[Any] = []

    def keep(case: Any) -> None:
        made.append(case)

    inside = {part[1:-1]: "1" for part in operation.path.split("/") if part.startswith("{")}
    few_of_them = settings(max_examples=few, deadline=None, database=None, phases=[Phase.generate],
                           suppress_health_check=list(HealthCheck))  # fmt: skip
    strategy = operation.as_strategy(mode, **({"path_parameters": inside} if is_named else {}))
    seed(1)(few_of_them(given(case=strategy)(keep)))()
    assert made, f"no request of {name} could be made"
    return made


def _hurry(case: Any) -> None:
    """What waits for the end of a job that is there, or for a worker that is not, need not do so."""
    raw = case.operation.definition.raw
    if any(given["name"] == "timeout" for given in raw["parameters"]):
        case.query = {**(case.query or {}), "timeout": 0}
    elif raw["operationId"] == "jobs.stack" and isinstance(case.body, dict):
        case.body["timeout"] = 0


def _named(document: Any) -> Iterator[str]:
    return (told["operationId"] for path in document["paths"].values() for told in path.values())


@cache
def _roles() -> dict[str, Role]:
    """What each of the document's operations needs, as it says itself; those that need none are left out."""
    document = json.loads(openapi.text())
    told = [told for path in document["paths"].values() for told in path.values()]
    said = {each["operationId"]: each.get("description", "").rpartition("Needs the role ") for each in told}
    return {name: Role(role.rstrip(".")) for name, (_, needed, role) in said.items() if needed}
