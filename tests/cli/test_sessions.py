"""unstuck sessions: who is logged in with a browser, and logging one out."""

from __future__ import annotations

from tests.cli.command import Command
from unstuck.model.keys import NewBrowserSession
from unstuck.store.sql_store import SqlStore


def test_sessions_are_listed_and_ended(unstuck: Command, store: SqlStore) -> None:
    assert "nobody is logged in" in unstuck("sessions").err + unstuck("sessions").out
    key = unstuck("keys", "create", "anna", "--role", "reader", "--tenant", "acme", "--json").object["id"]
    number = store.open_browser_session(NewBrowserSession("f" * 64, key, 60.0, 600.0, "10.0.0.1"), "anna")
    [listed] = unstuck("sessions", "--json").lines
    assert (listed["number"], listed["key"], listed["by"], listed["address"]) == (number, key, "anna", "10.0.0.1")
    table = unstuck("sessions", "list", "--tenant", "acme").out
    assert "10.0.0.1" in table
    assert "f" * 64 not in table
    assert unstuck("sessions", "list", "--tenant", "beta", "--json").lines == []
    assert unstuck("sessions", "end", str(number), "--tenant", "beta").code == 3
    assert "session 1 of anna has ended" in unstuck("sessions", "end", str(number), "--by", "eve").out
    gone = unstuck("sessions", "end", str(number))
    assert (gone.code, "`unstuck sessions`" in gone.err) == (3, True)
    verbs = [(line["verb"], line["by"]) for line in unstuck("audit", "--verb", "sessions", "--json").lines]
    assert verbs == [("sessions.end", "eve"), ("sessions.begin", "anna")]
