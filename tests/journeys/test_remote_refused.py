"""A worker at a distance whose every other question is refused, each time for another reason: it goes on, and none of
its jobs knows of it."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest

from tests.journeys.conftest import Jobs
from tests.journeys.flow_app import app
from tests.server.test_remote_refusals import AWAY, NOT_NOW
from tests.support.far_workers import NOWHERE, far_server, worker_key
from tests.support.refusing_link import LinkAnswer, RefusingLink
from tests.support.workers import workers
from unstuck.model.errors import StoreBusy
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

#: Said of a key that does not work: these end a worker.
FOR_GOOD = ("Unauthenticated", "NotPermitted", "TooManyAttempts")
ANSWERS = {
    **NOT_NOW,
    "a day": NOT_NOW["Overloaded"]._replace(retry_after="86400"),
    **AWAY,
    "StoreBusy": LinkAnswer.of(StoreBusy("come again")),
}
PASSING = [answer for name, answer in ANSWERS.items() if name not in FOR_GOOD]
#: What a worker with such jobs asks for.
ASKED = {
    "", "register", "workflows", "declare", "take", "acknowledge", "settle", "renew", "reconcile", "control", "ask",
    "keep_output", "journal", "record_steps", "spend", "keep_part", "publish_from", "spawn", "gather",
    "unregister_worker",
}  # fmt: skip


class EveryOther:
    """Refuses the first question of each verb, the third, and so on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()

    def answer(self, verb: str) -> LinkAnswer | None:
        with self._lock:
            turn, is_even = divmod(self._asked[verb], 2)
            self._asked[verb] += 1
        return None if is_even else PASSING[(crc32(verb.encode()) + turn) % len(PASSING)]

    @property
    def verbs(self) -> set[str]:
        return set(self._asked)


@pytest.mark.tier("slow", on_postgres="torture")
def test_a_worker_whose_every_other_question_is_refused_goes_on(store_url: str, db: Store, tmp_path: Path) -> None:
    jobs, every_other = Jobs(db, app), EveryOther()
    with (
        far_server(store_url, tmp_path) as server,
        RefusingLink(server.url, every_other.answer) as link,
        workers(NOWHERE, tmp_path, UNSTUCK_DATABASE="") as start,
    ):
        worker = start("far", server=link.url, key=worker_key(db), app="tests.journeys.flow_app:app")
        ids = jobs.enqueue_many("everything", 7, times=4)
        late = jobs.enqueue("over_its_time")
        for job in ids:
            record = jobs.until(job, JobState.COMPLETED, within=90)
            assert (record.result, record.failures, record.losses) == ("[70]", 0, 0), jobs.kinds(job)
            assert len(db.children_of("default", job)) == 1
        jobs.until(late, JobState.TIMEOUT, within=30)
        worker.terminate()
        assert worker.wait() == 0
        log = worker.log.read_text()
    assert "Traceback" not in log
    assert every_other.verbs >= ASKED, ASKED - every_other.verbs
