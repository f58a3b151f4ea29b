"""The door of flow: events, decisions and replays are checked; a refusal leaves nothing half-written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import TENANT, boom, chance, claim_all, everything, kinds, record, submitted
from tests.support.parking import Stage
from unstuck.intake.flow import LONGEST_COMMENT, FlowVerbs
from unstuck.model.errors import (
    IllegalMove,
    InvalidInput,
    NotAsked,
    NotStorable,
    NotWaiting,
    OutcomeUnknown,
    UnknownJob,
    WorkflowBlacklisted,
)
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import Answer, Signalled, Wait, WaitKind
from unstuck.store.sql_store import SqlStore

NOBODY = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def flow(store: SqlStore) -> FlowVerbs:
    return FlowVerbs(store, by="shop")


@pytest.fixture
def stage(store: SqlStore) -> Stage:
    return Stage(store)


def is_answered(store: SqlStore, job: str) -> bool:
    return all(wait.answer is not None for wait in store.waits_of(TENANT, job))


# --- events -------------------------------------------------------------------------------------------------------


def test_an_event_answers_the_wait_that_is_open(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    job = stage.awaits("paid")
    sent = flow.signal("paid", {"amount": 12}, job=job, by="till")
    assert sent.job == job
    [wait] = store.waits_of(TENANT, job)
    assert (wait.answer, wait.payload, wait.by) == (Answer.EVENT, '{"amount":12}', "till")
    store.ingest()
    assert record(store, job).state is JobState.QUEUED
    [line] = store.audit(verb="events")
    assert (line.by, line.subject) == ("till", job)


def test_an_event_for_another_name_is_kept_and_wakes_nobody(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    """A49"""
    job = stage.awaits("paid")
    assert flow.signal("shipped", job=job).job is None
    assert not is_answered(store, job)


def test_an_event_for_an_unknown_or_ended_job_is_refused(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    """Issue 5: bad input"""
    with pytest.raises(UnknownJob):
        flow.signal("paid", job=NOBODY)
    ended = stage.end(stage.begun())
    with pytest.raises(NotWaiting, match=ended):
        flow.signal("paid", job=ended)
    elsewhere = submitted(store, tenant="acme").id
    with pytest.raises(UnknownJob):
        flow.signal("paid", job=elsewhere)
    assert store.audit(verb="events") == []


@pytest.mark.parametrize("event", ["", " ", " paid", "*", None, 7, "x" * 201, "a\x00b", "a\nb", "\ud800"])
def test_an_event_without_a_proper_name_is_refused(
    store: SqlStore, flow: FlowVerbs, stage: Stage, event: Any
) -> None:
    job = stage.awaits("paid")
    for where in ({"job": job}, {"topic": "orders"}):
        with pytest.raises(InvalidInput):
            flow.signal(event, **where)
    with pytest.raises(InvalidInput):
        flow.signal("paid", topic=event if event is not None else "")
    assert not is_answered(store, job)


@pytest.mark.parametrize(
    "payload", [float("nan"), {"a": float("inf")}, {"\x00": 1}, "\ud800", object(), lambda: 1, "x" * (1 << 20)]
)
def test_a_payload_that_cannot_be_stored_is_refused_by_the_events_name(
    store: SqlStore, flow: FlowVerbs, stage: Stage, payload: Any
) -> None:
    job = stage.awaits("paid")
    with pytest.raises(NotStorable, match="the payload of event paid cannot be stored"):
        flow.signal("paid", payload, job=job)
    assert not is_answered(store, job)


def test_an_event_has_one_address(flow: FlowVerbs) -> None:
    for where in ({}, {"job": NOBODY, "topic": "orders"}):
        with pytest.raises(InvalidInput, match="to a job or to a topic"):
            flow.signal("paid", **where)


@pytest.mark.parametrize("by", ["", "  ", 7, "x" * 201, "a\x00b", "\ud800"])
def test_whoever_acts_has_a_name(store: SqlStore, flow: FlowVerbs, stage: Stage, by: Any) -> None:
    """Issue 5: by="" is no name"""
    job, ended = stage.asks(), stage.end(stage.begun())
    for verb in (
        lambda: flow.signal("paid", job=job, by=by),
        lambda: flow.approve(job, by=by),
        lambda: flow.reject(job, by=by),
        lambda: flow.replay(ended, by=by),
    ):
        with pytest.raises(InvalidInput):
            verb()
    assert not is_answered(store, job)
    assert store.audit() == []


# --- decisions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verb", "answer"), [("approve", Answer.APPROVED), ("reject", Answer.REJECTED)])
def test_a_decision_is_kept_with_who_when_and_why(
    store: SqlStore, flow: FlowVerbs, stage: Stage, verb: str, answer: Answer
) -> None:
    job = stage.asks("Deploy?", who=("kim",))
    decided = getattr(flow, verb)(job, by="kim", comment="as agreed")
    assert (decided.answer, decided.by, decided.comment) == (answer, "kim", "as agreed")
    assert decided.answered_at is not None
    [wait] = store.waits_of(TENANT, job)
    assert (wait.answer, wait.by, wait.comment) == (answer, "kim", "as agreed")
    store.ingest()
    assert kinds(store, job)[-1] == "woken"
    told = store.history(TENANT, job)[-1].data
    assert (told["answer"], told["by"], told["comment"]) == (answer, "kim", "as agreed")
    [line] = store.audit(verb="approvals")
    assert (line.by, line.subject) == ("kim", job)


def test_a_decision_that_is_not_asked_for_is_refused_in_words(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    """Issue 5: a decision on a closed approval"""
    job = stage.asks()
    flow.approve(job, by="kim")
    with pytest.raises(NotWaiting, match="kim"):
        flow.reject(job, by="lee")
    [wait] = store.waits_of(TENANT, job)
    assert (wait.answer, wait.by) == (Answer.APPROVED, "kim")
    queued, ended, elsewhere = submitted(store).id, stage.end(stage.begun()), stage.awaits("paid")
    for other in (queued, ended, elsewhere):
        with pytest.raises(NotWaiting, match=other):
            flow.approve(other)
    for unknown in (NOBODY, submitted(store, tenant="acme").id):
        with pytest.raises(UnknownJob):
            flow.approve(unknown)


def test_a_decision_can_name_the_question_it_is_about(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    """A command that was pasted too late must not decide the next question."""
    job = stage.asks(key="approval#2")
    with pytest.raises(NotWaiting):
        flow.approve(job, key="approval#1")
    assert not is_answered(store, job)
    assert flow.approve(job, key="approval#2").answer is Answer.APPROVED


@pytest.mark.parametrize(
    ("comment", "key"), [(7, None), ("a\x00b", None), ("x" * (LONGEST_COMMENT + 1), None), (None, "")]
)
def test_a_comment_or_key_that_is_none_is_refused(
    store: SqlStore, flow: FlowVerbs, stage: Stage, comment: Any, key: Any
) -> None:
    job = stage.asks()
    for verb in (flow.approve, flow.reject):
        with pytest.raises(InvalidInput):
            verb(job, comment=comment, key=key)
    assert not is_answered(store, job)


class Forgetful:
    """A store whose first answer to this verb is lost on the way back; something may happen meanwhile."""

    def __init__(self, store: SqlStore, verb: str, meanwhile: Any = None) -> None:
        self._store, self._verb, self._meanwhile = store, verb, meanwhile

    def __getattr__(self, name: str) -> Any:
        def ask(*args: Any, **more: Any) -> Any:
            answer = getattr(self._store, name)(*args, **more)
            if name == self._verb:
                self._verb = ""
                if self._meanwhile is not None:
                    self._meanwhile()
                raise OutcomeUnknown("lost")
            return answer

        return ask


def test_a_decision_whose_answer_was_lost_is_asked_for_again(store: SqlStore, stage: Stage) -> None:
    job = stage.asks()
    forgetful: Any = Forgetful(store, "decide")
    assert FlowVerbs(forgetful).approve(job, by="kim", comment="yes").by == "kim"
    assert len(store.audit(verb="approvals")) == 1


def test_a_repeated_decision_never_decides_the_next_question(store: SqlStore, stage: Stage) -> None:
    attempt = stage.begun()
    job = stage.park(attempt, Wait(WaitKind.APPROVAL, "approval#1", "First?"))

    def next_question() -> None:
        store.ingest()
        [again] = store.claim(stage.worker.number, chance.nonce(), everything(store))
        stage.park(again, Wait(WaitKind.APPROVAL, "approval#2", "Second?"))

    forgetful: Any = Forgetful(store, "decide", next_question)
    assert FlowVerbs(forgetful).approve(job, by="kim").wait.name == "First?"
    answers = {wait.wait.name: wait.answer for wait in store.waits_of(TENANT, job)}
    assert answers == {"First?": Answer.APPROVED, "Second?": None}


def test_an_event_whose_answer_was_lost_is_not_sent_twice(store: SqlStore, stage: Stage) -> None:
    job = stage.awaits("paid")
    forgetful: Any = Forgetful(store, "signal")
    with pytest.raises(OutcomeUnknown) as lost:
        FlowVerbs(forgetful).signal("paid", job=job)
    assert "may have been sent" in lost.value.__notes__[0]
    assert len(store.audit(verb="events")) == 1


def test_an_event_with_an_id_is_sent_again_when_its_answer_was_lost(store: SqlStore, stage: Stage) -> None:
    """It counts once, so nobody has to look first."""
    job = stage.awaits("paid")
    forgetful: Any = Forgetful(store, "signal")
    assert FlowVerbs(forgetful).signal("paid", 3, job=job, id="evt-1") == Signalled(job, 0, is_repeat=True)
    assert len(store.audit(verb="events")) == 1
    with pytest.raises(InvalidInput, match="id"):
        FlowVerbs(store).signal("paid", job=job, id=" ")


# --- replay -------------------------------------------------------------------------------------------------------


def test_a_replay_is_a_new_job_that_does_the_same(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    """Issue 5, 5"""
    options: dict[str, Any] = {
        "payload": '{"args":[1],"kwargs":{}}', "priority": 3, "tags": ("night",), "target": "acme", "retries": 7,
        "limit_key": "k", "key": "once", "fingerprint": "f",
    }  # fmt: skip
    submitted(store, **options)
    store.ingest()
    [attempt] = claim_all(store, stage.worker)
    stage.end(attempt, boom())
    store.cancel(TENANT, attempt.id, "kim")
    again = flow.replay(attempt.id, by="kim")
    assert again.created
    old, new = record(store, attempt.id), record(store, again.id)
    for field in ("workflow", "payload", "policy", "priority", "tags", "target", "limit_key", "queue", "tenant"):
        assert getattr(new, field) == getattr(old, field), field
    assert (new.id != old.id, new.replay_of, new.key, new.run, old.replay_of) == (True, old.id, None, 1, None)
    [line] = [line for line in store.audit() if line.verb == "jobs.replay"]
    assert (line.by, line.subject, line.detail["job"]) == ("kim", old.id, new.id)


def test_only_what_has_ended_is_replayed(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    waiting, running, queued = stage.asks(), stage.begun().id, submitted(store).id
    for job in (waiting, running, queued):
        with pytest.raises(IllegalMove, match="cannot be replayed"):
            flow.replay(job)
    with pytest.raises(UnknownJob):
        flow.replay(NOBODY)


def test_a_blacklisted_workflow_is_not_replayed(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    """A35"""
    ended = stage.end(stage.begun(workflow="deploy"))
    store.blacklist_add(TENANT, "deploy", "x", "kim")
    with pytest.raises(WorkflowBlacklisted):
        flow.replay(ended)
    assert [line.verb for line in store.audit()] == ["blacklist.add"]


def test_a_replay_whose_answer_was_lost_makes_one_job(store: SqlStore, stage: Stage) -> None:
    ended = stage.end(stage.begun(workflow="deploy"))
    forgetful: Any = Forgetful(store, "submit")
    again = FlowVerbs(forgetful).replay(ended)
    assert again.created
    assert record(store, again.id).replay_of == ended
    assert [line.verb for line in store.audit()] == ["jobs.replay"]


def test_only_those_whom_an_approval_asks_may_decide_it(store: SqlStore, flow: FlowVerbs, stage: Stage) -> None:
    job = stage.asks("Deploy?", who=("kim", "lee"))
    for verb in (flow.approve, flow.reject):
        with pytest.raises(NotAsked, match=r"'Deploy\?' of job .* is asked of kim, lee: .* cannot decide it"):
            verb(job)
        with pytest.raises(NotAsked, match="--by NAME"):
            verb(job, by="max (cli)")
    assert [w.answer for w in store.waits_of(TENANT, job)] == [None]
    assert flow.approve(job, by="lee (cli)").by == "lee (cli)"
