"""What loggers say in a worker or a server stands in its log, in its format, once."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from unstuck import telemetry
from unstuck.cli.library_log import LibraryLog

Said = list[str]


@pytest.fixture(params=[True, False], ids=["json", "human"])
def said(request: pytest.FixtureRequest) -> Iterator[tuple[bool, Said]]:
    lines: Said = []
    log = LibraryLog(lines.append, as_json=request.param)
    logging.getLogger().addHandler(log)
    yield request.param, lines
    logging.getLogger().removeHandler(log)


def test_an_error_is_told_with_its_stack_and_without_secrets(said: tuple[bool, Said]) -> None:
    as_json, lines = said
    try:
        raise ValueError("cannot reach postgresql://ada:s3cret@db/jobs\x1b[2J")
    except ValueError as error:
        logging.getLogger("unstuck").error("request %s failed", "r1", exc_info=error)
    [line] = lines
    assert "s3cret" not in line
    assert "\x1b" not in line
    if as_json:
        found = json.loads(line)
        assert (found["event"], found["level"], found["logger"]) == ("log", "error", "unstuck")
        assert found["message"] == "request r1 failed"
        assert found["exception"].startswith("Traceback")
        assert found["at"].endswith("Z")
    else:
        assert line[10:].startswith("ERROR unstuck: request r1 failed\n          Traceback")


def test_events_are_told_elsewhere_and_chatter_not_at_all(said: tuple[bool, Said]) -> None:
    telemetry.emit("stuck", level=logging.WARNING, job="j1")
    logging.getLogger("shop").info("sold")
    logging.getLogger("shop").warning("sold out")
    assert ["sold out" in line for line in said[1]] == [True]
