"""Whatever a program hands in, it is taken or refused as InvalidInput, in few words that can be printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

import unstuck
from tests.support.tables import counts_of_tables
from unstuck import App, InvalidInput
from unstuck.model.errors import UnstuckError

Ask = Callable[[App], Any]
BEYOND = datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))


class Text(str):
    """As libraries hand it out: markup, settings, columns of a database."""


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("says nothing")


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    with App(store_url, name="shop") as app:

        @app.workflow
        def ship() -> int:
            return 1

        yield app


def ship(app: App, **options: Any) -> Any:
    return unstuck.Workflow(app._code, "ship", lambda: 1).using(**options).enqueue()


NOT_SEVERAL: list[Any] = [None, 5, {}, b"x", [5]]
NOT_TEXT: list[Any] = [5, b"x", [], Mute()]
OPTIONS: list[dict[str, Any]] = [
    *[{name: wrong} for name in ("after", "tags") for wrong in NOT_SEVERAL],
    {"after": True},
    {"after": {"a": 1}},
    {"after": [None]},
    *[{name: wrong} for name in ("target", "limit_key", "tenant", "queue") for wrong in NOT_TEXT],
    {"after_failure": []},
    {"at": BEYOND},
    {"at": date(2090, 1, 1)},
    {"priority": 10**5000},
    {"hold": Mute()},
]


@pytest.mark.parametrize("options", OPTIONS, ids=[next(iter(o)) for o in OPTIONS])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_options_that_make_no_sense_are_refused_and_nothing_is_written(
    app: App, store_url: str, options: dict[str, Any]
) -> None:
    ship(app)
    before = counts_of_tables(store_url)
    with pytest.raises(InvalidInput):
        ship(app, **options)
    assert counts_of_tables(store_url) == before


ASKED: list[tuple[str, Ask]] = [
    *[(f"jobs of state {s!r}", lambda app, s=s: app.jobs.list(state=s)) for s in NOT_SEVERAL],
    *[(f"jobs limit {n!r}", lambda app, n=n: app.jobs.list(limit=n)) for n in ("5", 1.5, True, None, 0)],
    *[(f"targets limit {n!r}", lambda app, n=n: app.targets.list(limit=n)) for n in ("5", 1.5, True, None)],
    *[
        (f"jobs of {name}", lambda app, name=name: app.jobs.list(**{name: 5}))
        for name in ("workflow", "queue", "target", "tag", "error_type", "tenant", "before", "since")
    ],
    ("jobs of no tenant", lambda app: app.jobs.list(tenant=0)),  # type: ignore[arg-type]
    ("why of a number", lambda app: app.jobs.why(5)),  # type: ignore[arg-type]
    ("why of nothing", lambda app: app.jobs.why(None)),  # type: ignore[arg-type]
    ("a job by number", lambda app: app.job(5)),  # type: ignore[arg-type]
    ("a target by number", lambda app: app.targets.get(5)),  # type: ignore[arg-type]
    ("targets above a number", lambda app: app.targets.list(after=5)),  # type: ignore[arg-type]
    ("a pause until a word", lambda app: app.queues.pause("default", until="tomorrow")),  # type: ignore[arg-type]
    ("a pause beyond the calendar", lambda app: app.queues.pause("default", until=BEYOND)),
    ("a rate of ages", lambda app: app.queues.limit("default", rate="1/999999999d")),
]


@pytest.mark.parametrize("ask", [ask for _, ask in ASKED], ids=[name for name, _ in ASKED])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_questions_that_make_no_sense_are_refused(app: App, ask: Ask) -> None:
    with pytest.raises(InvalidInput):
        ask(app)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("verb", ["cancel", "interrupt", "resume", "release", "skip", "retry"])
def test_who_asked_must_be_text_or_nothing_is_done(app: App, verb: str) -> None:
    job = ship(app, hold=True)
    with pytest.raises(InvalidInput, match="by=5"):
        getattr(job, verb)(by=5)
    assert job.state() == "PENDING"


@pytest.mark.parametrize("rate", ["1/999999999d", "1000000001/s", "٣/s"])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_rate_beyond_reason_is_refused_where_it_stands_in_the_code(app: App, rate: str) -> None:
    """A worker that registers it would never get past it."""
    with pytest.raises(InvalidInput, match="workflow slow: rate"):

        @app.workflow(rate=rate)
        def slow() -> int:
            return 1


def test_text_of_a_class_of_its_own_is_taken_as_text(app: App) -> None:
    first = ship(app, tenant=Text("acme"))
    job = ship(
        app,
        tenant=Text("acme"),
        queue=Text("io"),
        target=Text("site"),
        limit_key=Text("host:a"),
        after=[Text(first.id)],
        tags=[Text("blue")],
        key=Text("k1"),
    )
    record = job.view()
    assert (record.tenant, record.queue, record.target, record.limit_key) == ("acme", "io", "site", "host:a")
    app.queues.pause(Text("io"), tenant=Text("acme"), reason=Text("tired"), by=Text("ada"))
    app.limits.key(Text("host:*"), concurrency=2, tenant=Text("acme"))
    assert app.targets.get(Text("site"), tenant=Text("acme")).name == "site"
    assert [j.id for j in app.jobs.list(tag=Text("blue"), tenant=Text("acme"))] == [job.id]


@pytest.mark.parametrize("name", ["x" * 100_000, "lone \ud800 surrogate"], ids=["long", "surrogate"])
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_refusals_are_short_and_can_be_printed(app: App, name: str) -> None:
    asked: list[Ask] = [
        lambda app: app.job(name),
        lambda app: app.jobs.why(name),
        lambda app: app.targets.get(name),
        lambda app: app.tenants.unpause(name),
        lambda app: app.queues.pause("q", seconds=name),
        lambda app: app.queues.limit("q", rate=name),
        lambda app: app.jobs.list(state=name),
        lambda app: ship(app, after=name),
        lambda app: ship(app, after_failure=name),
        lambda app: ship(app, priority=name),
        lambda app: ship(app, hold=name),
    ]
    for ask in asked:
        with pytest.raises(UnstuckError) as refusal:
            ask(app)
        assert len(str(refusal.value).encode()) < 1000


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_time_without_a_zone_is_taken_for_utc(app: App) -> None:
    at = datetime(2090, 1, 1)
    assert app.queues.pause("io", until=at).until_at == at.replace(tzinfo=UTC)
