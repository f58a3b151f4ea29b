"""unstuck alerts: what is wrong now, for people and for programs."""

from __future__ import annotations

from tests.cli.command import Command
from unstuck.model.alerts import RULES, finding
from unstuck.store.sql_store import SqlStore


def opened(store: SqlStore) -> None:
    store.see_alerts(
        "job_queued",
        [finding("job_queued", ("acme", "q", "w"), "j1", "job j1 waits: \x1b[31mpaused", "/jobs/j1", tenant="acme")],
    )
    store.see_alerts("worker_silent", [finding("worker_silent", ("w1",), "w1", "worker w1 is gone", "/workers/w1")])


def test_alerts_are_listed_shown_noted_and_muted(unstuck: Command, store: SqlStore) -> None:
    assert "nothing is wrong" in unstuck("alerts").err
    opened(store)

    listed = unstuck("alerts")
    assert listed.code == 0
    assert "worker w1 is gone" in listed.out
    assert "\x1b" not in listed.out
    assert [line["rule"] for line in unstuck("alerts", "--json").lines] == ["worker_silent", "job_queued"]
    assert [line["rule"] for line in unstuck("alerts", "--rule", "job_queued", "--json").lines] == ["job_queued"]
    assert [line["tenant"] for line in unstuck("alerts", "--tenant", "acme", "--json").lines] == ["acme"]
    assert "A worker fell silent" in unstuck("alerts", "show", "2").out

    assert "was noted by kim" in unstuck("alerts", "ack", "2", "--by", "kim").out
    assert "is muted until" in unstuck("alerts", "mute", "1", "--for", "8h").out
    states = {line["number"]: line for line in unstuck("alerts", "--json").lines}
    assert states[2]["acked_by"] == "kim"
    assert states[1]["muted_until"] is not None
    assert "is no longer muted" in unstuck("alerts", "unmute", "1").out
    assert [line["verb"] for line in unstuck("audit", "--verb", "alerts", "--json").lines] == [
        "alerts.unmute", "alerts.mute", "alerts.ack",
    ]  # fmt: skip


def test_what_is_none_is_told(unstuck: Command, store: SqlStore) -> None:
    assert unstuck("alerts", "show", "7").code == 3
    assert "there is no alert 7" in unstuck("alerts", "ack", "7").err
    assert unstuck("alerts", "ack", "seven").code == 2
    assert "is none of job_queued" in unstuck("alerts", "--rule", "nothing").err
    opened(store)
    for long in ("0", "31d", "soon"):
        assert unstuck("alerts", "mute", "1", "--for", long).code == 2
    refused = unstuck("settings", "set", "alert_queued_after", "-5")
    assert refused.code == 2
    assert "or off (0)" in refused.err


def test_the_rules_say_their_numbers_and_which_of_them_fail(unstuck: Command, store: SqlStore) -> None:
    unstuck("settings", "set", "alert_recoveries", "off")
    store.add_alert_rules()
    turn = store.take_alert_turn("job_queued", "w1", 1.0)
    assert turn is not None
    assert store.end_alert_turn(turn, "", "RuntimeError: no such table")

    rules = {line["rule"]: line for line in unstuck("alerts", "rules", "--json").lines}
    assert list(rules) == list(RULES)
    assert (rules["recoveries"]["value"], rules["job_paused"]["value"]) == (0, 86400)
    assert rules["job_queued"]["error"] == "RuntimeError: no such table"
    told = unstuck("alerts", "rules").out
    assert "off" in told
    assert "no such table" in told
