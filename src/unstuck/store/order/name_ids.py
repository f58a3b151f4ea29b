"""The ids of names: routes, targets and policies. What an id stands for never changes, and no id is used twice.

Routes and targets that nobody has meant for long, and that no job names, are forgotten. So that no submit ever uses a
number whose row is gone, without a lock that every submit would have to take:
1. A lookup that finds that a name was last meant more than a day ago says so in its row (`named_at`).
2. What was looked up is used for an hour (LIFE): by this process's own clock, and by the database's, which a submit
   compares with after its insert, in the same transaction. Stopped in between for a week or not, it is refused there.
3. Only what was last meant two days ago (KEPT) or longer goes. By then whatever was begun with the number has ended:
   it is in the table of jobs, and keeps its row, or it was rolled back.
The database's clock may leap: the duty that forgets goes by what the clock said two lives ago (see
`janitor/retention.py`).

What a job says of its policy is filled in here, from the row of its workflow. That row is looked up once and used
until a worker registers something (a submit compares the newest registration after its insert), a minute at most.
While there is no row, the policy is open: its number stands for what the first registration makes of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from unstuck.clock import boot
from unstuck.model.errors import InvalidPolicy
from unstuck.model.job import NewJob
from unstuck.model.names import LIFE, NAMED_EVERY
from unstuck.model.policy import Policy, filled
from unstuck.records import dataclass
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.port import EVERY, Route
from unstuck.store.rows import packed, span
from unstuck.telemetry import emit

#: Names kept in memory, of each kind; targets and limit keys may be as many as a program has customers.
MOST_KEPT = 100_000

#: For so long a workflow's row is used without another look: the worker whose version it is may have ended since.
RULES_LIFE = 60.0

RouteName = tuple[str, str, str, str]
TargetName = tuple[str, str]
#: A tenant, a workflow, and what is said of a policy of it.
Asked = tuple[str, str, str]
#: A job's route and target, and what is said of its policy or the policy itself.
Reference = tuple[str, str, str, str | None, str | None, str | Policy]
Expect = Callable[[Transaction], None]
K = TypeVar("K")
V = TypeVar("V")


class Terms(NamedTuple):
    """A policy as it is stored. `asked`: of jobs whose workflow nobody has registered yet."""

    policy: Policy
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the jobs of one submit refer to: complete, whatever the caches forget meanwhile."""

    routes: Mapping[RouteName, int]
    targets: Mapping[TargetName, int]
    policies: Mapping[Terms, int]
    #: By the database's clock: at that instant all of them were there.
    as_of: int
    terms: Mapping[Asked, Terms] = field(default_factory=dict)
    #: The newest registration when the workflows' rows were read.
    seen: int = 0

    def check(self, now: int, seen: int) -> None:
        """Rolls back a submit that was stopped so long on its way that its names may be gone, or whose workflow was
        registered anew meanwhile."""
        if now - self.as_of > span(LIFE) or (self.terms and seen != self.seen):
            raise StaleNames

    def route(self, job: NewJob) -> int:
        return self.routes[route_name(job)]

    def target(self, job: NewJob) -> int | None:
        return None if job.target is None else self.targets[job.tenant, job.target]

    def policy(self, job: NewJob) -> int:
        return self.policies[self._terms(job)]

    def stay(self, job: NewJob) -> float | None:
        return self._terms(job).policy.expires_after

    def _terms(self, job: NewJob) -> Terms:
        return Terms(job.policy) if job.said is None else self.terms[asked_of(job)]


class StaleNames(Exception):
    """Look them up again; nothing was written."""


class _Kept(Generic[K, V]):
    """A bounded memory, shared by threads without a lock: it is only added to, or begun anew."""

    def __init__(self) -> None:
        self._values: dict[K, V] = {}

    def get(self, name: K) -> V | None:
        return self._values.get(name)

    def of(self, names: Iterable[K]) -> dict[K, V]:
        return {name: value for name in names if (value := self._values.get(name)) is not None}

    def keep(self, found: Mapping[K, V]) -> None:
        if len(self._values) + len(found) > MOST_KEPT:
            self._values = {}
        self._values.update(found)


class _Memory:
    """Numbers by name, for one life. `as_of`: when the database was first asked for them, by its clock."""

    def __init__(self, now: float) -> None:
        self.begun_at = now
        self.as_of: int | None = None
        self.routes: _Kept[RouteName, int] = _Kept()
        self.targets: _Kept[TargetName, int] = _Kept()
        self.policies: _Kept[Terms, int] = _Kept()

    def keep(self, found: Numbers) -> int:
        self.as_of = found.as_of if self.as_of is None else min(self.as_of, found.as_of)
        self.routes.keep(found.routes)
        self.targets.keep(found.targets)
        self.policies.keep(found.policies)
        return self.as_of


class WorkflowRules:
    """What workflows' rows make of what is said, as of one registration."""

    def __init__(self, seen: int | None, now: float) -> None:
        self.seen = seen
        self.begun_at = now
        #: Under EVERY what holds for all tenants, of workflows of which none has a row of its own.
        self.terms: _Kept[Asked, Terms] = _Kept()
        #: Of jobs that were submitted alone, or beside others that refer to the same.
        self.numbers: _Kept[Reference, Numbers] = _Kept()

    def known(self, asked: Iterable[Asked]) -> dict[Asked, Terms]:
        found = {each: self.terms.get(each) or self.terms.get((EVERY, *each[1:])) for each in asked}
        return {each: terms for each, terms in found.items() if terms is not None}


class NameIds:
    """Shared by threads without a lock: two that miss at once read the same rows."""

    def __init__(self, clock: Callable[[], float] = boot) -> None:
        self._clock = clock
        self._memory = _Memory(clock())
        self.rules = WorkflowRules(None, clock())
        self._policies: _Kept[int, Policy] = _Kept()
        self._routes: _Kept[int, Route] = _Kept()

    def forget(self) -> None:
        self._memory = _Memory(self._clock())
        self.rules = WorkflowRules(None, self._clock())

    def are_current(self, rules: WorkflowRules) -> bool:
        """Whether numbers that were found by them may be used without another look."""
        now = self._clock()
        return rules is self.rules and now - rules.begun_at <= RULES_LIFE and now - self._memory.begun_at <= LIFE

    def _terms(self, database: Database, jobs: Iterable[NewJob]) -> tuple[dict[Asked, Terms], int]:
        """What the workflows' rows make of what these jobs say, and as of which registration."""
        asked = {asked_of(job): job for job in jobs if job.said is not None}
        if not asked:
            return {}, 0
        rules = self.rules
        known = rules.known(asked) if self._clock() - rules.begun_at <= RULES_LIFE else {}
        if rules.seen is not None and len(known) == len(asked):
            return known, rules.seen
        read = database.read(partial(_read_terms, asked=asked))
        if read.seen != rules.seen or not known:
            rules = self.rules = WorkflowRules(read.seen, self._clock())
        rules.terms.keep(read.shared | read.terms)
        return read.terms, read.seen

    def ensure(
        self,
        database: Database,
        jobs: Iterable[NewJob],
        expect: Expect | None = None,
        patience: float | None = None,
    ) -> Numbers:
        """Make what these jobs need, in short transactions of their own: the submit itself then waits for nobody.
        `expect` raises what the submit would be refused for, so far as it can be seen: names of refused jobs are not
        made."""
        wanted = {_reference(job): job for job in jobs}  # of a batch, most refer to the same
        now = self._clock()
        if now - self._memory.begun_at > LIFE:
            self.forget()
        (reference, *others) = wanted
        if not others and now - self.rules.begun_at <= RULES_LIFE:
            known = self.rules.numbers.get(reference)
            if known is not None:
                return known
        found = self._ensure(database, wanted.values(), expect, patience)
        if not others and found.terms and found.seen == self.rules.seen:
            self.rules.numbers.keep({reference: found})
        return found

    def _ensure(
        self, database: Database, wanted: Collection[NewJob], expect: Expect | None, patience: float | None
    ) -> Numbers:
        memory = self._memory
        routes = {route_name(job) for job in wanted}
        targets = {(job.tenant, job.target) for job in wanted if job.target is not None}
        terms, seen = self._terms(database, wanted)
        policies = {Terms(job.policy) for job in wanted if job.said is None} | set(terms.values())
        as_of = memory.as_of or 0
        known = Numbers(
            memory.routes.of(routes), memory.targets.of(targets), memory.policies.of(policies), as_of, terms, seen
        )
        lacking = _Lacking(
            routes - known.routes.keys(), targets - known.targets.keys(), policies - known.policies.keys()
        )
        if not lacking:
            return known
        found = lacking.numbers(database, expect, patience)
        as_of = memory.keep(found)
        self._policies.keep({n: terms.policy for terms, n in found.policies.items() if terms.asked is None})
        return Numbers(
            {**known.routes, **found.routes},
            {**known.targets, **found.targets},
            {**known.policies, **found.policies},
            as_of,
            terms,
            seen,
        )

    def policy_with(self, database: Database, job: NewJob) -> Policy:
        """With which a job would be stored now; not by what is in memory, because nobody looks again."""
        if job.said is None:
            return job.policy
        asked = asked_of(job)
        return database.read(partial(_read_terms, asked={asked: job})).terms[asked].policy

    def policies(self, database: Database, numbers: Iterable[int]) -> dict[int, Policy]:
        """Outside of a transaction: a read of its own for those not met before."""
        wanted = set(numbers)
        known = self._policies.of(wanted)
        if unknown := wanted - known.keys():
            known |= database.read(lambda t: {number: self.policy(t, number) for number in unknown})
        return known

    def routes(self, database: Database, numbers: Collection[int]) -> dict[int, Route]:
        """The same of routes. Those of jobs that are there: none of them is ever forgotten."""
        known = self._routes.of(numbers)
        if unknown := [number for number in numbers if number not in known]:
            rows = database.read(lambda t: t.all("routes", numbers=unknown))
            known |= (found := {row["number"]: Route(**row) for row in rows})
            self._routes.keep(found)
        return known

    def policy(self, transaction: Transaction, number: int) -> Policy:
        known = self._policies.get(number)
        if known is None:
            row = transaction.one("policy", policy=number)
            known = _readable(number, row)
            if row is not None and not row["is_open"]:
                self._policies.keep({number: known})
        return known


@dataclass(frozen=True, slots=True)
class _Lacking:
    """Names whose numbers are not in memory."""

    routes: set[RouteName]
    targets: set[TargetName]
    policies: set[Terms]

    def __bool__(self) -> bool:
        return bool(self.routes or self.targets or self.policies)

    def numbers(self, database: Database, expect: Expect | None, patience: float | None) -> Numbers:
        """Looked for first: most names that a fresh process meets are old, and an insert that finds its row there
        already is a write all the same."""
        found, old = database.read(self._found)
        if old:
            found, _ = database.write(lambda t: self._named_again(t, old), patience=patience)
        new = _Lacking(
            self.routes - found.routes.keys(),
            self.targets - found.targets.keys(),
            self.policies - found.policies.keys(),
        )
        if not new:
            return found
        if expect is not None:
            database.read(expect)
        made = database.write(new._made, patience=patience)
        return Numbers(
            {**found.routes, **made.routes},
            {**found.targets, **made.targets},
            {**found.policies, **made.policies},
            found.as_of,
        )

    def _named_again(self, t: Transaction, old: _Old) -> tuple[Numbers, _Old]:
        """Found once more, behind the locks of what was renewed: one that was just forgotten is not."""
        if old.routes:
            t.run("name_routes", numbers=old.routes)
        if old.targets:
            t.run("name_targets", numbers=old.targets)
        return self._found(t)

    def _made(self, t: Transaction) -> Numbers:
        """Each kind sorted, so that two that make the same rows wait for each other in the same order."""
        if self.routes:
            t.run("add_routes", rows=packed(list(_route_columns(self.routes))))
        if self.targets:
            t.run("add_targets", rows=packed(list(_target_columns(self.targets))))
        if self.policies:
            t.run("add_policies", rows=packed([_columns(terms) for terms in sorted(self.policies, key=_digest)]))
        return self._found(t)[0]

    def _found(self, t: Transaction) -> tuple[Numbers, _Old]:
        now = _must(t.one("now"))["now"]
        routes, targets = _found_routes(t, self.routes), _found_targets(t, self.targets)
        numbers = Numbers(
            {_route_of(row): row["id"] for row in routes},
            {(row["tenant"], row["name"]): row["id"] for row in targets},
            _found_policies(t, self.policies),
            now,
        )
        return numbers, _Old(_meant_long_ago(routes, now), _meant_long_ago(targets, now))


@dataclass(frozen=True, slots=True)
class _Old:
    """Numbers of rows that say that nobody has meant them for more than a day."""

    routes: list[int]
    targets: list[int]

    def __bool__(self) -> bool:
        return bool(self.routes or self.targets)


def _meant_long_ago(rows: Iterable[Row], now: int) -> list[int]:
    return sorted(row["id"] for row in rows if row["named_at"] < now - span(NAMED_EVERY))


def _reference(job: NewJob) -> Reference:
    """All that a job's numbers are found by."""
    return (job.tenant, job.queue, job.workflow, job.limit_key, job.target, job.said or job.policy)


def route_name(job: NewJob) -> RouteName:
    return (job.tenant, job.queue, job.workflow, job.limit_key or "")


def _route_columns(names: Iterable[RouteName]) -> Iterator[dict[str, str]]:
    for tenant, queue, workflow, limit_key in sorted(names):
        yield {"tenant": tenant, "queue": queue, "workflow": workflow, "limit_key": limit_key}


def _target_columns(names: Iterable[TargetName]) -> Iterator[dict[str, str]]:
    for tenant, name in sorted(names):
        yield {"tenant": tenant, "name": name}


def _found_routes(t: Transaction, names: set[RouteName]) -> list[Row]:
    return t.all("find_routes", rows=packed(list(_route_columns(names)))) if names else []


def _found_targets(t: Transaction, names: set[TargetName]) -> list[Row]:
    return t.all("find_targets", rows=packed(list(_target_columns(names)))) if names else []


def _route_of(row: Row) -> RouteName:
    return (row["tenant"], row["queue"], row["workflow"], row["limit_key"])


def asked_of(job: NewJob) -> Asked:
    assert job.said is not None
    return job.tenant, job.workflow, job.said


class _ReadTerms(NamedTuple):
    """As of the registration `seen`; `shared`: those that hold for every tenant alike."""

    seen: int
    terms: dict[Asked, Terms]
    shared: dict[Asked, Terms]


def _read_terms(t: Transaction, asked: Mapping[Asked, NewJob]) -> _ReadTerms:
    """The registration first: a row that is newer than it is looked up again, one that is older never used."""
    seen = _must(t.one("newest_registration"))["seen"]
    places = [{"tenant": tenant, "name": name} for tenant, name in sorted({each[:2] for each in asked})]
    rules = {(row["tenant"], row["name"]): row for row in t.all("rules_of_workflows", rows=packed(places))}
    terms = {each: _terms_of(each, job, rules.get(each[:2])) for each, job in asked.items()}
    alike = {place for place, row in rules.items() if not row["has_own"]}
    return _ReadTerms(seen, terms, {(EVERY, *each[1:]): terms[each] for each in asked if each[:2] in alike})


def _terms_of(asked: Asked, job: NewJob, rule: Row | None) -> Terms:
    _, workflow, said = asked
    owner = f"workflow {workflow}"
    if rule is None:
        if problems := job.policy.problems(job.max_timeout):
            raise InvalidPolicy(owner, problems)
        return Terms(job.policy, asked)
    return Terms(filled(owner, Policy.from_json(rule["policy"]), said, rule["max_timeout"]))


def close_policies(t: Transaction, workflow: str, base: Policy, tenant: str = EVERY) -> None:
    """The workflow has a row now, for this tenant or for all: what its jobs left open is known. What was accepted is
    not refused any more."""
    for row in t.all("open_policies", workflow=workflow, tenant=tenant):
        columns = _columns(Terms(filled(workflow, base, row["said"])))
        t.run(
            "close_policy", policy=row["id"], **{name: columns[name] for name in ("body", "timeout_us", "grace_us")}
        )


def _found_policies(t: Transaction, policies: set[Terms]) -> dict[Terms, int]:
    if not policies:
        return {}
    by_digest = {_digest(terms): terms for terms in policies}
    rows = t.all("find_policies", rows=packed([{"digest": digest} for digest in by_digest]))
    return {by_digest[row["digest"]]: row["id"] for row in rows}


def _columns(terms: Terms) -> dict[str, Any]:
    policy, (tenant, workflow, said) = terms.policy, terms.asked or (None, None, None)
    limit = None if policy.timeout == "unlimited" else span(float(policy.timeout))
    return {
        "digest": _digest(terms),
        "body": policy.to_json(),
        "timeout_us": limit,
        "grace_us": span(policy.grace),
        "tenant": tenant,
        "workflow": workflow,
        "said": said,
    }


def _readable(number: int, row: Row | None) -> Policy:
    """A damaged policy must keep no job from its end: then the defaults hold."""
    try:
        policy = Policy.from_json(_must(row)["body"])
        problems = "; ".join(policy.problems())
    except Exception as error:
        problems = repr(error)
    if not problems:
        return policy
    emit("policy_unreadable", level=logging.WARNING, policy=number, problem=problems)
    return Policy()


def _must(row: Row | None) -> Row:
    assert row is not None, "a row that is never deleted is missing"
    return row


def _digest(terms: Terms) -> str:
    import hashlib

    body = terms.policy.to_json()
    return hashlib.sha256((body if terms.asked is None else packed([*terms.asked, body])).encode()).hexdigest()
