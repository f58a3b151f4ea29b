"""Submit: names, options and policy are checked here; then one store call makes the jobs durable."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from unstuck import tracing
from unstuck.chance import Chance, SystemChance
from unstuck.intake.signing import SigningDoor
from unstuck.intake.templates import check_place, fill
from unstuck.model.errors import InvalidInput, OutcomeUnknown, StoreBusy, StoreUnavailable, quoted
from unstuck.model.job import DEFAULT_TENANT, AfterFailure, Alike, NewJob, ids_of, patterns_of
from unstuck.model.payload import check_instant, check_name, plain_text
from unstuck.model.policy import LONGEST, Policy, reruns, said
from unstuck.records import dataclass
from unstuck.signing import NO_KEYS, SigningKeys
from unstuck.store.port import EVERY, Store, Submitted
from unstuck.tracing import TracedSubmit

HIGHEST_PRIORITY = 10_000
MOST_TAGS = 20
MOST_AFTER = 100
#: One transaction holds so many: more would risk the deadline of a store call.
BATCH = 1000
_REPEATS = 3
_PAUSE = 0.05


class RoutedWorkflow(Protocol):
    """What routing needs to know: a handler in this process, or the row its workers registered."""

    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def said(self) -> dict[str, Any]: ...
    @property
    def schema(self) -> dict[str, Any]: ...
    @property
    def target(self) -> str | None: ...
    @property
    def limit_key(self) -> str | None: ...


class Unsaid(Enum):
    """In place of a target or limit key: the workflow's own template decides. None is an answer: there is none."""

    UNSAID = "unsaid"


UNSAID: Final = Unsaid.UNSAID


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller says about one job beyond its arguments; `policy` holds only what differs from the workflow's."""

    priority: int = 0
    key: str | None = None
    tenant: str | None = None
    queue: str | None = None
    delay: float | None = None
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    target: str | Unsaid | None = UNSAID
    limit_key: str | Unsaid | None = UNSAID
    hold: bool = False
    after: tuple[str, ...] = ()
    after_failure: AfterFailure = "fail"
    #: A UUID of version 4 or 7 that the caller chose; the same call under it again is the same job.
    id: str | None = None
    policy: dict[str, Any] = field(default_factory=dict)

    def with_(self, **changes: Any) -> Options:
        """The same with these changes, checked; names that are not options of a job are options of its policy."""
        changes = by_our_names(changes)
        own = {name: plain_text(changes.pop(name)) for name in list(changes) if name in JOB_OPTIONS}
        if "tags" in own:
            own["tags"] = _tags(own["tags"])
        if "after" in own:
            own["after"] = _after(own["after"])
        if own.get("id") is not None:
            own["id"] = job_id(own["id"])
        options = replace(self, **own, policy=self.policy | reruns(changes))
        if problems := options.problems():
            raise InvalidInput("; ".join(problems))
        if options.policy:
            Policy().with_("the options of a job", options.policy, also=JOB_OPTIONS)
        return options

    def problems(self) -> list[str]:
        checks = [
            *_priority_problems(self.priority),
            (self.delay is not None and self.at is not None, "delay= and at= exclude each other"),
            (not _is_delay(self.delay), f"delay={quoted(self.delay)} is not a number of seconds of 0 or more"),
            (
                not _is_instant(self.at),
                f"at={quoted(self.at)} is not a datetime with a time zone, or beyond the calendar",
            ),
            (len(self.tags) > MOST_TAGS, f"{len(self.tags)} tags; the limit is {MOST_TAGS}"),
            (not isinstance(self.hold, bool), f"hold={quoted(self.hold)} is not true or false"),
            (len(self.after) > MOST_AFTER, f"after= names {len(self.after)} jobs; the limit is {MOST_AFTER}"),
            (
                not isinstance(self.after_failure, str) or self.after_failure not in ("fail", "run"),
                f"after_failure={quoted(self.after_failure)} is not one of fail, run",
            ),
        ]
        return [text for wrong, text in checks if wrong] + self._name_problems()

    def _name_problems(self) -> list[str]:
        names = [("key", self.key), ("tenant", self.tenant), ("queue", self.queue)]
        names += [("tag", tag) for tag in self.tags]
        places = [("target", self.target), ("limit_key", self.limit_key)]
        found = [
            problem for kind, name in names if name is not None and (problem := _misnamed(check_name, name, kind))
        ]
        if self.tenant == EVERY:
            found.append(f"tenant {EVERY!r} is no name: the star stands for all of them")
        return found + [
            problem
            for kind, name in places
            if name is not None and not isinstance(name, Unsaid) and (problem := _misnamed(check_place, name, kind))
        ]


def _misnamed(check: Callable[[str, str], str], name: str, kind: str) -> str | None:
    try:
        check(name, kind)
    except InvalidInput as error:
        return str(error)
    return None


JOB_OPTIONS = frozenset(field.name for field in fields(Options)) - {"policy"}
#: Other names for options, as people know them from elsewhere.
ALIASES = {
    "timeout_seconds": "timeout",
    "cancel_grace_seconds": "grace",
    "idempotency_key": "key",
    "start_at": "at",
}


def by_our_names(changes: Mapping[str, Any]) -> dict[str, Any]:
    """`token_limit` is a budget by another name; one that speaks of tokens itself is more exact."""
    renamed: dict[str, Any] = {}
    for name, value in changes.items():
        ours = ALIASES.get(name, name)
        if ours in renamed or (ours != name and ours in changes):
            raise InvalidInput(f"{ours} was given twice, once as {name}")
        renamed[ours] = value
    if (limit := renamed.pop("token_limit", None)) is not None:
        renamed["budget"] = {"tokens": limit, **dict(renamed.get("budget") or {})}
    return renamed


def _tags(tags: Any) -> tuple[str, ...]:
    return tuple(
        plain_text(tag) for tag in _several(tags, f"tags={quoted(tags)} is neither a tag nor a list of them")
    )


def _after(jobs: Any) -> tuple[str, ...]:
    """Ids of jobs given by id or by handle, one or several, each once."""
    several = [jobs] if hasattr(jobs, "id") else _several(jobs, f"after={quoted(jobs)} is neither a job nor several")
    ids: dict[str, None] = {}
    for job in several:
        ident = job if isinstance(job, str) else getattr(job, "id", None)
        if not isinstance(ident, str) or not ident:
            raise InvalidInput(f"after={quoted(job)} is neither a job nor the id of one")
        ids[plain_text(ident)] = None
    return tuple(ids)


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def job_id(given: Any) -> str:
    """A UUID as jobs have them, in small letters. Python's own is taken too, and not imported for it."""
    text = str(given).lower() if isinstance(given, str) or type(given).__name__ == "UUID" else ""
    if not _UUID.fullmatch(text):
        raise InvalidInput(
            f"id={quoted(given)} is not a UUID of version 4 or 7, like 0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36"
        )
    return text


def _several(given: Any, problem: str) -> list[Any]:
    """One text, or several of something in order; a mapping is neither."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(problem)
    return list(given)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_delay(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST)


def _is_instant(value: Any) -> bool:
    if value is None:
        return True
    try:
        check_instant(value, "at")
    except InvalidInput:
        return False
    return bool(value.utcoffset() is not None)


def _priority_problems(priority: Any) -> list[tuple[bool, str]]:
    return [
        (_whole(priority) is None, f"priority={quoted(priority)} is not a whole number"),
        (
            abs(_whole(priority) or 0) > HIGHEST_PRIORITY,
            f"priority={quoted(priority)} is not between -{HIGHEST_PRIORITY} and {HIGHEST_PRIORITY}",
        ),
    ]


def check_priority(priority: Any) -> int:
    """By the same rule as the option of a job."""
    for is_wrong, problem in _priority_problems(priority):
        if is_wrong:
            raise InvalidInput(problem)
    return int(priority)


class Pattern(NamedTuple):
    """What the jobs of one workflow and one set of options have in common, and what is made of each one's payload."""

    of_all: NewJob
    of_each: Mapping[str, Callable[[str], Any]]


class Submitter:
    """Turns checked calls into stored jobs."""

    def __init__(
        self,
        store: Store,
        *,
        chance: Chance | None = None,
        tenant: str = DEFAULT_TENANT,
        max_timeout: float | None = None,
        signing: SigningKeys = NO_KEYS,
    ) -> None:
        self.store = store
        self.door = SigningDoor(signing, store)
        self._chance = chance or SystemChance()
        self._tenant = tenant
        self._max_timeout = max_timeout

    def job(self, workflow: RoutedWorkflow, payload: str, options: Options) -> NewJob:
        return self.jobs(self.pattern(workflow, options), [payload])[0]

    def pattern(self, workflow: RoutedWorkflow, options: Options) -> Pattern:
        """What all jobs of a workflow with these options have in common, checked. What they leave open of their
        policy comes from the row of their workflow."""
        policy = workflow.policy.with_(workflow.name, options.policy) if options.policy else workflow.policy
        of_all = NewJob(
            id=options.id or "",
            payload="",
            tenant=options.tenant or self._tenant,
            queue=options.queue or workflow.queue,
            workflow=check_name(workflow.name, "workflow"),
            policy=policy,
            said=said(workflow.name, workflow.said, options.policy),
            max_timeout=self._max_timeout,
            priority=options.priority,
            delay=float(options.delay or 0),
            start_at=options.at,
            key=options.key,
            tags=options.tags,
            on_hold=options.hold,
            after=options.after,
            after_failure=options.after_failure,
            has_given_id=options.id is not None,
        )
        return Pattern(of_all, _of_each(workflow, options))

    def jobs(self, pattern: Pattern, payloads: Sequence[str], trace: str | None = None) -> Sequence[NewJob]:
        """What will be stored; their ids are known before the commit."""
        alike = Alike(pattern.of_all, self._ids(pattern.of_all, len(payloads)), payloads, trace)
        if not pattern.of_each:
            return alike
        return [replace(job, **{name: made(job.payload) for name, made in pattern.of_each.items()}) for job in alike]

    def submit_calls(self, pattern: Pattern, payloads: Sequence[str]) -> list[Submitted]:
        """Signed, if there is a key for it; in the trace that is current here."""
        if not tracing.is_used():
            return self.submit(self.door.signed(self.jobs(pattern, payloads)))
        of_all = pattern.of_all
        with TracedSubmit(of_all.queue, of_all.workflow, len(payloads)) as around:
            stored = self.submit(self.door.signed(self.jobs(pattern, payloads, around.trace)))
            around.name_jobs([each.id for each in stored])
            return stored

    def _ids(self, of_all: NewJob, count: int) -> list[str]:
        if not of_all.has_given_id:
            return self._chance.job_ids(count)
        if count > 1:
            raise InvalidInput(f"id={quoted(of_all.id)} names one job, and these are {count}")
        return [of_all.id] * count

    def submit(self, jobs: Sequence[NewJob], patience: float | None = None) -> list[Submitted]:
        """All or nothing up to BATCH jobs; of more, an error's note says how many are stored already."""
        if len(jobs) <= BATCH:
            return self._store_once(jobs, patience)
        stored: list[Submitted] = []
        for start in range(0, len(jobs), BATCH):
            try:
                stored += self._store_once(jobs[start : start + BATCH], patience)
            except Exception as error:
                if stored:
                    error.add_note(f"the first {len(stored)} of {len(jobs)} jobs were stored before this")
                raise
        return stored

    def _store_once(self, jobs: Sequence[NewJob], patience: float | None) -> list[Submitted]:
        """A lost answer is asked for again under the same ids: the store then says what it has, and adds nothing."""
        lost: OutcomeUnknown | None = None
        for repeat in range(_REPEATS):
            if repeat:
                threading.Event().wait(_PAUSE * 2**repeat)
            try:
                answers = self.store.submit(jobs, patience)
                return answers if lost is None else _claimed_back(jobs, answers)
            except OutcomeUnknown as error:
                lost = error
            except (StoreUnavailable, StoreBusy):
                # "Nothing was written" is true of this call only: the lost one before it may have been.
                if lost is None:
                    raise
        assert lost is not None
        lost.add_note(f"the jobs would be {', '.join(ids_of(jobs)[:10])}; look for them before you repeat")
        raise lost


def _of_each(workflow: RoutedWorkflow, options: Options) -> dict[str, Callable[[str], Any]]:
    """What is made of each job's own payload. A place that the caller said stands as it is, braces and all; else the
    workflow's template is filled in."""
    made: dict[str, Callable[[str], Any]] = {}
    if options.key:
        made["fingerprint"] = lambda payload: fingerprint(workflow.name, payload)
    places = {"target": (options.target, workflow.target), "limit_key": (options.limit_key, workflow.limit_key)}
    for what, (given, template) in places.items():
        if not isinstance(given, Unsaid):
            made[what] = partial(_as_said, given)
        elif template is not None:
            made[what] = partial(fill, workflow.name, what, template, workflow.schema)
    return made


def _as_said(place: str | None, _: str) -> str | None:
    return place


def _claimed_back(jobs: Sequence[NewJob], answers: Sequence[Submitted]) -> list[Submitted]:
    """To the repeat they are known already; but under ids that nobody else has, the lost call created them. An id
    that the caller chose may have been known before, and nobody can say."""
    given = {job.id for job in patterns_of(jobs) if job.has_given_id}
    pairs = zip(ids_of(jobs), answers, strict=True)
    return [
        Submitted(answer.id, answer.created or (answer.id == ident and ident not in given)) for ident, answer in pairs
    ]


def fingerprint(workflow: str, payload: str) -> str:
    """What an idempotency key stands for: the same call. Priority, times and policy may differ between repeats."""
    import hashlib

    return hashlib.sha256(f"{len(workflow)}:{workflow}{payload}".encode()).hexdigest()
