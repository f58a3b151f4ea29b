"""Pages of what one job has: its steps and waits, however large they are; and what tells that it said more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.store.test_pending import work_off
from tests.support.builders import TENANT, claim_all, submitted
from tests.support.parking import Stage
from unstuck.model.errors import UnknownJob
from unstuck.model.waits import Wait, WaitKind
from unstuck.store.flow import pages
from unstuck.store.port import AttemptOutput, OutputMark
from unstuck.store.sql_store import SqlStore


def read_on(page: Callable[[str, str, int], list[Any]], job: str) -> Iterator[list[Any]]:
    skip = 0
    while found := page(TENANT, job, skip):
        yield found
        skip += len(found)


@pytest.mark.parametrize("chunk", [2, 50])
def test_steps_come_in_pages_that_are_bounded_in_bytes_and_rows(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    stage = Stage(store)
    attempt, other = stage.begun(), stage.begun()
    for number, size in enumerate((10, 10, 500, 10, 300, 300, 10, 10, 10)):
        stage.step(attempt, f"s{9 - number}", f'"{"ü" * size}"')  # in another order than that of their names
        stage.step(other, "its own", "1", ordinal=number + 1)
    whole = store.steps_of(TENANT, attempt.id)
    assert [step.name for step in whole] == [f"s{9 - number}" for number in range(9)]
    assert [*read_on(store.steps_page, attempt.id)] == [whole]
    monkeypatch.setattr(pages, "PAGE_BYTES", 600)
    monkeypatch.setattr(pages, "CHUNK_ROWS", chunk)
    found = [*read_on(store.steps_page, attempt.id)]
    assert [len(page) for page in found] == [3, 2, 1, 3]
    assert [step for page in found for step in page] == whole
    monkeypatch.setattr(pages, "PAGE_BYTES", 1 << 20)
    monkeypatch.setattr(pages, "PAGE_ROWS", 4)
    assert [len(page) for page in read_on(store.steps_page, attempt.id)] == [4, 4, 1]


def test_waits_come_in_pages_too(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(store)
    attempt = stage.begun()
    for number in range(5):
        stage.park(attempt, Wait(WaitKind.EVENT, f"event:e{5 - number}#1", f"e{5 - number}"))
        store.signal(TENANT, f"e{5 - number}", f'"{"x" * 400}"', by="ada", job=attempt.id)
        work_off(store)
        (attempt,) = claim_all(store, stage.worker)
    whole = store.waits_of(TENANT, attempt.id)
    assert [wait.wait.name for wait in whole] == ["e5", "e4", "e3", "e2", "e1"]
    assert [*read_on(store.waits_page, attempt.id)] == [whole]
    monkeypatch.setattr(pages, "PAGE_BYTES", 500)
    found = [*read_on(store.waits_page, attempt.id)]
    assert [wait for page in found for wait in page] == whole
    assert [len(page) for page in found] == [2, 2, 1]


def test_a_job_without_steps_has_no_page_and_an_unknown_one_is_unknown(store: SqlStore) -> None:
    job = submitted(store).id
    for page in (store.steps_page, store.waits_page):
        assert page(TENANT, job) == []
        assert page(TENANT, job, 2**63 - 1) == []
        with pytest.raises(UnknownJob):
            page("other", job)


def test_the_mark_of_a_job_changes_with_all_that_it_prints_or_gives(store: SqlStore) -> None:
    stage = Stage(store)
    quiet, attempt = submitted(store).id, stage.begun()
    seen = [store.output_marks([attempt.id, quiet, "no-such-job"])]
    assert seen[0] == {attempt.id: OutputMark(0, 0, 0), quiet: OutputMark(0, 0, 0)}
    for say in (
        lambda: store.keep_output([AttemptOutput(attempt.ref, output="one\n")]),
        lambda: store.keep_output([AttemptOutput(attempt.ref, output="two\n")]),
        lambda: stage.part(attempt, "page", "1", 1),
        lambda: stage.part(attempt, "page", "2", 2),
    ):
        say()
        seen.append(store.output_marks([attempt.id, quiet]))
        assert seen[-1][attempt.id] != seen[-2][attempt.id]
        assert seen[-1][quiet] == seen[-2][quiet]
    assert store.output_marks([attempt.id]) == {attempt.id: OutputMark(1, 8, 2)}
    assert store.output_marks([]) == {}
