"""Records inside text: framed, split, cut anywhere, shown to people."""

from __future__ import annotations

import json
import math
import uuid
from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unstuck.model.logs import (
    MAX_RECORD,
    RS,
    LogRecord,
    as_text,
    complete,
    frame,
    level_named,
    printed,
    severity,
    split,
)

AT = datetime(2026, 11, 16, 10, 0, 0, 123456, UTC)


def said(message: Any = "said", level: Any = "info", logger: str | None = None, /, **fields: Any) -> LogRecord:
    return LogRecord(AT, level, message, fields, logger)


def reread(record: LogRecord) -> LogRecord:
    [found] = split(frame(record))
    assert isinstance(found, LogRecord), found
    return found


letters = st.text(max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | letters,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner, max_size=3),
    max_leaves=8,
)
records = st.builds(
    LogRecord,
    at=st.datetimes(timezones=st.just(UTC)),
    level=st.sampled_from(["debug", "info", "warning", "error", "critical", "level 25", "notice"]),
    message=letters,
    fields=st.dictionaries(letters, values, max_size=4),
    logger=st.none() | letters,
)
pieces = st.lists(letters.map(printed) | records, max_size=6)


def framed(mixture: list[str | LogRecord]) -> str:
    return "".join(piece if isinstance(piece, str) else frame(piece) for piece in mixture)


def joined(mixture: list[str | LogRecord]) -> list[str | LogRecord]:
    """Texts that touch as one, and no empty ones."""
    found: list[str | LogRecord] = []
    for piece in mixture:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        elif piece:
            found.append(piece)
    return found


@given(pieces)
def test_any_mixture_of_text_and_records_is_read_as_it_was_written(mixture: list[str | LogRecord]) -> None:
    assert split(framed(mixture)) == joined(mixture)


@given(pieces, st.data())
def test_cut_anywhere_whole_records_stay_whole_and_the_rest_is_text(
    mixture: list[str | LogRecord], data: st.DataObject
) -> None:
    text = framed(mixture)
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    found = split(text[begin:end])

    at, whole = 0, []
    for piece in mixture:
        size = len(piece) if isinstance(piece, str) else len(frame(piece))
        if isinstance(piece, LogRecord) and begin <= at and at + size <= end:
            whole.append(piece)
        at += size
    assert [piece for piece in found if isinstance(piece, LogRecord)] == whole
    assert all(RS not in piece for piece in found if isinstance(piece, str))
    assert isinstance(as_text(text[begin:end]), str)


@given(st.text(alphabet=st.sampled_from(RS + '{}[]":,\nat0"x'), max_size=60))
def test_no_text_at_all_is_an_error(text: str) -> None:
    assert RS not in as_text(text)
    assert split(printed(text)) == ([printed(text)] if text else [])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(pieces, st.data())
def test_a_reader_that_comes_in_between_gets_the_same_pieces_and_each_once(
    mixture: list[str | LogRecord], data: st.DataObject
) -> None:
    text, at = framed(mixture), 0
    found: list[str | LogRecord] = []
    for end in [*sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5))), len(text)]:
        fresh = complete(text[at:end])
        found += split(fresh)
        at += len(fresh)
    assert at == len(text)
    assert joined(found) == joined(mixture)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"at":"yesterday","level":"info","message":"x"}',
        '{"at":"2026-11-16T10:00:00+00:00","level":"info","message":7}',
        '{"at":"2026-11-16T10:00:00+00:00","level":"info","message":"x","fields":[]}',
        '{"at":"2026-11-16T10:00:00+00:00","level":"info","message":"x","fields":{"n":NaN}}',
        '{"at":"0001-01-01T00:00:00+23:59","level":"info","message":"x"}',
        "[" * 5000,
    ],
)
def test_what_is_framed_as_a_record_and_is_none_is_shown_as_text(line: str) -> None:
    assert split(f"a\n{RS}{line}\nb\n") == [f"a\n{line}\nb\n"]


def test_an_instant_is_read_in_utc() -> None:
    elsewhere = timezone(timedelta(hours=2))
    assert reread(LogRecord(AT.astimezone(elsewhere), "info", "x")).at == AT
    assert reread(LogRecord(AT.astimezone(elsewhere), "info", "x")).at.tzinfo is UTC
    assert reread(LogRecord(AT.replace(tzinfo=None), "info", "x")).at == AT


class Hostile:
    def __repr__(self) -> str:
        raise SystemExit("no")

    __str__ = __repr__

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("no")


class Coloured(StrEnum):
    RED = "red"


Point = namedtuple("Point", "x y")


def test_what_json_cannot_hold_becomes_text() -> None:
    circle: list[Any] = []
    circle.append(circle)
    kept = reread(
        said(
            nan=math.nan,
            bytes=b"\x00",
            set={1},
            error=ValueError("no"),
            when=AT,
            price=Decimal("1.50"),
            id=uuid.UUID(int=1),
            path=PurePosixPath("/a b"),
            colour=Coloured.RED,
            point=Point(1, math.inf),
            keys={1: "one", None: 2, (3,): 3},
            long=10**5000,
            hostile=Hostile(),
            inside=[Hostile()],
            circle=circle,
            self=7,
            message="mine",
        )
    ).fields

    assert kept.pop("circle")[0][0][0]
    assert kept == {
        "nan": "nan",
        "bytes": "b'\\x00'",
        "set": "{1}",
        "error": "ValueError('no')",
        "when": "2026-11-16 10:00:00.123456+00:00",
        "price": "1.50",
        "id": "00000000-0000-0000-0000-000000000001",
        "path": "/a b",
        "colour": "red",
        "point": [1, "inf"],
        "keys": {"1": "one", "None": 2, "(3,)": 3},
        "long": "<int: it cannot be shown>",
        "hostile": "<Hostile: it cannot be shown>",
        "inside": ["<Hostile: it cannot be shown>"],
        "self": 7,
        "message": "mine",
    }


def test_a_record_can_be_made_of_anything() -> None:
    hostile = "<Hostile: it cannot be shown>"
    for message, text in ((Hostile(), hostile), (7, "7"), (["a"], "['a']"), ("\x1e\x00\n", "\x1e\x00\n")):
        for level, name in ((Hostile(), hostile), (30, "warning"), (None, "none"), ([], "[]"), ("", "info")):
            found = reread(said(message, level))
            assert (found.message, found.level) == (text, name.lower())
            assert found.text.count("\n") == 1


#: Made by the test that wants them: together they are half a gigabyte.
LARGE: list[Callable[[], LogRecord]] = [
    lambda: said("x" * 1_000_000),
    lambda: said("\x01" * 1_000_000),
    lambda: said("y", text="x" * 1_000_000, n=1),
    lambda: said("\x01" * 15_000, a="\x01" * 3000, b="\x01" * 3000, n=1),
    lambda: said("y", **{f"field{n}": "\x01" * 100 for n in range(1000)}),
    lambda: said("y", rows=[{"n": n} for n in range(1_000_000)]),
    lambda: said("y", **{"n" * 100_000: 1}),
    lambda: said("x" * 20_000, "l" * 20_000, "\x01" * 20_000, n="\x02" * 8000),
    lambda: said(["x"] * 100_000),
]


@pytest.mark.parametrize("make", LARGE, ids=range(len(LARGE)))
def test_a_record_is_bounded_and_says_what_is_missing(make: Callable[[], LogRecord]) -> None:
    record = make()
    text = frame(record)
    assert len(text) <= MAX_RECORD + 2
    found = reread(record)
    assert "cut" in json.dumps([found.message, found.fields]) or "more than" in str(found.fields)


def test_a_large_field_leaves_the_small_ones_alone() -> None:
    found = reread(said("y" * 3000, text="x" * 14_000, order=7))
    assert found.message == "y" * 3000
    assert found.fields == {"text": f"{'x' * 450} … 13,100 characters cut … {'x' * 450}", "order": 7}


def test_of_a_field_of_megabytes_both_ends_are_kept_and_the_rest_is_counted() -> None:
    size = 30 << 20
    found = reread(said("y", text="begin" + "x" * (size - 8) + "end", nested={"of": "z" * size}))
    text, nested = found.fields["text"], found.fields["nested"]["of"]
    assert text.startswith("begin")
    assert text.endswith("end")
    assert f" … {size - 900:,} characters cut … " in text
    assert f" … {size - 900:,} characters cut … " in nested


def test_what_has_too_much_in_it_is_not_even_looked_through() -> None:
    found = reread(said("y", rows=[{"n": n} for n in range(1_000_000)], row={"n": 1}))
    assert found.fields == {"rows": "<list with more than 2,000 values in it>", "row": {"n": 1}}


def test_of_a_long_message_beginning_and_end_are_kept() -> None:
    found = reread(said("begin" + "x" * 50_000 + "end")).message
    assert found.startswith("begin")
    assert found.endswith("end")
    assert " … 38,008 characters cut … " in found


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (said("said", n=1, ok=True, none=None, half=0.5), "said n=1 ok=true none=null half=0.5\n"),
        (said("said", "warning", word="two words"), 'WARNING said word="two words"\n'),
        (said("a\nb\r\x1b[31m", v="c\nd"), 'a\\nb\\r\\x1b[31m v="c\\nd"\n'),
        (said("turned", v="a\u202eb", **{"a b": ""}), 'turned v="a\\u202eb" "a b"=""\n'),
        (said("quoted", v='say "hi"'), 'quoted v="say \\"hi\\""\n'),
        (said("日本\u3000語", v=["a b", {"k": 1}]), '日本\u3000語 v=["a b",{"k":1}]\n'),
        (said("logged line", "info", "tests"), "INFO tests: logged line\n"),
        (
            said("no money\nTraceback …\n\tValueError: \x1bx", "error", "shop", order=7),
            "ERROR shop: no money order=7\n  Traceback …\n  \tValueError: \\x1bx\n",
        ),
        (said("x", "info", "a\nFAKE b"), "INFO a\\nFAKE b: x\n"),
        (said("x", "info\nCRITICAL shop: forged"), "INFO\\NCRITICAL SHOP: FORGED x\n"),
        (said("bob\nCRITICAL shop: forged", "info", "shop"), "INFO shop: bob\n  CRITICAL shop: forged\n"),
    ],
)  # fmt: skip
def test_people_read_one_line_per_record_and_whole_tracebacks(record: LogRecord, text: str) -> None:
    """F74: what a value holds cannot pass for another line."""
    assert record.text == text
    assert as_text(f"before\n{frame(record)}after\n") == f"before\n{text}after\n"


def test_levels_have_one_spelling_and_an_order() -> None:
    assert [level_named(x) for x in ("WARN", "Fatal", 30, "25", "Level 25", "notice")] == [
        "warning",
        "critical",
        "warning",
        "level 25",
        "level 25",
        "notice",
    ]
    assert severity("debug") < severity("info") == severity("notice") < severity("level 25") < severity("warning")
    assert severity("error") < severity("audit 45") < severity("critical")
