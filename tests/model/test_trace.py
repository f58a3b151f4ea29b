"""The trace of a job: read from anything, kept only if it is well formed."""

from __future__ import annotations

import pytest

from unstuck.model.trace import MOST_BAGGAGE, MOST_STATE, MOST_TRACE, TraceContext, checked

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_it_is_kept_as_few_lines_as_it_says_something() -> None:
    assert TraceContext(PARENT).text == PARENT
    assert TraceContext(PARENT, "a=1").text == f"{PARENT}\na=1"
    whole = TraceContext(PARENT, "", "user=7")
    assert TraceContext.read(whole.text) == whole
    assert whole.headers == {"traceparent": PARENT, "baggage": "user=7"}


def test_it_tells_its_ids() -> None:
    known = TraceContext(PARENT)
    assert (known.trace_id, known.span_id) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


@pytest.mark.parametrize(
    "said",
    [
        "",
        "nonsense",
        PARENT[:-1],
        PARENT.upper(),
        PARENT + "-more",
        "ff" + PARENT[2:],
        PARENT.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        PARENT.replace("b7ad6b7169203331", "0" * 16),
        PARENT.replace("0af7", "٠af7"),
        "\x00" * 55,
        "x" * (MOST_TRACE + 1),
        "\n\n\n",
    ],
)
def test_what_is_no_traceparent_is_dropped(said: str) -> None:
    assert checked(said) is None
    assert TraceContext.of(said) is None


def test_a_version_to_come_is_read_as_far_as_ours_goes() -> None:
    assert checked("cc" + PARENT[2:] + "-what-the-future-brings") == PARENT


@pytest.mark.parametrize("state", ["x" * (MOST_STATE + 1), "a=\x1b[31m", "é=1", "a=1\r\nX-Evil: 1"])
def test_a_state_that_is_too_long_or_not_printable_is_dropped_alone(state: str) -> None:
    assert TraceContext.of(PARENT, state, "user=7") == TraceContext(PARENT, "", "user=7")


def test_baggage_is_bounded_too() -> None:
    assert TraceContext.of(PARENT, "a=1", "b" * (MOST_BAGGAGE + 1)) == TraceContext(PARENT, "a=1")
    longest = TraceContext.of(PARENT, "s" * MOST_STATE, "b" * MOST_BAGGAGE)
    assert longest is not None
    assert len(longest.text) == MOST_TRACE
    assert TraceContext.read(longest.text) == longest
