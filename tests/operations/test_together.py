"""Submits that arrive together share a transaction, and nothing else; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from tests.operations.conftest import Ask
from tests.support.builders import a_worker, claim_all, settle
from tests.support.eventually import eventually
from tests.support.troubles import raising
from unstuck.model.errors import (
    IdConflict,
    InvalidArguments,
    KeyConflict,
    NotPermitted,
    OutcomeUnknown,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    TooManyQueued,
    UnknownJob,
    UnknownWorkflowName,
)
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.redaction import REDACTED
from unstuck.model.settlement import Returned
from unstuck.operations import jobs, together
from unstuck.operations.submitting import asked
from unstuck.operations.table import Caller, Role
from unstuck.operations.together import Together
from unstuck.store.port import Limit
from unstuck.store.sql_store import SqlStore
from unstuck.views.jobs import NewJobView

POSTGRES = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


@pytest.fixture(autouse=True)
def greet(store: SqlStore) -> None:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])


@pytest.fixture
def gathered() -> Iterator[Together]:
    made = Together()
    yield made
    made.close()


class Told:
    """What each of them was told, in its place."""

    def __init__(self, count: int) -> None:
        self.outcomes: list[NewJobView | Exception | None] = [None] * count
        self.counts = [0] * count

    def tell(self, place: int, outcome: NewJobView | Exception) -> None:
        self.outcomes[place] = outcome
        self.counts[place] += 1

    def are_all(self) -> bool:
        return self.counts == [1] * len(self.counts)

    def seen(self) -> list[Any]:
        """Whether it was created, or the name of its error; None: nobody told it."""
        return [
            each.created if isinstance(each, NewJobView) else each and type(each).__name__ for each in self.outcomes
        ]


def teller(told: Told, place: int) -> together.Tell:
    return lambda outcome: told.tell(place, outcome)


def join(gathered: Together, caller: Caller, *options: dict[str, Any]) -> Told:
    """In one call, so that they are in one transaction if nothing is against it."""
    told = Told(len(options))
    parts = []
    for place, each in enumerate(options):
        whose = caller.about(each.pop("tenant", None))
        parts.append((asked(whose, each.pop("workflow", "greet"), **each), teller(told, place)))
    gathered.join(parts)
    return told


def stamps(told: Told) -> set[Any]:
    """One for each transaction."""
    return {each.created_at for each in told.outcomes if isinstance(each, NewJobView)}


def stored(store: SqlStore, tenant: str = "default") -> int:
    return sum(store.counts(tenant).values())


def test_they_share_a_transaction_and_each_has_its_own_answer(gathered: Together, ask: Ask, store: SqlStore) -> None:
    options = [{"args": [n], "priority": n, "key": f"k{n}" if n % 3 == 0 else None} for n in range(30)]

    told = join(gathered, ask(), *options)

    assert told.are_all()
    views = [each for each in told.outcomes if isinstance(each, NewJobView)]
    assert [view.priority for view in views] == list(range(30))
    assert len({view.id for view in views}) == stored(store) == 30
    assert len(stamps(told)) == 1
    numbers = [store.get("default", view.id).number for view in views]  # type: ignore[union-attr]
    assert numbers == sorted(numbers), "in the order in which they came"


def test_what_arrives_while_one_is_stored_is_stored_by_the_next(
    gathered: Together, ask: Ask, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one goes at once; all that come meanwhile go together, on the thread of the first."""
    inside, go, sizes = threading.Event(), threading.Event(), list[int]()
    real = SqlStore.submit

    def slowly(self: SqlStore, jobs: Sequence[Any], patience: float | None = None) -> Any:
        sizes.append(len(jobs))
        inside.set()
        assert go.wait(10)
        return real(self, jobs, patience)

    monkeypatch.setattr(SqlStore, "submit", slowly)
    first = threading.Thread(target=join, args=(gathered, ask(), {}))
    first.start()
    assert inside.wait(10)

    others = [join(gathered, ask(), {"args": [n]}) for n in range(20)]
    assert not any(told.are_all() for told in others)
    go.set()
    first.join(10)

    assert all(told.are_all() for told in others)
    assert sizes == [1, 20]
    assert len({stamp for told in others for stamp in stamps(told)}) == 1
    assert stored(store) == 21


def test_what_is_wrong_with_one_is_told_to_it_alone(gathered: Together, ask: Ask, store: SqlStore) -> None:
    jobs.enqueue(ask(), "greet", key="taken")
    ident = "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36"
    jobs.enqueue(ask(), "greet", id=ident)

    told = join(
        gathered,
        ask(),
        {},
        {"workflow": "unknown"},
        {"key": "taken", "args": [2]},
        {"key": "taken"},
        {"id": ident, "args": [3]},
        {"id": ident},
        {"tenant": "other", "key": "taken", "args": [2]},
        {"key": "new"},
        {"key": "new"},
        {"key": "new", "args": [4]},
        {},
    )
    eventually(told.are_all)

    errors = (UnknownWorkflowName, KeyConflict, IdConflict)
    unknown, conflict, other_id = (each.__name__ for each in errors)
    assert told.seen() == [
        True, unknown, conflict, False, other_id, False, True, True, False, conflict, True,
    ]  # fmt: skip
    assert (stored(store), stored(store, "other")) == (5, 1)


def test_arguments_are_checked_by_each_ones_own_workflow(gathered: Together, ask: Ask, store: SqlStore) -> None:
    schema = {"properties": {"number": {"type": "integer"}}, "required": ["number"], "additionalProperties": False}
    store.register_workflows([WorkflowRecord("strict", "v1", "default", Policy(), schema)])
    told = join(
        gathered,
        ask(),
        {"workflow": "strict", "kwargs": {"number": 1}},
        {"workflow": "strict", "kwargs": {"number": "one"}},
        {"kwargs": {"number": "one"}},
        {"workflow": "strict"},
    )
    wrong = InvalidArguments.__name__
    assert told.seen() == [True, wrong, True, wrong]
    assert stored(store) == 2


def test_a_key_is_kept_to_its_queues_and_workflows_beside_others(
    gathered: Together, ask: Ask, store: SqlStore
) -> None:
    store.register_workflows([WorkflowRecord("secret", "v1", "vault", Policy(), {})])
    jobs.enqueue(ask(), "secret", key="k")
    free, kept = ask(), ask(workflows=frozenset({"greet"}), queues=frozenset({"default"}))
    calls: list[tuple[Caller, str, dict[str, Any]]] = [
        (free, "secret", {}),
        (kept, "secret", {}),
        (kept, "greet", {}),
        (kept, "greet", {"queue": "vault"}),
        (free, "sekret", {}),
        (kept, "gret", {}),
    ]
    told = Told(len(calls))

    gathered.join([(asked(who, name, **more), teller(told, n)) for n, (who, name, more) in enumerate(calls)])

    refused, unknown = NotPermitted.__name__, UnknownWorkflowName.__name__
    assert told.seen() == [True, refused, True, refused, unknown, refused]
    assert "secret" in str(told.outcomes[4])
    assert "secret" not in str(told.outcomes[5])


def test_a_cap_refuses_only_what_is_above_it(gathered: Together, ask: Ask, store: SqlStore) -> None:
    """A46"""
    store.set_limit(Limit("tenant", "small", "*", "ada", max_queued=10))
    jobs.enqueue(ask(tenant="small"), "greet", key="known")
    options = [{"tenant": "small", "args": [n]} for n in range(24)]
    options += [{"tenant": "small", "key": "known"}, *({"tenant": "large", "args": [n]} for n in range(20))]

    told = join(gathered, ask(), *options)
    eventually(told.are_all)

    assert told.seen() == [True] * 9 + [TooManyQueued.__name__] * 15 + [False] + [True] * 20
    assert (stored(store, "small"), stored(store, "large")) == (10, 20)


def test_a_row_that_no_database_takes_is_found_and_refused_alone(
    gathered: Together, ask: Ask, store: SqlStore, store_url: str
) -> None:
    with raising(store_url, "unstuck_jobs", "NEW.priority = 77"):
        told = join(gathered, ask(), *({"priority": 77 if n == 13 else n} for n in range(40)))
        eventually(told.are_all)
    assert [place for place, each in enumerate(told.outcomes) if not isinstance(each, NewJobView)] == [13]
    assert stored(store) == 39


def test_one_may_come_after_another_that_is_stored_with_it(gathered: Together, ask: Ask) -> None:
    first, unborn = "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36", "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f37"
    told = join(
        gathered,
        ask(),
        {"id": first},
        {"after": [first], "before": {first}},
        {"after": [unborn], "before": {unborn}},
    )
    eventually(told.are_all)
    assert told.seen() == [True, True, UnknownJob.__name__]


@POSTGRES
def test_a_key_that_somebody_holds_delays_only_its_own(
    gathered: Together, ask: Ask, store: SqlStore, store_url: str
) -> None:
    """A45"""
    known = jobs.enqueue(ask(), "greet", key="held")
    with psycopg.connect(store_url) as other:
        other.execute("SELECT 1 FROM unstuck_keys WHERE key = 'held' FOR UPDATE")
        options = [{"key": f"k{n}" if n % 2 else None, "args": [n]} for n in range(40)]

        told = join(gathered, ask(), *options[:20], {"key": "held"}, *options[20:])

        eventually(lambda: told.seen().count(True) == 40, timeout=2)
        assert told.outcomes[20] is None
        assert join(gathered, ask(), {}, {"key": "later"}).seen() == [True, True]
        other.rollback()
    eventually(told.are_all)
    assert told.seen()[20] is False
    assert known.id in [each.id for each in told.outcomes if isinstance(each, NewJobView)]


@POSTGRES
def test_a_name_that_somebody_makes_delays_only_its_own(
    gathered: Together, ask: Ask, store: SqlStore, store_url: str
) -> None:
    """A target whose row another transaction has just made."""
    jobs.enqueue(ask(), "greet", target="old")
    with psycopg.connect(store_url) as other:
        other.execute(
            "INSERT INTO unstuck_targets (tenant, name, named_at) SELECT tenant, 'new', named_at FROM unstuck_targets"
        )
        told = join(gathered, ask(), *({"target": "new" if n == 3 else "old", "args": [n]} for n in range(8)))
        eventually(lambda: told.seen().count(True) == 7, timeout=2)
        assert told.outcomes[3] is None
        other.rollback()
    eventually(told.are_all)
    assert told.seen() == [True] * 8


@POSTGRES
def test_who_waits_too_long_for_a_key_is_told_so(
    gathered: Together, ask: Ask, store: SqlStore, store_url: str
) -> None:
    """More of them than may wait at a time, and nobody for longer than the two limits together."""
    jobs.enqueue(ask(), "greet", key="held")
    with psycopg.connect(store_url) as other:
        other.execute("SELECT 1 FROM unstuck_keys WHERE key = 'held' FOR UPDATE")
        told = [join(gathered, ask(), {"key": "held"}) for _ in range(8)]
        eventually(lambda: all(each.are_all() for each in told), timeout=12)
        other.rollback()
    # The other: on a busy machine its call may end before the lock's own limit does.
    assert {each.seen()[0] for each in told} <= {StoreBusy.__name__, StoreUnavailable.__name__}
    assert join(gathered, ask(), {"key": "held"}).seen() == [False]


def test_more_than_may_wait_are_refused_before_anything_is_taken(
    gathered: Together, ask: Ask, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "MOST_UNTOLD", 10)
    with pytest.raises(StoreBusy, match="nothing was written"):
        join(gathered, ask(), *({"args": [n]} for n in range(11)))
    assert stored(store) == 0
    for _ in range(3):
        assert join(gathered, ask(), *({"args": [n]} for n in range(10))).are_all()


def test_many_and_large_ones_go_in_several_transactions(gathered: Together, ask: Ask, store: SqlStore) -> None:
    told = join(gathered, ask(), *({"args": [n]} for n in range(600)))
    assert told.are_all()
    assert len(stamps(told)) == 3
    told = join(gathered, ask(), *({"args": ["x" * 300_000]} for _ in range(8)))
    assert told.are_all()
    assert len(stamps(told)) == 3
    assert stored(store) == 608


def test_a_store_that_is_away_is_told_to_all_and_the_next_ones_go_on(
    gathered: Together, ask: Ask, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(SqlStore, "get_many", _lost)
        told = join(gathered, ask(), {}, {})
    assert told.seen() == [OutcomeUnknown.__name__] * 2, "they are stored, and nobody says that they are not"
    assert stored(store) == 2
    assert join(gathered, ask(), {}, {}).seen() == [True, True]


def _lost(*_: Any) -> Any:
    raise StoreError("not reached")


def test_each_sees_of_a_known_job_what_it_may(gathered: Together, ask: Ask, store: SqlStore) -> None:
    """A submitter beside an admin."""
    store.register_workflows([WorkflowRecord("pay", "v1", "default", Policy(), {}, redact=("card",))])
    jobs.enqueue(ask(), "pay", key="k")
    worker = a_worker(store)
    [held] = claim_all(store, worker)
    settle(store, worker, held.ref, Returned('{"card": 4111, "sum": 5}'))

    shown = list[Any]()
    gathered.join(
        [(asked(ask(role=role), "pay", key="k"), shown.append) for role in (Role.SUBMITTER, Role.TENANT_ADMIN)]
    )

    assert [view.result["card"] for view in shown] == [REDACTED, 4111]
