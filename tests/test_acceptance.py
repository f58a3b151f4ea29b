"""The acceptances: what must be observable, and that each that is built is shown by a test that names it.

`pytest -s tests/test_acceptance.py` prints which is shown by which test, in which tier.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.acceptances import SHOWN, named_in_text
from tests.tiers import TIERS

ROOT = Path(__file__).parents[1]

BUILT = {
    1: "one job, one attempt, however many claim",
    2: "a RUNNING job shows its worker, token, beat and lease; no other does",
    3: "a job four leases long on a healthy worker is never recovered",
    4: "jobs of a killed worker are QUEUED again in time",
    5: "lost too often: WorkerLost; losses and failures have separate budgets",
    6: "on_lost: fail, pause",
    7: "a worker stopped past its lease changes nothing",
    8: "settlement and recovery at once: one outcome",
    9: "a handler may block its thread, its loop, its interpreter: beats go on",
    10: "outages, short and long; a wall clock that is wrong",
    11: "expired leases are recovered before the first claim",
    12: "a dead executor's job leaves RUNNING at once",
    13: "RUNNING if and only if one attempt is open; histories fold to rows",
    14: "retries: their number, growing gaps, the handler's own error",
    15: "what is never retried",
    16: "cancel of what does not run, in the same transaction",
    17: "cancel of what runs, within two seconds",
    18: "cancel of what has ended: a conflict",
    19: "interrupt: PAUSED, resumable",
    20: "over its budget: BudgetExceeded",
    21: "cancel racing a claim",
    22: "cancelled, then lost, failed, parked or drained: CANCELLED",
    23: "the timeout's clock; TIMEOUT inside the grace",
    24: "who finishes inside the grace is not stuck",
    25: "ExecutionStuck in time, with the stack",
    26: "a stuck thread that finishes later changes nothing",
    27: "a stuck job's process drains, its replacement comes within two seconds",
    28: "a draining process finishes its healthy job",
    29: "neighbours of a culprit pay nothing",
    30: "the next body on a target waits until the stuck process is gone",
    31: "recycling: results first",
    32: "executors do not outlive their supervisor",
    33: "the fifth stuck makes one entry and one notification",
    34: "the window of the breaker; five at once make one entry",
    35: "what a blacklisted workflow is refused",
    36: "lifting an entry",
    37: "threshold and window at run time; other tenants unharmed",
    38: "one at a time on a target, by age within priority",
    39: "what blocks a target",
    40: "resume and resolve of a blocker",
    41: "a paused target",
    42: "altered, unsigned, expired, foreign or revoked: no line of a handler, DEAD with a letter",
    43: "dead letters: signed anew, kept for a day",
    44: "two keys in overlap both verify; a signature required without a key: refuses to start",
    45: "idempotency keys",
    46: "a tenant at its cap",
    47: "orphans",
    48: "every wait has an end",
    49: "an event before its wait counts once, and never for the next run",
    50: "waits survive restarts; a hundred of them stop nobody",
    51: "the feed: nothing missing, nothing twice, in order; SSE, long poll",
    52: "who sees the final event reads the final state",
    53: "TERM: the running job completes",
    54: "the drain limit",
    55: "a small tenant beside a big one; nothing of one visible to the other",
    56: "a silent worker is offline, a job that waits long is reported with its reason, the named metrics are right",
    57: "why says runnable exactly when a claim would return it",
    58: "chaos: every job ends (ten minutes of it by hand, half a minute in test-all)",
    59: "rolling deploys",
    60: "concurrency limits over many workers",
}
#: What people and programs without the database's password must see too: by a test of tests/journeys/http.
OVER_HTTP = {2, 16, 18, 19, 31, 33, 34, 35, 36, 37, 40, 41, 45, 46, 55, 57}
#: What holds for workers that have a server's address and no database: on both databases by hand, on one in the slow
#: tier.
AT_A_DISTANCE = {*range(1, 33), 48, 49, 50, 53, 54}
LATER: dict[int, str] = {}


def test_each_acceptance_that_is_built_is_shown_on_both_databases_and_no_other(
    request: pytest.FixtureRequest,
) -> None:
    shown = request.config.stash.get(SHOWN, None)
    if shown is None:  # this run knows a part of the tests only
        words = ["-qs", "-p", "no:cacheprovider", "-k", request.node.name, "-m", ""]
        assert subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False).returncode == 0
        return
    for number, what in BUILT.items():
        print(f"\nA{number} {what}" + (" (also over HTTP)" if shown[number].over_http else ""))
        for name, tiers in sorted(shown[number].by.items()):
            print(f"    {', '.join(tier for tier in TIERS if tier in tiers):23} {name}")
    nowhere = [number for number in BUILT if not shown[number].by]
    assert nowhere == [], "built, and named by no test"
    one_sided = {number: shown[number].databases for number in BUILT if len(shown[number].databases) < 2}
    assert one_sided == {}, "shown on one database only"
    only_inside = {n: shown[n].over_http for n in sorted(OVER_HTTP) if len(shown[n].over_http) < 2}
    assert only_inside == {}, "not shown over HTTP on both databases"
    far = {number: shown[number].at_a_distance for number in sorted(AT_A_DISTANCE)}
    assert {n: found for n, found in far.items() if len(found) < 2} == {}, "no remote worker on both databases"
    rare = {n: found for n, found in far.items() if not {"commit", "slow"} & set().union(*found.values())}
    assert rare == {}, "with remote workers by hand only"
    assert [number for number in LATER if shown[number].by] == [], "shown: it belongs to what is built"


def test_no_test_names_an_acceptance_that_does_not_exist() -> None:
    assert sorted(BUILT | LATER) == list(range(1, 61))
    texts = {path: named_in_text(path.read_text()) for path in (ROOT / "tests").rglob("*.py")}
    unknown = {str(path): found - set(BUILT | LATER) for path, found in texts.items()}
    assert {path: found for path, found in unknown.items() if found} == {}
