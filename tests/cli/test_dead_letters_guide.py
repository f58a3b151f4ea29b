"""docs/dead-letters.md works as written, on both databases."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.command import ROOT, Command, ended
from tests.cli.test_order_guide import run, shell_of
from tests.support.burying import Graveyard
from unstuck.model.dead_letters import LISTED, sentence_of
from unstuck.model.signing import SignatureProblem
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

GUIDE = (ROOT / "docs" / "dead-letters.md").read_text()
START, LOOK, GO_ON = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)
[CODE] = re.findall(r"```python\n(.*?)```", GUIDE, re.S)
SHOWN: list[str] = re.findall(r"```text\n\$ .*?\n(.*?)```", GUIDE, re.S)
_ID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
_INSTANT = r"\d{4}-\d\d-\d\dT[0-9:.]+Z"


@pytest.fixture
def worker(unstuck: Command) -> Iterator[Command]:
    """As the guide starts it, but in the foreground of its own process."""
    (unstuck.directory / "mailer.py").write_text(CODE)
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {START.partition('&')[0]} --name w1"],
        cwd=unstuck.directory,
        env=shell_of(unstuck),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with ended(process, within=60):
        yield unstuck


def plain(text: str) -> str:
    """Without what is of one day and one machine, whichever of the three ended last, and however it was folded."""
    text = re.sub(r'\["(?:ada|bob|kim)"\]', '["ADDRESS"]', text)
    text = re.sub(r"code-[0-9a-f]{12}", "CODE", re.sub(_INSTANT, "AT", re.sub(_ID, "ID", text)))
    return " ".join(re.sub(r"\((?:in )?[0-9dhms. ]+(?: ago)?\)", "(AGE)", text).split())


@pytest.mark.timeout(300)
def test_the_guide_runs_as_written(worker: Command) -> None:
    told = run(worker, LOOK)

    assert "ConnectionError: the mail server is away" in told
    assert plain(SHOWN[0]) in plain(told)
    assert "dead_letters" in told
    assert "Dead letters: exhausted" in told
    exported = [json.loads(line) for line in (worker.directory / "letters.jsonl").read_text().splitlines()]
    assert sorted(each["args"] for each in exported) == [["ada"], ["bob"], ["kim"]]

    told = run(worker, GO_ON)

    assert "DONE: 1 done, 0 refused" in told
    states = [line["state"] for line in worker("jobs", "list", "--json").lines]
    assert states == ["COMPLETED"] * 3


def test_the_guide_says_of_one_that_needs_a_signature_what_the_command_says(unstuck: Command, store_url: str) -> None:
    store = SqlStore(open_database(store_url))
    job = Graveyard(store, store_url).bury(SignatureProblem.REVOKED)
    store.close()

    assert plain(unstuck("dead-letters", "redrive", job).err) == plain(SHOWN[1])


def test_the_guide_names_every_reason() -> None:
    for reason in LISTED:
        assert re.search(rf"^\| .*`{reason}`.* \|", GUIDE, re.M), reason
    assert sentence_of("altered") in GUIDE
