"""Routes and policies: small tables that only grow, so what was read once is true for ever."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from unstuck.model.job import NewJob
from unstuck.model.policy import Policy
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.rows import packed, span

RouteName = tuple[str, str, str]


class Dimensions:
    """Shared by threads without a lock: two that miss at once read the same rows."""

    def __init__(self) -> None:
        self._routes: dict[RouteName, int] = {}
        self._policy_numbers: dict[Policy, int] = {}
        self._policies: dict[int, Policy] = {}

    def ensure(self, database: Database, jobs: Iterable[NewJob]) -> None:
        """Make what these jobs need, in a short transaction of its own: the submit itself then waits for nobody."""
        wanted = list(jobs)
        routes = sorted({route_name(job) for job in wanted} - self._routes.keys())
        policies = sorted({job.policy for job in wanted} - self._policy_numbers.keys(), key=_digest)
        if routes or policies:
            made = database.write(lambda t: (_make_routes(t, routes), _make_policies(t, policies)))
            self._routes.update(made[0])
            self._policy_numbers.update(made[1])
            self._policies.update({number: policy for policy, number in made[1].items()})

    def route(self, job: NewJob) -> int:
        return self._routes[route_name(job)]

    def policy_number(self, policy: Policy) -> int:
        return self._policy_numbers[policy]

    def policies(self, database: Database, numbers: Iterable[int]) -> dict[int, Policy]:
        """Outside of a transaction: a read of its own for those not met before."""
        unknown = [number for number in numbers if number not in self._policies]
        if unknown:
            database.read(lambda t: [self.policy(t, number) for number in unknown])
        return self._policies

    def policy(self, transaction: Transaction, number: int) -> Policy:
        known = self._policies.get(number)
        if known is None:
            known = self._policies[number] = Policy.from_json(_must(transaction.one("policy", policy=number))["body"])
        return known


def route_name(job: NewJob) -> RouteName:
    return (job.tenant, job.queue, job.workflow)


def _make_routes(t: Transaction, names: list[RouteName]) -> dict[RouteName, int]:
    if not names:
        return {}
    rows = packed([dict(zip(("tenant", "queue", "workflow"), name, strict=True)) for name in names])
    t.run("add_routes", rows=rows)
    return {(row["tenant"], row["queue"], row["workflow"]): row["id"] for row in t.all("find_routes", rows=rows)}


def _make_policies(t: Transaction, policies: list[Policy]) -> dict[Policy, int]:
    if not policies:
        return {}
    rows = packed([_columns(policy) for policy in policies])
    t.run("add_policies", rows=rows)
    numbers = {row["digest"]: row["id"] for row in t.all("find_policies", rows=rows)}
    return {policy: numbers[_digest(policy)] for policy in policies}


def _columns(policy: Policy) -> dict[str, Any]:
    limit = None if policy.timeout == "unlimited" else span(float(policy.timeout))
    return {
        "digest": _digest(policy),
        "body": policy.to_json(),
        "timeout_us": limit,
        "grace_us": span(policy.grace),
    }


def _must(row: Row | None) -> Row:
    assert row is not None, "a row that is never deleted is missing"
    return row


def _digest(policy: Policy) -> str:
    return hashlib.sha256(policy.to_json().encode()).hexdigest()
