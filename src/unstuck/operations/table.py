"""The table of operations: everything that can be asked of the engine, once, with all that a face needs to know.

An operation is a function `(caller, …) -> view`. `@operation` gives it its entry: who may ask, whether it reads or
changes, whose things it is about, how a repeat is safe, how it is paged, what is audited, which errors it knows. The
role and the tenant are checked here, before the function runs: what is not allowed is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import field, replace
from enum import StrEnum
from functools import update_wrapper
from keyword import iskeyword
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

from unstuck.intake.control import JobVerbs
from unstuck.intake.flow import FlowVerbs
from unstuck.intake.gates import Gates
from unstuck.intake.guard import GuardVerbs
from unstuck.model.errors import InvalidInput, NotPermitted, UnstuckError, told
from unstuck.model.job import DEFAULT_TENANT
from unstuck.model.keys import VIA, Scope, Within, acting_for
from unstuck.model.payload import check_person, check_wording
from unstuck.model.redaction import Redactions
from unstuck.model.times import Times
from unstuck.observe.lookup import Lookup
from unstuck.records import dataclass
from unstuck.sealing import NO_SEALER, Sealer
from unstuck.signing import NO_KEYS, SigningKeys
from unstuck.store.port import EVERY, Store, asking_from
from unstuck.store.port.refused import refusal

P = ParamSpec("P")
V = TypeVar("V")


class Role(StrEnum):
    """What somebody may ask; each includes what `INCLUDED` lists."""

    READER = "reader"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    TENANT_ADMIN = "tenant-admin"
    PLATFORM_ADMIN = "platform-admin"
    WORKER = "worker"


READER, SUBMITTER, OPERATOR = Role.READER, Role.SUBMITTER, Role.OPERATOR
TENANT_ADMIN, PLATFORM_ADMIN, WORKER = Role.TENANT_ADMIN, Role.PLATFORM_ADMIN, Role.WORKER

INCLUDED: dict[Role, frozenset[Role]] = {
    READER: frozenset({READER}),
    SUBMITTER: frozenset({SUBMITTER, READER}),
    OPERATOR: frozenset({OPERATOR, SUBMITTER, READER}),
    TENANT_ADMIN: frozenset({TENANT_ADMIN, OPERATOR, SUBMITTER, READER}),
    PLATFORM_ADMIN: frozenset(Role),
    WORKER: frozenset({WORKER}),
}

#: A stream goes on until its reader leaves.
Effect = Literal["read", "change", "stream"]

#: Whose things it is about. "one": one tenant's. "any": one tenant's, or with "*" everybody's (of what names a job:
#: that job, whoever's it is). "own": everybody's, or
#: one tenant's where the caller speaks for one. "platform": no tenant's; it takes no `tenant`.
Whose = Literal["one", "any", "own", "platform"]

#: Why a repeat is safe. "read": it changes nothing. "same": it leaves the same state and says so. "key": with the
#: `key` or `id` that the caller gives. "refused": a second one is refused. "again": no, a second one acts again.
Repeat = Literal["read", "same", "key", "refused", "again"]


#: What it is to a caller whose key names queues or workflows. "refused": it is about others too. "kept": it tells and
#: touches nothing of others. "queue", "workflow": the one that it is about must be named, and the key must leave the
#: other kind open.
Limited = Literal["refused", "kept", "queue", "workflow"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, with which right, about whose things, of which store."""

    store: Store
    by: str
    #: The tenant that the call or the caller's settings name; None: neither does. "*": all of them.
    tenant: str | None = None
    times: Times = field(default_factory=Times)
    role: Role = PLATFORM_ADMIN
    #: The only tenant that this caller may see; None: any.
    bound: str | None = None
    #: Where the store is, as people may see it, and what a command that is shown to them must repeat to reach it.
    database: str = "the database"
    repeats: str = ""
    #: The id of the API key by which it asks (None: it has the database itself), what that may touch, its scopes.
    key: str | None = None
    queues: frozenset[str] | None = None
    workflows: frozenset[str] | None = None
    scopes: frozenset[str] = frozenset()
    #: From where it asks, if that is over HTTP, and in which trace, as `model.trace` writes it.
    address: str | None = None
    trace: str | None = None
    #: The signing keys of the process that is asked. `signs`: what it submits is its own, and signed by them; else it
    #: is somebody else's, and a signature that comes along is verified.
    signing: Callable[[], SigningKeys] = field(default=lambda: NO_KEYS, compare=False)
    signs: bool = False
    #: How the process that is asked keeps the secrets of webhooks.
    sealer: Callable[[], Sealer] = field(default=lambda: NO_SEALER, compare=False)

    def about(self, tenant: str | None = None, by: str | None = None) -> Caller:
        """The same, with what one call names."""
        whose, who = check_wording(tenant, "tenant") or self.tenant, self._asking(check_person(by))
        return self if (whose, who) == (self.tenant, self.by) else replace(self, tenant=whose, by=who)

    def _asking(self, person: str | None) -> str:
        """By a key only its owner asks, or a person for whom it may speak: both are written down."""
        if person is None or person == self.by or self.key is None:
            return person or self.by
        if Scope.ACT_AS not in self.scopes:
            raise NotPermitted(
                f"{self.by} cannot ask as somebody else: its key does not have the scope {Scope.ACT_AS}"
            )
        return acting_for(person, self.by.rpartition(VIA)[2])

    @property
    def within(self) -> Within | None:
        """All that it may touch of its tenant; None: everything."""
        is_limited = self.queues is not None or self.workflows is not None
        return Within(self.queues, self.workflows) if is_limited else None

    def of_job(self, job: Any) -> Caller:
        """The same about the tenant whose job it is, where all are meant: an id is one job's."""
        if self.tenant != EVERY or job is None:
            return self
        return replace(self, tenant=self.lookup.owner(job))

    def check_within(self, queue: str | None = None, workflow: str | None = None) -> None:
        """NotPermitted for a queue or workflow that its key does not name."""
        for kind, name, names in (("queue", queue, self.queues), ("workflow", workflow, self.workflows)):
            if name is not None and names is not None and name not in names:
                raise NotPermitted(f"{kind} {told(name)} is none of those that the key of {self.by} names")

    @property
    def one(self) -> str:
        """The one tenant that is meant."""
        return self.tenant or DEFAULT_TENANT

    @property
    def listed(self) -> str | None:
        """The tenant whose things are listed; None: everybody's are."""
        return None if self.tenant == EVERY else self.one

    @property
    def own(self) -> str | None:
        """The tenant that was named; None: none was, and all are meant."""
        return None if self.tenant == EVERY else self.tenant

    @property
    def sees_all(self) -> bool:
        """Whether nothing of the data of jobs is hidden from it, as from an admin."""
        return TENANT_ADMIN in INCLUDED[self.role]

    @property
    def redactions(self) -> Redactions:
        """What this caller may not see of the data of jobs, by workflow."""
        return Redactions() if self.sees_all else self.store.redactions(self.listed)

    @property
    def lookup(self) -> Lookup:
        return Lookup(self.store, tenant=self.one, offline=self.times.offline, within=self.within)

    @property
    def control(self) -> JobVerbs:
        return JobVerbs(self.store, tenant=self.one, by=self.by)

    @property
    def gates(self) -> Gates:
        return Gates(self.store, tenant=self.one, by=self.by)

    @property
    def guard(self) -> GuardVerbs:
        return GuardVerbs(self.store, own=self.own, by=self.by, bound=self.bound is not None)

    @property
    def flow(self) -> FlowVerbs:
        return FlowVerbs(self.store, tenant=self.one, by=self.by, signing=self.signing)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a face needs to know of an operation besides its signature."""

    role: Role
    effect: Effect = "read"
    whose: Whose = "one"
    repeat: Repeat = "read"
    #: The name of its cursor, if it answers with a page.
    paged: str | None = None
    #: It waits for something, for as long as its `timeout` says. Who must not be held up, or must hear of a cancel
    #: meanwhile, asks with `timeout=0` and waits by itself.
    waits: bool = False
    #: Whether there is a bulk of it over a filter.
    over_filter: bool = False
    #: Whether a key that names queues or workflows may ask it.
    limited: Limited = "refused"
    #: What the audit calls it; None: nothing is written there.
    audited: str | None = None
    errors: tuple[type[UnstuckError], ...] = ()
    #: What HTTP answers when all went well.
    status: int = 200
    #: The command that asks it, where that is not `NOUN VERB`.
    command: str | None = None
    #: How HTTP asks it, "PUT /things/{name}", where the rules of `routes.py` would say otherwise.
    route: str | None = None


class Operation(Generic[P, V]):
    """One question or request; called with a caller and its arguments."""

    def __init__(self, function: Callable[Concatenate[Caller, P], V], entry: Entry) -> None:
        update_wrapper(self, function)
        self.function = function
        self.entry = entry
        self.noun = function.__module__.rpartition(".")[2]
        self.verb = function.__name__.rstrip("_")
        self._is_about_a_job = function.__code__.co_varnames[1:2] == ("job",)

    @property
    def name(self) -> str:
        return f"{self.noun}.{self.verb}"

    @property
    def twin(self) -> str:
        """Its method for coroutines."""
        name = f"a{self.verb}"
        return f"{name}_" if iskeyword(name) else name

    @property
    def command(self) -> str:
        return self.entry.command or f"{self.noun} {self.verb}".replace("_", "-")

    def __repr__(self) -> str:
        return f"<Operation {self.name}>"

    def __call__(self, caller: Caller, *args: P.args, **kwargs: P.kwargs) -> V:
        admitted = self.asking(caller, *args, **kwargs)
        if self.entry.effect != "change":
            return self.function(admitted, *args, **kwargs)
        try:
            with asking_from(admitted.key, admitted.address):
                return self.function(admitted, *args, **kwargs)
        except Exception as error:
            if (refused := refusal(error)) is not None:
                raise refused from error
            raise

    def asking(self, caller: Caller, *args: P.args, **kwargs: P.kwargs) -> Caller:
        """Who asks exactly this: admitted, and about the one tenant whose job it is."""
        admitted = self.admitted(caller)
        if self._is_about_a_job and admitted.tenant == EVERY:
            admitted = admitted.of_job(args[0] if args else kwargs.get("job"))
        if self.entry.limited in ("queue", "workflow") and admitted.within is not None:
            named = inspect.signature(self.function).bind(admitted, *args, **kwargs).arguments
            admitted.check_within(**{self.entry.limited: named[self.entry.limited]})
        return admitted

    def admitted(self, caller: Caller) -> Caller:
        """The caller with the tenant that is meant, if it may ask this at all."""
        if self.entry.role not in INCLUDED[caller.role]:
            raise NotPermitted(f"{self.name} needs the role {self.entry.role}; {caller.by} is {caller.role}")
        self._check_limits(caller)
        if caller.bound is not None:
            if caller.tenant not in (None, caller.bound):
                raise NotPermitted(f"{caller.by} may ask about tenant {caller.bound} alone")
            caller = replace(caller, tenant=caller.bound)
        if caller.tenant == EVERY and self.entry.whose in ("one", "platform"):
            raise InvalidInput(f"{self.name} is about one tenant; name it instead of '*'")
        return caller

    def _check_limits(self, caller: Caller) -> None:
        if caller.within is None or self.entry.limited == "kept":
            return
        others = {"refused": caller.within, "queue": caller.workflows, "workflow": caller.queues}
        if others[self.entry.limited] is not None:
            raise NotPermitted(
                f"{self.name} is about more than the queues and workflows that the key of {caller.by} names; "
                "ask with a key that names none"
            )


#: By name, "queues.pause". A noun's operations are here once its module was imported; `nouns.py` imports all.
OPERATIONS: dict[str, Operation[Any, Any]] = {}


def operation(*, role: Role, **facts: Any) -> Callable[[Callable[Concatenate[Caller, P], V]], Operation[P, V]]:
    """Puts a function into the table; `facts` are the fields of `Entry`."""

    def enter(function: Callable[Concatenate[Caller, P], V]) -> Operation[P, V]:
        made = Operation(function, Entry(role, **facts))
        OPERATIONS[made.name] = made
        return made

    return enter
