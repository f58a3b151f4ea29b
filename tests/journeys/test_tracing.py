"""One trace from the request to the last step of a child, by real workers; and none of it where nobody traces."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

import unstuck
from tests.journeys.conftest import Jobs, only_sqlite
from tests.support.eventually import eventually
from tests.support.lines import whole_lines
from tests.support.tracer import Tracer, parent_of, provider_set
from tests.support.workers import Worker
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

APP = "tests.journeys.traced_app:app"
Start = Callable[..., Worker]
Span = dict[str, Any]


@pytest.fixture
def spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[Span]]:
    """What executors have recorded, once there is so much of it."""
    file = tmp_path / "spans"
    file.touch()
    monkeypatch.setenv("TRACES", str(file))

    def read(count: int) -> list[Span]:
        def arrived() -> list[Span]:
            found = [json.loads(line) for line in whole_lines(file)]
            assert len(found) >= count, [span["name"] for span in found]
            return found

        return eventually(arrived, timeout=30)

    return read


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    tracer = Tracer()
    with provider_set(tracer.provider):
        yield tracer


def enqueued(app: unstuck.App, workflow: str, *args: object) -> unstuck.Job[Any]:
    eventually(lambda: workflow in {row.name for row in app.workflows.list().items}, timeout=30)
    return app.job(app.jobs.enqueue(workflow, args=args).id)


@pytest.mark.parametrize("workflow", ["order", "order_async"])
def test_one_trace_from_the_request_to_the_childs_attempt(
    start: Start, store_url: str, db: Store, tracer: Tracer, spans: Callable[[int], list[Span]], workflow: str
) -> None:
    """A job with a step, a child that it waits for, and a step after that: two attempts, linked."""
    start(app=APP)
    with unstuck.App(store_url) as app:
        with trace.use_span(tracer.span("request")) as request:
            job = enqueued(app, workflow, 7)
        assert job.result(timeout=30) == ["reserve", 7, "bill"]
    [send] = [span for span in tracer.recorded() if span.name.startswith("send")]
    found = spans(8)
    assert {span["trace"] for span in found} == {f"{request.get_span_context().trace_id:032x}"}

    def named(name: str, **facts: object) -> Span:
        [one] = [span for span in found if span["name"] == name and facts.items() <= span.items()]
        return one

    first, second = (
        named("process default", **{"unstuck.workflow": workflow, "unstuck.outcome": how})
        for how in ("parked", "returned")
    )
    sent = parent_of(send)[36:52]
    assert (first["parent"], first["links"]) == (sent, [])
    assert (second["parent"], second["links"]) == (sent, [first["span"]])
    reserve, bill, spawn = named("step reserve"), named("step bill"), named("send parcels")
    assert (reserve["parent"], bill["parent"], spawn["parent"]) == (first["span"], second["span"], first["span"])
    assert named("own reserve")["parent"] == reserve["span"]
    assert named("own bill")["parent"] == bill["span"]
    child = named("process parcels")
    assert (child["parent"], child["unstuck.workflow"]) == (spawn["span"], "ship")
    assert len(found) == 8
    assert {span["status"] for span in found} == {"UNSET"}


@pytest.mark.parametrize("trouble", ["raises", "dies"])
def test_a_retry_is_a_new_span_of_the_same_trace(
    start: Start, store_url: str, db: Store, tracer: Tracer, spans: Callable[[int], list[Span]], trouble: str
) -> None:
    """Also after a process that died: the span of its attempt is missing, and its name is known."""
    start(app=APP)
    with unstuck.App(store_url) as app:
        job = enqueued(app, "troubled", trouble)
        assert job.result(timeout=30) > 1
    [send] = tracer.recorded()
    found = spans(2 if trouble == "raises" else 1)
    assert {(span["trace"], span["parent"]) for span in found} == {(parent_of(send)[3:35], parent_of(send)[36:52])}
    last = found[-1]
    assert (last["status"], last["unstuck.attempt"] > 1) == ("UNSET", True)
    [linked] = last["links"]
    if trouble == "raises":
        assert (found[0]["status"], found[0]["error.type"], found[0]["span"]) == ("ERROR", "ValueError", linked)
    else:
        assert linked not in {span["span"] for span in found}


@only_sqlite
def test_without_opentelemetry_everything_works(start: Start, jobs: Jobs, tmp_path: Path) -> None:
    """No process of a worker can import it, and none tries; the trace that a job carries is only passed on."""
    tried, blocker = tmp_path / "tried", tmp_path / "sitecustomize.py"
    blocker.write_text(
        textwrap.dedent(f"""
        import sys
        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "opentelemetry":
                    open({str(tried)!r}, "a").write(name)
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Blocker())
        """)
    )
    # For its supervisor here, for the processes that it starts by the name of the file.
    before = f"import os; os.environ['PYTHONPATH'] = {str(tmp_path)!r} + ':' + os.environ['PYTHONPATH']\n"
    start(before=blocker.read_text() + before)
    job = jobs.submit("add", 1, 2, trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")[0]
    assert jobs.until(job, JobState.COMPLETED, within=30).result == "3"
    assert not tried.exists()
