"""Schemathesis on every route, as each role, in two tenants: no error of the server, every answer as the document
says, and whoever may not ask is told so."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.conftest import Site, running
from tests.tiers import slow
from unstuck.assembly import ServerOptions
from unstuck.operations import keys
from unstuck.operations.table import Caller, Role
from unstuck.server import openapi
from unstuck.store.sql_store import SqlStore

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_dict(json.loads(openapi.text()))


@slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("role", Role)
def test_no_finding(role: Role, store_url: str, store: SqlStore, greet: str) -> None:
    tenants = [None] if role is Role.PLATFORM_ADMIN else ["acme", "beta"]
    made = [keys.create(Caller(store, "ada", tenant), "st", role=role).key for tenant in tenants]
    with running(ServerOptions(store_url, port=0, rate=1e6)) as site:
        for key in made:
            walk(site, {"authorization": f"Bearer {key}"})


def walk(site: Site, headers: dict[str, str]) -> None:
    for found in SCHEMA.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.definition.raw["operationId"] in ("keys.revoke", "keys.rotate"):
            continue  # it would end its own

        def ask(case: Any) -> None:
            case.call_and_validate(base_url=site.url, headers=headers, checks=CHECKS, timeout=90)

        few = settings(max_examples=5, deadline=None, database=None, phases=[Phase.generate],
                       suppress_health_check=list(HealthCheck))  # fmt: skip
        few(given(case=operation.as_strategy())(ask))()
