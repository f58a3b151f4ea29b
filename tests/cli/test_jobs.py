"""unstuck jobs, without a worker: what is accepted can be seen, stopped and let go on, on both databases."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.app.hand import Hand
from tests.cli.command import APP, Command
from tests.support.troubles import execute
from unstuck.assembly.store import open_store
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import ErrorInfo, Lost, Outcome, Raised, Stopped, Stuck
from unstuck.model.times import Times

KEYS = {
    "id", "workflow", "state", "shown_state", "tenant", "queue", "target", "priority", "key", "run", "attempts",
    "failures", "losses", "created_at", "available_at", "claimed_at", "started_at", "finished_at", "duration_ms",
    "total_ms", "worker", "heartbeat_at", "lease_until", "request", "requested_at", "request_reason", "error_type",
    "error_message", "result", "late", "tags", "limit_key", "on_hold", "is_blocker", "is_blocked", "replay_of",
    "made_by", "trace", "events", "meaning",
}  # fmt: skip


def test_an_enqueued_job_is_listed_and_shown(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "2", "b=3")
    listed = unstuck("jobs", "list", "--json").object
    assert listed.keys() == KEYS
    assert (listed["id"], listed["state"], listed["workflow"]) == (job, "QUEUED", "add")
    assert (listed["worker"], listed["lease_until"]) == (None, None)
    shown = unstuck("jobs", "show", job, "--json").object
    whole = {"args", "kwargs", "policy", "progress", "attempt_list", "history", "waits_for"}
    flow = {"steps", "waits", "usage", "children", "parent", "partials", "blocked_by", "dead_letter", "signed_by"}
    assert shown.keys() == KEYS | whole | flow
    assert [event["kind"] for event in shown["history"]] == ["submitted"]
    assert shown["created_at"].endswith("Z")
    for_people = unstuck("jobs", "show", job)
    assert (for_people.code, for_people.err) == (0, "")
    assert job in for_people.out
    assert "QUEUED" in for_people.out
    assert "submitted" in for_people.out


def test_the_trace_that_a_job_was_submitted_in_is_shown(unstuck: Command, store_url: str) -> None:
    job, other = unstuck.enqueue("add", "1"), unstuck.enqueue("add", "2")
    trace = "0af7651916cd43dd8448eb211c80319c"
    execute(store_url, f"UPDATE unstuck_jobs SET trace = '00-{trace}-b7ad6b7169203331-01' WHERE uid = '{job}'")
    assert f"  trace      {trace}\n" in unstuck("jobs", "show", job).out
    assert "trace" not in unstuck("jobs", "show", other).out
    shown = [unstuck("jobs", "show", each, "--json").object["trace"] for each in (job, other)]
    assert shown == [trace, None]


def test_a_job_is_known_by_enough_of_its_id(unstuck: Command) -> None:
    first, second = unstuck.enqueue("add", "1"), unstuck.enqueue("add", "2")
    shared = next(n for n in range(36) if first[n] != second[n])
    assert unstuck("jobs", "show", first[: shared + 1], "--json").object["id"] == first
    ambiguous = unstuck("jobs", "show", first[:shared])
    assert ambiguous.code == 2
    assert first in ambiguous.err
    assert second in ambiguous.err
    assert "give more of the id" in ambiguous.err


@pytest.mark.parametrize("verb", ["show", "cancel", "wait", "logs", "retry", "resume", "interrupt", "resolve"])
def test_a_job_that_does_not_exist_is_code_3(unstuck: Command, verb: str) -> None:
    answer = unstuck("jobs", verb, "ffffffff", *(["null"] if verb == "resolve" else []))
    assert (answer.code, answer.out) == (3, "")
    assert "there is no job ffffffff" in answer.err
    assert "unstuck jobs list" in answer.err


def test_cancel_ends_a_queued_job_and_a_second_one_is_a_conflict(unstuck: Command) -> None:
    """A16, A18"""
    job = unstuck.enqueue("add", "1")
    answer = unstuck("jobs", "cancel", job, "--reason", "not wanted", "--json")
    assert (answer.code, answer.object["state"]) == (0, "CANCELLED")
    assert answer.object["error_message"].endswith(" (cli): not wanted")
    shown = unstuck("jobs", "show", job).out
    assert shown.splitlines()[1] == f"CANCELLED  {answer.object['error_message'].removeprefix('cancelled ')}"
    assert unstuck("jobs", "history", job).out.splitlines()[-1].endswith(f"Z  {answer.object['error_message']}")
    again = unstuck("jobs", "cancel", job)
    assert again.code == 4
    assert "CANCELLED" in again.err
    assert unstuck("jobs", "wait", job).code == 8


def test_one_refusal_does_not_spare_the_others(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    answer = unstuck("jobs", "cancel", "ffffffff", job, "--json")
    assert answer.code == 3
    assert answer.object["state"] == "CANCELLED"


def test_interrupt_resume_resolve_lead_where_they_say(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    assert unstuck("jobs", "interrupt", job, "--json").object["state"] == "PAUSED"
    resumed = unstuck("jobs", "resume", job, "--json").object
    assert (resumed["state"], resumed["run"]) == ("QUEUED", 2)
    assert unstuck("jobs", "resolve", job, "42").code == 4
    assert unstuck("jobs", "interrupt", job).code == 0
    resolved = unstuck("jobs", "resolve", job, '{"answer": 42}', "--json").object
    assert (resolved["state"], resolved["result"]) == ("COMPLETED", {"answer": 42})
    waited = unstuck("jobs", "wait", job)
    assert (waited.code, waited.word) == (0, '{"answer":42}')


def test_a_result_that_is_no_json_is_refused_before_anything_changes(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    unstuck("jobs", "interrupt", job)
    assert unstuck("jobs", "resolve", job, "{oops").code == 2
    assert unstuck("jobs", "show", job, "--json").object["state"] == "PAUSED"


def test_a_job_that_waits_is_made_due_and_gets_another_priority(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1", "--delay", "1h")
    changed = unstuck("jobs", "reprioritise", "7", job, "--by", "ada", "--json").object
    assert (changed["priority"], changed["shown_state"]) == (7, "SCHEDULED")
    assert unstuck("jobs", "run-now", job, "--json").object["shown_state"] == "QUEUED"
    told = unstuck("jobs", "history", job, "--json").lines
    assert [event["kind"] for event in told] == ["submitted", "reprioritised", "hurried"]
    assert told[1]["data"]["by"] == "ada"
    assert unstuck("jobs", "reprioritise", "high", job).code == 2
    unstuck("jobs", "cancel", job)
    assert unstuck("jobs", "reprioritise", "1", job).code == 4
    assert unstuck("jobs", "run-now", job).code == 4


def test_a_job_gets_the_id_that_was_chosen_for_it(unstuck: Command) -> None:
    ident = "0d1c2a44-8f6e-4b1a-9c55-1f2e3d4c5b6a"
    assert unstuck.enqueue("add", "1", "--id", ident) == ident
    assert unstuck.enqueue("add", "1", "--id", ident) == ident
    other = unstuck("enqueue", "add", "2", "--id", ident, "--app", APP)
    assert (other.code, other.out) == (4, "")
    assert unstuck("enqueue", "add", "1", "--id", "seven", "--app", APP).code == 2


def test_retry_makes_a_scheduled_job_due(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1", "--delay", "2h")
    assert unstuck("jobs", "show", job, "--json").object["shown_state"] == "SCHEDULED"
    assert unstuck("jobs", "retry", job, "--json").object["shown_state"] == "QUEUED"


def test_a_wait_that_runs_out_is_code_7_and_the_job_goes_on(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    answer = unstuck("jobs", "wait", job, "--timeout", "300ms")
    assert (answer.code, answer.out) == (7, "")
    assert "still QUEUED" in answer.err
    assert unstuck("jobs", "wait", job, "--timeout", "0", "--json").object["state"] == "QUEUED"


def test_several_jobs_are_waited_for_within_one_time(unstuck: Command) -> None:
    done, cancelled, waiting = (unstuck.enqueue("add", str(n)) for n in range(3))
    unstuck("jobs", "interrupt", done)
    unstuck("jobs", "resolve", done, "42")
    unstuck("jobs", "cancel", cancelled)
    answer = unstuck("jobs", "wait", done, cancelled)
    assert (answer.code, answer.word) == (8, "42")
    waited = unstuck("jobs", "wait", waiting, done, cancelled, "--timeout", "300ms", "--json")
    assert (waited.code, [job["state"] for job in waited.lines]) == (7, ["QUEUED", "COMPLETED", "CANCELLED"])


def test_who_waits_is_told_what_keeps_the_job_from_running(unstuck: Command) -> None:
    """On stderr: what is waited for is data."""
    answer = unstuck("enqueue", "add", "1", "--app", APP, "--wait", "--timeout", "800ms")
    assert (answer.code, answer.out) == (7, "")
    assert "waits: not runnable: no live worker serves queue default" in answer.err
    assert "unstuck worker" in answer.err


def test_lists_are_filtered_paged_and_say_so(unstuck: Command) -> None:
    jobs = [unstuck.enqueue("add", str(n)) for n in range(3)]
    unstuck("jobs", "cancel", jobs[0])

    def ids(*words: str) -> list[str]:
        return [job["id"] for job in unstuck("jobs", "list", "--json", *words).lines]

    assert ids() == jobs[::-1]
    assert ids("--oldest") == jobs
    assert ids("--state", "cancelled") == [jobs[0]]
    assert ids("--state", "QUEUED", "--state", "CANCELED", "--oldest") == jobs
    assert ids("--workflow", "nobody") == []
    page = unstuck("jobs", "list", "--json", "--limit", "2")
    assert "--after" in page.err
    cursor = page.err.split("--after ")[1].strip()
    assert ids("--limit", "2", "--after", cursor) == [jobs[0]]
    assert unstuck("jobs", "list", "--state", "HAPPY").code == 2


def test_an_empty_list_says_what_to_do_and_prints_no_data(unstuck: Command) -> None:
    answer = unstuck("jobs", "list")
    assert (answer.code, answer.out) == (0, "")
    assert "unstuck enqueue" in answer.err
    assert unstuck("jobs", "list", "--json").out == ""


def test_tenants_do_not_see_each_other(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1", "--tenant", "acme")
    assert unstuck("jobs", "list", "--json").out == ""
    assert unstuck("jobs", "show", job).code == 3
    assert unstuck("jobs", "list", "--json", "--tenant", "acme").object["id"] == job


def test_a_reader_that_goes_away_is_not_an_error(unstuck: Command) -> None:
    for n in range(3):
        unstuck.enqueue("add", str(n))
    lister = subprocess.Popen(
        unstuck.words("jobs", "list", "--json"),
        env=unstuck.environment(),
        cwd=unstuck.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert lister.stdout is not None
    assert lister.stderr is not None
    lister.stdout.close()  # before it has written anything
    assert lister.stderr.read() == b""
    lister.stderr.close()
    assert lister.wait(30) == 0


def test_ctrl_c_ends_a_wait_without_a_traceback(unstuck: Command) -> None:
    waiting = subprocess.Popen(
        unstuck.words("stats", "--watch"),
        env=unstuck.environment(),
        cwd=unstuck.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None
    assert "no jobs" in waiting.stdout.readline()
    waiting.send_signal(signal.SIGINT)
    _, told = waiting.communicate(timeout=30)
    assert (waiting.returncode, told) == (130, "")


def test_a_terminal_without_our_letters_gets_others(unstuck: Command) -> None:
    answer = unstuck("jobs", "show", "ffff", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert answer.code == 3
    assert unstuck("--help", PYTHONIOENCODING="ascii", PYTHONUTF8="0").code == 0


def test_colours_only_where_somebody_sees_them(unstuck: Command) -> None:
    unstuck.enqueue("add", "1")
    escape = "\x1b["
    assert escape not in unstuck("jobs", "list").out
    assert escape in unstuck("jobs", "list", FORCE_COLOR="1").out
    assert escape not in unstuck("jobs", "list", FORCE_COLOR="1", NO_COLOR="1").out
    assert escape not in unstuck("jobs", "list", TERM="dumb").out


def test_a_table_in_a_pipe_is_never_cut(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1", "--key", "k")
    listed = unstuck("jobs", "list", "--wide", COLUMNS="20").out
    assert job in listed
    assert all(line == line.rstrip() for line in listed.splitlines())


def test_stats_count_by_state(unstuck: Command) -> None:
    unstuck.enqueue("add", "1")
    unstuck("jobs", "cancel", unstuck.enqueue("add", "2"))
    stats = unstuck("stats", "--json").object
    assert (stats["states"]["QUEUED"], stats["states"]["CANCELLED"], stats["workers"]["alive"]) == (1, 1, 0)
    assert "QUEUED" in unstuck("stats").out


def test_enqueue_checks_against_the_code_and_says_what_is_wrong(unstuck: Command) -> None:
    wrong = unstuck("enqueue", "add", "two", "--app", APP)
    assert (wrong.code, wrong.out) == (2, "")
    assert "add cannot be called like this" in wrong.err
    assert unstuck("enqueue", "add", "1", "2", "3", "--app", APP).code == 2
    unknown = unstuck("enqueue", "subtract", "--app", APP)
    assert unknown.code == 3
    assert "add" in unknown.err
    assert unstuck("enqueue", "add", "1", "--app", "no.such:app").code == 2
    assert unstuck("jobs", "list", "--json").out == ""


def test_the_same_key_is_the_same_job_and_another_body_a_conflict(unstuck: Command) -> None:
    """A45"""
    first = unstuck.enqueue("add", "1", "--key", "k1")
    repeated = unstuck("enqueue", "add", "1", "--key", "k1", "--app", APP, "--json").object
    assert (repeated["id"], repeated["created"]) == (first, False)
    other = unstuck("enqueue", "add", "2", "--key", "k1", "--app", APP)
    assert other.code == 4
    assert first in other.err


def test_priority_queue_and_delay_are_kept(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1", "--priority", "7", "--queue", "slow", "--delay", "90s")
    kept = unstuck("jobs", "show", job, "--json").object
    assert (kept["priority"], kept["queue"], kept["shown_state"]) == (7, "slow", "SCHEDULED")


def test_a_long_history_shows_its_end_and_says_how_to_see_all(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    for _ in range(2):
        assert unstuck("jobs", "interrupt", job).code == 0
        assert unstuck("jobs", "resume", job).code == 0
    short = unstuck("jobs", "show", job, "--last", "3").out
    assert "History (the last 3 of 5 events; --all shows all)" in short
    assert "resumed" in short
    assert "submitted" not in short
    whole = unstuck("jobs", "show", job, "--last", "3", "--all").out
    assert "submitted" in whole
    assert "--all shows all" not in whole
    assert len(unstuck("jobs", "show", job, "--last", "3", "--json").object["history"]) == 5


@pytest.mark.parametrize(
    "damage", ["created_at = 9000000000000000000", "created_at = -9000000000000000000", "tags = '{'"]
)
@pytest.mark.parametrize("command", [["why"], ["why", "--json"], ["jobs", "show"], ["jobs", "show", "--json"]])
def test_a_job_whose_row_was_damaged_is_explained_and_shown(
    unstuck: Command, store_url: str, damage: str, command: list[str]
) -> None:
    job = unstuck.enqueue("add", "1")
    execute(store_url, f"UPDATE unstuck_jobs SET {damage}")
    answer = unstuck(*command, job)
    assert answer.code == 0, answer.err


def test_a_job_whose_arguments_were_damaged_is_shown_as_it_is(unstuck: Command, store_url: str) -> None:
    job = unstuck.enqueue("add", "1")
    execute(store_url, "UPDATE unstuck_jobs SET payload = '{not JSON'")
    shown = unstuck("jobs", "show", job)
    assert (shown.code, '"{not JSON"' in shown.out) == (0, True), shown.err
    assert unstuck("jobs", "show", job, "--json").code == 0


def test_a_job_of_a_paused_queue_is_not_called_ready(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    unstuck("queues", "pause", "default")
    shown = unstuck("jobs", "show", job).out
    assert "ready since" not in shown
    assert unstuck("why", job, "--json").object["verdict"] in shown


def test_the_history_of_a_job_that_fell_with_another_names_the_culprit(unstuck: Command, store_url: str) -> None:
    """A29: however long the sentence is in which it stands."""
    job = unstuck.enqueue("add", "1")
    store = open_store(store_url, Times())
    hand, culprit = Hand(store), "regex 01a1e90f-6f0a-7111-a8a5-9fe10e24c362"
    killed = "its process 11907 was killed: a job in it ignored its request to stop"
    error = ErrorInfo("ProcessDied", f"{killed}; the culprit was another job in it: {culprit}")
    hand.settle(hand.claim()[0], Lost(error, "neighbour"))
    store.close()
    assert culprit in unstuck("jobs", "history", job).out


@pytest.mark.parametrize(
    "end",
    [
        Stuck(ErrorInfo("ExecutionStuck", "it did not respond"), is_gone=True),
        Stopped(RequestKind.TIMEOUT),
        Raised(ErrorInfo("ValueError", "no"), retry=False),
    ],
    ids=["stuck", "timeout", "failed"],
)
def test_show_and_why_offer_the_same_way_on(unstuck: Command, store_url: str, end: Outcome) -> None:
    job = unstuck.enqueue("refuse", "no")
    store = open_store(store_url, Times())
    hand = Hand(store)
    hand.settle(hand.claim()[0], end)
    store.close()

    (reason,) = unstuck("why", job, "--json").object["reasons"]
    assert reason["remedy"] == f"unstuck jobs resume {job}"
    assert f"another try: {reason['remedy']}" in unstuck("jobs", "show", job).out


def test_a_skipped_job_says_so_first(unstuck: Command, store_url: str) -> None:
    """It failed, and its target has gone on without it: that is not news any more."""
    job = unstuck.enqueue("refuse", "no", "--target", "t")
    store = open_store(store_url, Times())
    store.ingest()
    hand = Hand(store)
    hand.settle(hand.claim()[0], Raised(ErrorInfo("ValueError", "no")))
    assert "blocks target t" in unstuck("jobs", "show", job).out
    assert unstuck("jobs", "skip", job).code == 0
    store.close()
    shown = unstuck("jobs", "show", job).out.splitlines()[1]
    assert shown == f"FAILED  skipped: its target t went on without it; another try: unstuck jobs resume {job}"
