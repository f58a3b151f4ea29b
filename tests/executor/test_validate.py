"""Whatever bytes an executor sends: messages that fit, or BadFrame; never anything the store could choke on."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.executor.messages import (
    FULL_FRAME,
    MAX_FRAME,
    BadFrame,
    Begun,
    FrameReader,
    GivenBack,
    Raise,
    Return,
    Say,
    Stop,
    from_executor,
    pack,
    pack_all,
)
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Raised, Returned, Stopped
from unstuck.worker import validate

MESSAGES = [
    Begun(1, 2.5),
    Return(1, 3, '{"a":1}', "printed\n"),
    Raise(2, 3, "ValueError", "no", "Traceback", None, 1.5, None),
    Stop(3, 3, "cancel", "enough", None),
    GivenBack([4, 5]),
    Say(6, "output", "text"),
]


@given(st.lists(st.integers(0, 200), max_size=20))
def test_frames_arrive_whole_however_they_are_cut(cuts: list[int]) -> None:
    data = pack(MESSAGES) + pack(MESSAGES[:2])
    inbox = FrameReader(from_executor)
    heard: list[Any] = []
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in itertools.pairwise(edges):
        heard += inbox.take(data[begin:end])

    assert heard == MESSAGES + MESSAGES[:2]


@given(st.binary(max_size=200))
def test_any_bytes_are_messages_or_a_bad_frame(data: bytes) -> None:
    """Check 11."""
    framed = len(data).to_bytes(4, "little") + data
    try:
        heard = FrameReader(from_executor).take(framed)
    except BadFrame:
        return
    assert all(isinstance(message, msgspec.Struct) for message in heard)


def test_a_frame_above_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadFrame, match="limit"):
        FrameReader(from_executor).take((MAX_FRAME + 1).to_bytes(4, "little"))


def test_many_big_messages_are_sent_in_several_frames() -> None:
    messages = [Return(n, 0, "x" * (FULL_FRAME // 2), None) for n in range(10)]
    frames = list(pack_all(messages, lambda message: len(message.result)))

    assert len(frames) >= 3
    inbox = FrameReader(from_executor)
    assert [message for frame in frames for message in inbox.take(frame)] == messages


@pytest.mark.parametrize(
    "result",
    [
        "",
        "nonsense",
        '{"a":NaN}',
        '"a\\u0000b"',
        '"\\ud800"',
        '{"a":1,"a":2, "b":"\\u0041"}',
        '["x"] trailing',
        "[" * 300,
    ],
)
def test_a_result_that_no_executor_of_ours_would_send_is_refused(result: str) -> None:
    with pytest.raises(BadFrame):
        validate.outcome_of(Return(1, 0, result, None), 1 << 20)


def test_a_result_above_its_limit_is_refused() -> None:
    with pytest.raises(BadFrame, match="limit"):
        validate.outcome_of(Return(1, 0, json.dumps("x" * 100), None), 100)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s, max_size=3)))
def test_honest_results_pass_unchanged(value: Any) -> None:
    text = json.dumps(value)
    if "\\u0000" in text or "\\ud8" in text:
        return
    assert validate.outcome_of(Return(1, 0, text, None), 1 << 20) == Returned(text)


@pytest.mark.parametrize("after", [-1.0, math.nan, math.inf])
def test_a_retry_after_no_time_is_refused(after: float) -> None:
    with pytest.raises(BadFrame):
        validate.outcome_of(Raise(1, 0, "E", "m", None, True, after, None), 10)


def test_errors_and_output_are_bounded_and_storable() -> None:
    nasty = "a\x00" * (1 << 20)
    outcome = validate.outcome_of(Raise(1, 0, nasty, nasty, nasty, None, None, nasty), 10)

    assert isinstance(outcome, Raised)
    for text in (outcome.error.type, outcome.error.message, outcome.error.stack or ""):
        assert len(text) < 70_000
        assert "\x00" not in text
    assert len(validate.output_of(Stop(1, 0, None, None, nasty)) or "") < 140_000


def test_a_stop_names_a_request_we_know() -> None:
    assert validate.outcome_of(Stop(1, 0, "drain", "m", None), 1) == Stopped(RequestKind.DRAIN, "m")
    with pytest.raises(BadFrame):
        validate.outcome_of(Stop(1, 0, "party", "m", None), 1)


def test_progress_is_json() -> None:
    assert validate.said(Say(1, "progress", "[1]")) == "[1]"
    with pytest.raises(BadFrame):
        validate.said(Say(1, "progress", "[1"))


@pytest.mark.parametrize("core", ["", '"\\u0041"'])
def test_a_result_nested_deeper_than_can_be_read_is_refused(core: str) -> None:
    with pytest.raises(BadFrame):
        validate.outcome_of(Return(1, 0, "[" * 50_000 + core + "]" * 50_000, None), 1 << 20)
    with pytest.raises(BadFrame):
        validate.said(Say(1, "progress", "[" * 50_000 + core + "]" * 50_000))
