"""Serials as no executor of ours gives them: two flow calls under one serial would keep a report back for ever,
and one that no column holds would be asked of the database again and again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.executor.test_flow import Desk, FlowWatch
from unstuck.executor.messages import BadFrame, FlowCallMessage, LoadJournal
from unstuck.worker.member import Member
from unstuck.worker.processes import FlowCall


class Talker:
    """An executor whose handler has asked once, under serial 1, and that now says whatever we like."""

    def __init__(self, watch: FlowWatch) -> None:
        self._watch = watch
        watch.desk = Desk(is_away=True)
        executor = watch.executor()
        self.ref = watch.feed(executor, "many_steps_at_once", 5)
        assert watch.flow_call(self.ref).serial == 1
        self.member: Member = watch.fleet._members[executor]
        (self.number,) = self.member.fed

    def ask(self, serial: int) -> None:
        self._watch.fleet._channel._take(self.member, FlowCallMessage(self.number, serial, LoadJournal(0)))

    def calls(self) -> list[FlowCall]:
        self._watch.hear_for(0.1)
        return [e for e in self._watch.events if isinstance(e, FlowCall) and e.ref == self.ref]

    def heard(self) -> list[int]:
        return [call.serial for call in self.calls()]


@pytest.fixture(scope="module")
def watch() -> Iterator[FlowWatch]:
    watch = FlowWatch("fork", app="tests.executor.flow_app:app")
    watch.imported()
    yield watch
    watch.close()


@pytest.fixture
def talker(watch: FlowWatch) -> Iterator[Talker]:
    talker = Talker(watch)
    yield talker
    watch.fleet.kill(talker.member.number, "enough")


def test_serials_that_grow_are_heard_up_to_the_largest_that_a_column_holds(talker: Talker) -> None:
    for serial in (2, 3, 10, (1 << 63) - 1):
        talker.ask(serial)
    assert talker.heard() == [1, 2, 3, 10, (1 << 63) - 1]


@pytest.mark.parametrize("serial", [1, 0, -1, 1 << 63, (1 << 64) - 1])
def test_a_serial_that_does_not_grow_or_that_no_column_holds_is_a_bad_frame(talker: Talker, serial: int) -> None:
    with pytest.raises(BadFrame, match="serial"):
        talker.ask(serial)
    assert talker.heard() == [1]


def test_a_serial_does_not_come_back_once_it_was_answered(watch: FlowWatch, talker: Talker) -> None:
    """A repeated spend under an old serial would not be counted."""
    talker.ask(2)
    for call in talker.calls():
        watch.fleet.answer(call, Desk().reply(LoadJournal(0)))
    with pytest.raises(BadFrame, match="serial"):
        talker.ask(2)
