"""Routes and policies: small tables that only grow, so what was read once is true for ever."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from unstuck.model.job import NewJob
from unstuck.model.policy import Policy
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.rows import span

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

    def policy(self, transaction: Transaction, number: int) -> Policy:
        known = self._policies.get(number)
        if known is None:
            known = self._policies[number] = Policy.from_json(_must(transaction.one("policy", policy=number))["body"])
        return known


def route_name(job: NewJob) -> RouteName:
    return (job.tenant, job.queue, job.workflow)


def _make_routes(t: Transaction, names: list[RouteName]) -> dict[RouteName, int]:
    found: dict[RouteName, int] = {}
    for name in names:
        facts = dict(zip(("tenant", "queue", "workflow"), name, strict=True))
        t.run("add_route", **facts)
        found[name] = _must(t.one("find_route", **facts))["id"]
    return found


def _make_policies(t: Transaction, policies: list[Policy]) -> dict[Policy, int]:
    found: dict[Policy, int] = {}
    for policy in policies:
        limit = None if policy.timeout == "unlimited" else span(float(policy.timeout))
        digest = _digest(policy)
        t.run("add_policy", digest=digest, body=policy.to_json(), timeout_us=limit, grace_us=span(policy.grace))
        found[policy] = _must(t.one("find_policy", digest=digest))["id"]
    return found


def _must(row: Row | None) -> Row:
    assert row is not None, "a row that is never deleted is missing"
    return row


def _digest(policy: Policy) -> str:
    return hashlib.sha256(policy.to_json().encode()).hexdigest()
