"""unstuck targets, queues, tenants, workflows, limits, pauses and the order of jobs, on both databases."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from tests.app.hand import Hand
from tests.cli.command import Answer, Command
from tests.model.test_why import EXAMPLES, a_record
from tests.support.commands import understand
from unstuck.cli import gates
from unstuck.cli.stage.screen import draw
from unstuck.cli.stage.snapshot import Blocked, DemoSnapshot
from unstuck.model.errors import InvalidInput
from unstuck.model.settlement import ErrorInfo, Raised
from unstuck.model.why import explain
from unstuck.store.port import Store, TargetRecord

DEPOT = "tests.cli.depot:app"


def ask(unstuck: Command, *words: str) -> Answer:
    """A command that must succeed."""
    answer = unstuck(*words)
    assert answer.code == 0, answer.err
    return answer


def enqueue(unstuck: Command, *words: str) -> str:
    return ask(unstuck, "enqueue", *words, "--app", DEPOT).word


def ingest(store: Store) -> None:
    while store.ingest().entries:
        pass


@pytest.fixture
def blocked(unstuck: Command, store: Store) -> tuple[str, str, str]:
    """A delivery that failed, and two that wait behind it, the urgent one first."""
    failed = enqueue(unstuck, "deliver", "ada", "at_home=false")
    ingest(store)
    Hand(store).run_one(Raised(ErrorInfo("ValueError", "ada is not at home")))
    late = enqueue(unstuck, "deliver", "ada", "piano")
    urgent = enqueue(unstuck, "deliver", "ada", "kettle", "--priority", "5")
    ingest(store)
    return failed, urgent, late


def test_the_list_of_what_blocks_names_the_job_and_a_skip_lets_the_target_move(
    unstuck: Command, store: Store, blocked: tuple[str, str, str]
) -> None:
    """A39"""
    failed, urgent, late = blocked
    enqueue(unstuck, "deliver", "grace")
    ingest(store)
    [found] = ask(unstuck, "targets", "--blocked", "--json").lines
    assert (found["name"], found["blocked_by"], found["waiting"]) == ("ada", failed, 2)
    assert [t["name"] for t in ask(unstuck, "targets", "--json").lines] == ["ada", "grace"]
    table = ask(unstuck, "targets", "--blocked").out
    assert "BLOCKED" in table
    assert failed in table

    shown = ask(unstuck, "targets", "show", "ada", "--json").object
    assert shown["turn"]["id"] == failed
    assert [job["id"] for job in shown["line"]] == [urgent, late]
    told = ask(unstuck, "targets", "show", "ada").out
    assert "ada is not at home" in told
    for verb in ("resume", "resolve", "skip"):
        assert f"unstuck jobs {verb} {failed}" in told

    skipped = ask(unstuck, "jobs", "skip", failed[:20], "--json").object
    assert (skipped["state"], skipped["is_blocker"]) == ("FAILED", False)
    assert {job.id for job in Hand(store).claim()} & {urgent, late} == {urgent}
    assert ask(unstuck, "targets", "--blocked", "--json").lines == []
    again = unstuck("jobs", "skip", failed)
    assert (again.code, again.out) == (4, "")
    assert "unstuck targets --blocked" in again.err


def test_a_job_shows_its_target_its_blocker_its_tags_and_its_key(
    unstuck: Command, store: Store, blocked: tuple[str, str, str]
) -> None:
    failed, _, late = blocked
    told = ask(unstuck, "jobs", "show", late).out
    assert "BLOCKED" in told
    assert f"ada, blocked by job {failed}" in told
    assert "which it blocks" in ask(unstuck, "jobs", "show", failed).out
    tagged = enqueue(unstuck, "fetch", "example.org", "--tag", "red", "--tag", "blue")
    told = ask(unstuck, "jobs", "show", tagged).out
    assert "red, blue" in told
    assert "host:example.org" in told
    health = unstuck("health", "--no-workers")
    assert f"1 blocked, the first 0s ago by {failed}".split(" 0s")[0] in health.out
    assert failed in health.out


def test_a_job_waits_for_others_until_it_is_released(unstuck: Command, store: Store) -> None:
    first = enqueue(unstuck, "fetch", "a", "--hold")
    second = enqueue(unstuck, "fetch", "b", "--after", first[:18], "--target", "shelf", "--limit-key", "own")
    shown = ask(unstuck, "jobs", "show", second, "--json").object
    assert shown["waits_for"] == [{"job": first, "state": "PENDING"}]
    assert (shown["target"], shown["limit_key"], shown["on_hold"]) == ("shelf", "own", False)
    assert f"{first} (PENDING)" in ask(unstuck, "jobs", "show", second).out
    assert f"unstuck jobs release {first}" in ask(unstuck, "jobs", "show", first).out
    assert ask(unstuck, "jobs", "release", first, "--json").object["state"] == "QUEUED"
    assert ask(unstuck, "jobs", "release", second, "--force", "--json").object["state"] == "QUEUED"
    assert unstuck("enqueue", "fetch", "c", "--after", "0123", "--app", DEPOT).code == 3
    assert unstuck("enqueue", "fetch", "c", "--after", first, "--after-failure", "cry", "--app", DEPOT).code == 2


@pytest.mark.parametrize(
    ("noun", "name"), [("queues", "io"), ("workflows", "fetch"), ("tenants", "default"), ("targets", "shelf")]
)
def test_a_pause_shuts_says_so_everywhere_and_is_lifted(unstuck: Command, store: Store, noun: str, name: str) -> None:
    """A41"""
    job = enqueue(unstuck, "fetch", "a", "--target", "shelf")
    ingest(store)
    kind = noun.removesuffix("s")
    set_ = ask(unstuck, noun, "pause", name, "--for", "30m", "--reason", "vendor outage", "--json").object
    assert (set_["kind"], set_["name"], set_["reason"]) == (kind, name, "vendor outage")
    assert set_["by"].endswith("(cli)")
    lasts = datetime.fromisoformat(set_["until_at"]) - datetime.fromisoformat(set_["since_at"])
    assert abs(lasts - timedelta(minutes=30)) < timedelta(seconds=5)
    assert ask(unstuck, "pauses", "--json").lines == [set_]
    reason = ask(unstuck, "why", job, "--json").object["reasons"][0]
    assert (reason["code"], reason["remedy"]) == (f"{kind}_paused", f"unstuck {noun} unpause {name}")
    assert Hand(store).claim() == []

    lifted = ask(unstuck, *shlex.split(reason["remedy"])[1:])
    assert lifted.word == f"{kind} {name} goes on"
    assert "was not paused" in ask(unstuck, noun, "unpause", name).err
    assert [claimed.id for claimed in Hand(store).claim()] == [job]


def test_what_cannot_be_paused_is_refused_with_a_sentence(unstuck: Command) -> None:
    for words, code, said in [
        (["targets", "pause", "nobody"], 3, "there is no target nobody"),
        (["targets", "unpause", "nobody"], 3, "there is no target nobody"),
        (["targets", "show", "nobody"], 3, "there is no target nobody"),
        (["tenants", "pause", "nobody"], 3, "there is no tenant nobody"),
        (["tenants", "show", "nobody"], 3, "there is no tenant nobody"),
        (["queues", "pause", "io", "--until", "2020-01-01T00:00:00Z"], 2, "would have ended already"),
        (["queues", "pause", "io", "--for", "1m", "--until", "in 2m"], 2, "exclude each other"),
        (["queues", "limit", "io"], 2, "say --concurrency"),
        (["queues", "limit", "io", "--none", "--rate", "1/s"], 2, "say --concurrency"),
        (["queues", "limit", "io", "--concurrency", "-1"], 2, "is not a whole number between"),
        (["limits", "key", "a", "--rate", "often"], 2, "rate 'often'"),
        (["tenants", "weight", "acme", "much"], 2, "is not a whole number"),
        (["queues", "puase", "io"], 2, "did you mean `unstuck queues pause`"),
    ]:
        answer = unstuck(*words)
        assert (answer.code, answer.out) == (code, ""), words
        assert said in answer.err, words
    assert ask(unstuck, "pauses", "--all-tenants", "--json").lines == []
    assert ask(unstuck, "limits", "--all-tenants", "--json").lines == []


def test_a_pause_for_every_tenant_is_not_lifted_by_one_of_them(unstuck: Command) -> None:
    ask(unstuck, "queues", "pause", "io", "--all-tenants")
    ask(unstuck, "queues", "pause", "io")
    half = ask(unstuck, "queues", "unpause", "io")
    assert "--all-tenants" in half.err
    assert "goes on" not in half.out
    assert ask(unstuck, "queues", "unpause", "io", "--all-tenants").word == "queue io goes on"


def test_a_name_that_nobody_used_is_taken_with_a_remark(unstuck: Command) -> None:
    enqueue(unstuck, "fetch", "a")
    assert "nobody has used queue oi so far; known: io" in ask(unstuck, "queues", "pause", "oi").err
    assert "nobody has used" not in ask(unstuck, "queues", "pause", "io").err


def test_limits_are_set_kept_listed_and_lifted(unstuck: Command) -> None:
    ask(unstuck, "queues", "limit", "io", "--concurrency", "5")
    both = ask(unstuck, "queues", "limit", "io", "--rate", "100/m", "--json").object["limit"]
    assert (both["concurrency"], both["rate"], both["per"]) == (5, 100, 60.0)
    ask(unstuck, "tenants", "limit", "*", "--max-queued", "1000")
    ask(unstuck, "workflows", "limit", "fetch", "--concurrency", "3", "--all-tenants")
    ask(unstuck, "limits", "key", "host:*", "--concurrency", "1")
    told = ask(unstuck, "limits").out
    for sentence in (
        "5 at once, 100 starts per minute",
        "at most 1,000 waiting (each tenant by itself)",
        "3 at once (all tenants together)",
        "1 at once (each key by itself)",
    ):
        assert sentence in told
    assert len(ask(unstuck, "limits", "--json").lines) == 4
    ask(unstuck, "queues", "limit", "io", "--concurrency", "none")
    [queue] = [x for x in ask(unstuck, "limits", "--json").lines if x["kind"] == "queue"]
    assert (queue["concurrency"], queue["rate"]) == (None, 100)
    assert "no limit any more" in ask(unstuck, "queues", "limit", "io", "--none").out
    assert "had no limit" in ask(unstuck, "queues", "limit", "io", "--none").err


def test_a_full_queue_refuses_with_a_sentence_and_stores_nothing(unstuck: Command) -> None:
    """A46, at the command line."""
    ask(unstuck, "tenants", "limit", "default", "--max-queued", "1")
    enqueue(unstuck, "fetch", "a")
    refused = unstuck("enqueue", "fetch", "b", "--app", DEPOT)
    assert (refused.code, refused.out) == (4, "")
    assert "nothing was stored" in refused.err
    assert len(ask(unstuck, "jobs", "list", "--json").lines) == 1


def test_queues_say_what_waits_who_serves_and_what_shuts_them(unstuck: Command, store: Store) -> None:
    enqueue(unstuck, "fetch", "a")
    enqueue(unstuck, "fetch", "b", "--delay", "1h")
    Hand(store, "w1")
    ask(unstuck, "queues", "pause", "io")
    ask(unstuck, "queues", "limit", "io", "--concurrency", "5")
    default, io_ = ask(unstuck, "queues", "--json").lines
    assert (default["name"], default["waiting"], default["workers"]) == ("default", 0, ["w1"])
    assert (io_["name"], io_["waiting"], io_["scheduled"], io_["running"], io_["workers"]) == ("io", 1, 1, 0, [])
    assert (len(io_["pauses"]), io_["limits"][0]["concurrency"]) == (1, 5)
    row = ask(unstuck, "queues").out.splitlines()[2].split()
    assert row[:6] == ["io", "PAUSED", "1", "0", "1", "0"]
    first = unstuck("queues", "--limit", "1", "--json")
    assert [queue["name"] for queue in first.lines] == ["default"]
    assert "--after default" in first.err


def test_tenants_have_weights_and_see_only_their_own(unstuck: Command, store: Store) -> None:
    """A55: nothing of one tenant is visible to another."""
    enqueue(unstuck, "deliver", "ada")
    enqueue(unstuck, "deliver", "zoe", "--tenant", "acme")
    ingest(store)
    assert ask(unstuck, "tenants", "weight", "acme", "3").word == "tenant acme has weight 3"
    acme, default = ask(unstuck, "tenants", "--json").lines
    assert (acme["name"], acme["weight"], acme["states"]["QUEUED"]) == ("acme", 3, 1)
    assert (default["name"], default["weight"]) == ("default", 1)
    assert "weight 3" in ask(unstuck, "tenants", "show", "acme").out
    assert [t["name"] for t in ask(unstuck, "targets", "--json", "--tenant", "acme").lines] == ["zoe"]
    assert [t["name"] for t in unstuck("targets", "--json", UNSTUCK_TENANT="acme").lines] == ["zoe"]
    assert unstuck("targets", "show", "ada", "--tenant", "acme").code == 3
    assert unstuck("targets", "pause", "ada", "--tenant", "acme").code == 3
    ask(unstuck, "queues", "pause", "default", "--tenant", "acme")
    assert ask(unstuck, "pauses", "--json").lines == []
    assert "1 more touch other tenants only" in ask(unstuck, "pauses").err


def test_names_of_targets_queues_and_tenants_are_completed(unstuck: Command) -> None:
    enqueue(unstuck, "fetch", "a", "--target", "shelf-1")
    enqueue(unstuck, "fetch", "a", "--target", "shelf-10", "--tenant", "acme")
    assert unstuck("__complete", "targets", "show", "she").word == "shelf-1"
    assert unstuck("__complete", "targets", "pause", "shelf-1").word == "shelf-1"
    assert unstuck("__complete", "queues", "pause", "i").word == "io"
    assert unstuck("__complete", "tenants", "show", "ac").word == "acme"
    assert unstuck("__complete", "jobs", "list", "--tenant", "ac").word == "acme"
    assert unstuck("__complete", "targets", "--bl").word == "--blocked"
    assert unstuck("__complete", "limits", "k").word == "key"


@pytest.mark.parametrize("code", EXAMPLES)
def test_every_remedy_of_why_is_a_command_that_exists(code: str) -> None:
    for tenant in ("default", "acme"):
        facts = replace(EXAMPLES[code], job=replace(EXAMPLES[code].job, tenant=tenant))  # type: ignore[index]
        for reason in explain(facts, facts.at).reasons:
            for remedy in (reason.remedy, *reason.details.get("other_remedies", ())):
                if remedy:
                    understand(remedy)


@pytest.mark.parametrize("text", ["soon", "2030-01-01", "2030-01-01T10:00", "in", "in soon", ""])
def test_an_end_that_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        gates.end_of(text)


def test_an_end_is_an_instant_or_a_time_from_now() -> None:
    assert gates.end_of("in 2h") == (7200.0, None)
    assert gates.end_of("2030-01-31T18:00:00Z") == (None, datetime(2030, 1, 31, 18, tzinfo=UTC))


def test_the_demo_shows_a_blocked_target_and_what_to_ask_in_the_smallest_usual_terminal() -> None:
    now = datetime.now(UTC)
    target = TargetRecord(1, "default", "Ada", blocked_by="x", blocked_at=now - timedelta(seconds=7), waiting=2)
    ids = "01a1e1b5-2716-70f8-baf2-9ca615e9c9c9"
    blocker, behind = a_record(error_message="Ada is not at home"), a_record(id=ids)
    snapshot = DemoSnapshot(now, {}, (), (), (), (Blocked(target, blocker, behind),))
    paper = io.StringIO()
    screen = Console(width=80, height=24, file=paper, color_system=None)
    screen.print(draw(snapshot, [], title="t", time="0:01", hints=["a", "b"], size=(80, 24)))
    assert f"BLOCKED  Ada is not at home 7 s, 2 wait: unstuck why {ids[:18]}" in paper.getvalue()
