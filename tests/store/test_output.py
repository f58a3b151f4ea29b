"""What an attempt said, the whole way: captured, streamed, stored, read again."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.builders import TENANT, a_worker, claimed
from unstuck.clock import wall
from unstuck.executor.capture import CAP, Output
from unstuck.model.logs import LogRecord, frame, split
from unstuck.model.settlement import Returned
from unstuck.store.port import AttemptOutput, Report, Store


def stored(store: Store, writes: Iterable[str]) -> str:
    """As an executor and its worker do it: what is ready is streamed now and then, the rest comes with the end."""
    worker = a_worker(store)
    attempt = claimed(store, worker)
    output = Output()
    for number, text in enumerate(writes):
        output.write(text)
        if number % 50 == 0 and (said := output.stream()):
            store.keep_output([AttemptOutput(attempt.ref, output=said)])
    store.settle(worker.number, [Report(attempt.ref, Returned("1"), output=output.rest())])
    [kept] = store.attempts(TENANT, attempt.id)
    return kept.output or ""


def test_the_last_words_of_a_long_output_are_kept(store: Store) -> None:
    """The note about what was cut has room of its own: it must not push the end out."""
    kept = stored(store, [f"line {n}\n" for n in range(20_000)] + ["Boom: the disk is full\n"])

    assert kept.startswith("line 0\nline 1\n")
    assert "characters cut" in kept
    assert kept.endswith("line 19999\nBoom: the disk is full\n")
    assert CAP - 200 < len(kept) <= CAP


def test_one_endless_line_is_kept_at_both_ends(store: Store) -> None:
    kept = stored(store, ["<", *("x" * 999 for _ in range(300)), ">"])

    assert (kept[0], kept[-1]) == ("<", ">")
    assert CAP - 200 < len(kept) <= CAP


def test_records_come_back_from_the_store_as_they_were(store: Store) -> None:
    """Whatever letters are in them; and people read the same attempt as text."""
    worker = a_worker(store)
    attempt = claimed(store, worker)
    record = LogRecord(wall(), "warning", 'a\x00\n"\\ü\u2028🦑', {"path": "C:\\u0000", "n": [1, None]}, "shop")
    output = Output()
    output.write("before\x1e\x00\n")
    output.add(frame(record))
    store.keep_output([AttemptOutput(attempt.ref, output=output.stream())])
    output.write("after\n")
    store.settle(worker.number, [Report(attempt.ref, Returned("1"), output=output.rest())])

    [kept] = store.attempts(TENANT, attempt.id)
    assert split(kept.framed or "") == ["before␞\ufffd\n", record, "after\n"]
    assert kept.output == f"before␞\ufffd\n{record.text}after\n"


def test_an_attempt_that_said_nothing_has_no_output(store: Store) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    [kept] = store.attempts(TENANT, attempt.id)
    assert (kept.framed, kept.output) == (None, None)


def test_a_flood_of_records_is_stored_up_to_the_last_one(store: Store) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    output = Output()
    for n in range(3000):
        output.add(frame(LogRecord(wall(), "info", "said", {"n": n, "text": "ü" * (n % 400)})))
        if n % 50 == 0:
            store.keep_output([AttemptOutput(attempt.ref, output=output.stream())])
    store.settle(worker.number, [Report(attempt.ref, Returned("1"), output=output.rest())])

    [kept] = store.attempts(TENANT, attempt.id)
    first, *records, last = split(kept.framed or "")
    assert isinstance(first, LogRecord)
    assert isinstance(last, LogRecord)
    assert (first.fields["n"], last.fields["n"]) == (0, 2999)
    [cut] = [piece for piece in records if isinstance(piece, str)]
    assert cut.startswith("\n… ")
