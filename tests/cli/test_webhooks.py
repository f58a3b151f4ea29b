"""unstuck webhooks and deliveries: for people and for programs."""

from __future__ import annotations

from tests.cli.command import Command
from tests.support.builders import submitted
from tests.support.webhooks import BROKEN, copied, leased, sent, settled
from unstuck.store.port import Store

URL = "http://127.0.0.1:9/in"


def test_from_its_making_to_its_end(unstuck: Command, store: Store) -> None:
    assert "no webhooks; make one" in unstuck("webhooks").err
    refused = unstuck("webhooks", "create", "hook", URL)
    assert (refused.code, "webhook_allow" in refused.err) == (2, True)
    assert "webhook_allow is" in unstuck("settings", "set", "webhook_allow", "127.0.0.0/8").out
    made = unstuck("webhooks", "create", "hook", URL, "--kind", "submitted", "--queue", "default", "--by", "ada")
    assert made.word.startswith("whsec_")
    assert "it is shown this once" in made.err
    assert "kept as it is" in made.err
    [listed] = unstuck("webhooks", "--json").lines
    assert (listed["name"], listed["kinds"], listed["queue"]) == ("hook", ["submitted"], "default")
    changed = unstuck(
        "webhooks", "update", "hook", "--queue", "", "--workflow", "greet", "--all-kinds", "--json"
    ).object
    assert (changed["queue"], changed["workflow"], changed["kinds"]) == (None, "greet", [])

    job = submitted(store)
    copied(store)
    [sending] = leased(store)
    settled(store, sending, BROKEN)
    shown = unstuck("webhooks", "show", "hook").out
    assert "1 in a row" in shown
    assert "it answered 500" in shown
    [delivery] = unstuck("deliveries", "--webhook", "hook", "--state", "waiting", "--json").lines
    assert delivery["job"] == job.id
    assert "it answered 500" in unstuck("deliveries", "list").out
    assert "try 1" in unstuck("deliveries", "show", str(delivery["number"])).out

    assert unstuck("webhooks", "rotate", "hook", "--overlap", "1h").word != made.word
    (unstuck.directory / "secret").write_text(made.word + "\n")
    assert unstuck("webhooks", "rotate", "hook", "--secret-file", "secret").word == made.word
    assert unstuck("webhooks", "rotate", "hook", "--secret", made.word).code == 2, "a command line is no secret"
    assert "paused" in unstuck("webhooks", "pause", "hook", "--reason", "they move").out
    assert "they move" in unstuck("webhooks", "show", "hook").out
    assert "is active; 1 waiting" in unstuck("webhooks", "enable", "hook").out
    assert unstuck("webhooks", "test", "hook").word == "2"
    assert "is sent again" in unstuck("webhooks", "replay", "hook", "--since", "2020-01-01T00:00:00Z").out
    assert unstuck("webhooks", "replay", "hook").code == 2
    assert "disabled" in unstuck("webhooks", "disable", "hook").out
    assert unstuck("webhooks", "test", "hook").code == 4
    assert "is deleted" in unstuck("webhooks", "delete", "hook").out
    assert unstuck("webhooks", "show", "hook").code == 3
    assert unstuck("deliveries", "show", "99").code == 3
    said = [line["verb"] for line in unstuck("audit", "--verb", "webhooks", "--json").lines]
    verbs = ("delete", "disable", "replay", "test", "enable", "pause", "rotate", "rotate", "update", "create")
    assert said == [f"webhooks.{verb}" for verb in verbs]


def test_a_delivery_of_a_webhook_that_rests_says_until_when(unstuck: Command, store: Store) -> None:
    unstuck("settings", "set", "webhook_allow", "127.0.0.0/8")
    unstuck("webhooks", "create", "hook", URL)
    for _ in range(5):
        submitted(store)
    copied(store)
    sent(store, BROKEN)
    shown = unstuck("deliveries", "show", "5").out
    assert "next try in " in shown
    assert "until then its webhook rests" in shown
    assert unstuck("deliveries", "--json").lines[0]["rest_until_at"] is not None
