"""unstuck events: the feed on the command line, on both databases."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.cli.command import Command
from tests.support.eventually import eventually

KEYS = {
    "cursor", "tenant", "job", "workflow", "queue", "target", "topic", "worker", "by", "kind", "number", "run",
    "attempt", "at", "data",
}  # fmt: skip


def test_list_shows_what_happened_and_goes_on_from_a_cursor(unstuck: Command) -> None:
    first, second = unstuck.enqueue("add", "1"), unstuck.enqueue("add", "2")
    unstuck("jobs", "cancel", first)
    events = unstuck("events", "list", "--json").lines
    assert [(e["job"], e["kind"]) for e in events] == [
        (first, "submitted"),
        (second, "submitted"),
        (first, "cancelled"),
    ]
    assert all(event.keys() == KEYS for event in events)
    page = unstuck("events", "list", "--limit", "1", "--json")
    assert page.object == events[0]
    assert page.err.strip() == f"there may be more: --after {events[0]['cursor']}"
    assert unstuck("events", "list", "--after", events[0]["cursor"], "--json").lines == events[1:]
    assert unstuck("events", "list", "--job", second[:-1], "--json").lines == [events[1]]
    assert unstuck("events", "list", "--kind", "cancelled", "--workflow", "add", "--json").lines == [events[2]]
    assert unstuck("events", "list", "--tenant", "acme", "--json").lines == []
    assert unstuck("events", "list", "--tenant", "acme", "--all-tenants", "--json").lines == events
    for_people = unstuck("events", "list")
    assert f"{first}  add  cancelled" in for_people.out
    assert for_people.err.strip() == f"what comes next: unstuck events follow --after {events[2]['cursor']}"


def test_wrong_cursors_and_kinds_are_told_so(unstuck: Command) -> None:
    unstuck.enqueue("add", "1")
    wrong = unstuck("events", "list", "--after", "yesterday")
    assert (wrong.code, wrong.out) == (2, "")
    assert "'yesterday' is not a cursor that a feed gave out" in wrong.err
    unknown = unstuck("events", "follow", "--kind", "ex ploded")
    assert unknown.code == 2
    assert "there is no kind of event" in unknown.err
    mistyped = unstuck("events", "list", "--kind", "faild", "--json")
    assert (mistyped.code, mistyped.out) == (0, "")
    assert "faild is no kind of unstuck's own (failed?)" in mistyped.err
    [event] = unstuck("events", "list", "--json").lines
    ahead = unstuck("events", "list", "--after", event["cursor"] + "0")
    assert ahead.code == 4
    assert f"it ends at {event['cursor']}" in ahead.err


def test_what_is_published_is_listed_by_its_topic(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    words = ("--topic", "shop", "--job", job, "--by", "ada", "--id", "7")
    told = unstuck("events", "publish", "order.paid", "--data", '{"n": 1}', *words)
    assert (told.code, told.out) == (0, "published order.paid\n")
    again = unstuck("events", "publish", "order.paid", "--topic", "shop", "--job", job, "--id", "7", "--json").object
    assert (again["repeated"], again["job"], again["expires_at"]) == (True, job, None)
    [event] = unstuck("events", "list", "--topic", "shop", "--json").lines
    assert (event["kind"], event["data"], event["by"], event["job"]) == ("order.paid", {"n": 1}, "ada", job)
    assert unstuck("events", "list", "--target", "disk", "--json").lines == []
    assert "shop  " + job in unstuck("events", "list", "--topic", "shop").out
    for wrong in (["completed"], ["a b"], ["ok", "--data", "[1]"], ["ok", "--data", "{"], ["ok", "--ttl", "soon"]):
        refused = unstuck("events", "publish", *wrong)
        assert (refused.code, refused.out) == (2, ""), wrong


def test_follow_prints_events_as_they_come_and_says_how_to_go_on(unstuck: Command, tmp_path: Path) -> None:
    """Ctrl-C is how a person ends it: no traceback, and a cursor to go on from."""
    old = unstuck.enqueue("add", "1")
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        follower = subprocess.Popen(
            unstuck.words("events", "follow", "--after", "start", "--json"),
            cwd=tmp_path,
            env=unstuck.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    try:
        eventually(lambda: seen(tmp_path) == [old], timeout=20)
        new = unstuck.enqueue("add", "2")
        eventually(lambda: seen(tmp_path) == [old, new], timeout=20)
    finally:
        follower.send_signal(signal.SIGINT)
        code = follower.wait(20)
    assert code == 130
    said = (tmp_path / "err").read_text()
    cursor = json.loads((tmp_path / "out").read_text().splitlines()[-1])["cursor"]
    assert said.strip() == f"go on later: unstuck events follow --after {cursor}"
    later = unstuck.enqueue("add", "3")
    assert [e["job"] for e in unstuck("events", "list", "--after", cursor, "--json").lines] == [later]


def seen(folder: Path) -> list[str]:
    return [json.loads(line)["job"] for line in (folder / "out").read_text().splitlines()]
