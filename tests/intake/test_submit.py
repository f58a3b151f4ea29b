"""Submit and control when answers are lost: nothing twice, and no false "nothing was written"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import a_worker, boom, claim_all, settle
from tests.support.eventually import eventually
from unstuck.chance import SeededChance
from unstuck.intake.control import JobVerbs
from unstuck.intake.submit import Options, Submitter, fingerprint
from unstuck.model.errors import IllegalMove, InvalidPolicy, OutcomeUnknown, StoreBusy, StoreUnavailable, UnknownJob
from unstuck.model.job import WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

WORKFLOW = WorkflowRecord("pay", "1", "money", Policy(retries=7), {})
PAYLOAD = '{"args":[],"kwargs":{}}'


class Faulty:
    """The real store behind a bad line: each verb named here first fails in these ways, before or after it worked."""

    def __init__(self, store: SqlStore, **faults: list[str]) -> None:
        self._store = store
        self.meanwhile: Callable[[], object] = lambda: None
        self._faults = faults

    def __getattr__(self, verb: str) -> Any:
        real: Callable[..., Any] = getattr(self._store, verb)
        faults = self._faults.get(verb, [])

        def call(*args: Any, **kwargs: Any) -> Any:
            match faults.pop(0) if faults else None:
                case "lost question":
                    raise OutcomeUnknown("the line broke")
                case "lost answer":
                    real(*args, **kwargs)
                    self.meanwhile()
                    raise OutcomeUnknown("the line broke")
                case "unavailable":
                    raise StoreUnavailable("not reached")
                case "busy":
                    raise StoreBusy("locked")
            return real(*args, **kwargs)

        return call


def submitter(store: Any) -> Submitter:
    return Submitter(store, chance=SeededChance(1), max_timeout=3600)


def stored(store: SqlStore) -> list[str]:
    return [job.id for job in store.jobs("default", JobFilter(), 100).jobs]


@pytest.mark.parametrize(
    "faults", [["lost answer"], ["lost question"], ["lost answer", "lost answer"], ["lost answer", "busy"]]
)
def test_a_lost_answer_is_asked_for_again_under_the_same_id(store: SqlStore, faults: list[str]) -> None:
    submit = submitter(Faulty(store, submit=faults))
    job = submit.job(WORKFLOW, PAYLOAD, Options())

    [answer] = submit.submit([job])

    assert (answer.id, answer.created) == (job.id, True)
    assert stored(store) == [job.id]


def test_a_lost_answer_does_not_make_a_known_key_look_new(store: SqlStore) -> None:
    first = submitter(store).job(WORKFLOW, PAYLOAD, Options().with_(key="k"))
    store.submit([first])
    submit = Submitter(Faulty(store, submit=["lost answer"]))
    twins = [submit.job(WORKFLOW, PAYLOAD, Options().with_(key=key)) for key in ("k", "new", "new")]

    answers = submit.submit(twins)

    assert [(a.id, a.created) for a in answers] == [(first.id, False), (twins[1].id, True), (twins[1].id, False)]


def test_a_chosen_id_beside_others_does_not_make_them_look_known(store: SqlStore) -> None:
    submit = Submitter(Faulty(store, submit=["lost answer"]))
    chosen = "0190b7a2-6c3e-7d41-9f0a-5b8e2c7d1f36"
    jobs = [submit.job(WORKFLOW, PAYLOAD, options) for options in (Options(), Options().with_(id=chosen))]

    answers = submit.submit(jobs)

    assert [(a.id, a.created) for a in answers] == [(jobs[0].id, True), (chosen, False)], "of that nobody can say"


def test_a_repeated_submit_wakes_the_idle_as_the_lost_one_could_not(store: SqlStore, store_url: str) -> None:
    job = submitter(store).job(WORKFLOW, PAYLOAD, Options())
    store.submit([job])
    idle = open_database(store_url)
    idle.wait(1.0)
    eventually(lambda: idle.wait(0.05) is None)

    store.submit([job])

    assert idle.wait(5.0)
    idle.close()


def test_a_store_that_was_never_reached_is_told_as_it_is(store: SqlStore) -> None:
    submit = submitter(Faulty(store, submit=["unavailable"]))

    with pytest.raises(StoreUnavailable):
        submit.submit([submit.job(WORKFLOW, PAYLOAD, Options())])

    assert stored(store) == []


def test_after_a_lost_answer_nobody_claims_that_nothing_was_written(store: SqlStore) -> None:
    submit = submitter(Faulty(store, submit=["lost answer", "unavailable", "unavailable"]))
    job = submit.job(WORKFLOW, PAYLOAD, Options())

    with pytest.raises(OutcomeUnknown) as unknown:
        submit.submit([job])

    assert job.id in unknown.value.__notes__[0]
    assert stored(store) == [job.id]


def test_an_error_in_the_middle_of_many_says_how_many_are_stored(store: SqlStore) -> None:
    submit = submitter(store)
    jobs = [submit.job(WORKFLOW, PAYLOAD, Options()) for _ in range(1001)]
    faulty = submitter(Faulty(store, submit=["", "unavailable"]))

    with pytest.raises(StoreUnavailable) as away:
        faulty.submit(jobs)

    assert "first 1000 of 1001" in away.value.__notes__[0]


def test_a_registered_row_decides_queue_and_policy_unless_the_caller_does(store: SqlStore) -> None:
    submit = submitter(store)

    plain = submit.job(WORKFLOW, PAYLOAD, Options())
    chosen = submit.job(WORKFLOW, PAYLOAD, Options().with_(queue="q", retries=1, idempotency_key="k"))

    assert (plain.queue, plain.policy.retries, plain.fingerprint) == ("money", 7, None)
    assert (chosen.queue, chosen.policy.retries, chosen.key) == ("q", 1, "k")
    assert chosen.fingerprint == fingerprint("pay", PAYLOAD)
    with pytest.raises(InvalidPolicy, match="max_timeout"):
        submit.submit([submit.job(WORKFLOW, PAYLOAD, Options().with_(timeout=3601))])


def test_a_fingerprint_cannot_be_forged_by_moving_letters_between_name_and_payload() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint("1:a", "b") != fingerprint("1", ":ab")


def test_options_add_up() -> None:
    options = Options().with_(priority=3, tags="a").with_(timeout=5).with_(grace=1)

    assert (options.priority, options.tags, options.policy) == (3, ("a",), {"timeout": 5, "grace": 1})


def test_options_by_other_names_mean_the_same() -> None:
    options = Options().with_(timeout_seconds=5, cancel_grace_seconds=2, token_limit=100)
    assert options.policy == {"timeout": 5, "grace": 2, "budget": {"tokens": 100}}
    assert Options().with_(token_limit=9, budget={"tokens": 7}).policy == {"budget": {"tokens": 7}}


def test_whoever_says_retries_last_is_not_bound_by_an_earlier_max_retries() -> None:
    policy = Policy().with_("w", Options().with_(max_retries=0).with_(retries=2).policy)
    assert (policy.max_retries, policy.retries, policy.max_lost) == (None, 2, 0)
    capped = Policy().with_("w", Options().with_(retries=2).with_(max_retries=1).policy)
    assert (capped.max_retries, capped.retries, capped.max_lost) == (1, 1, 1)


VERBS: dict[str, tuple[Callable[[JobVerbs, str], Any], JobState]] = {
    "cancel": (lambda control, job: control.cancel(job, "why"), JobState.CANCELLED),
    "interrupt": (lambda control, job: control.interrupt(job), JobState.PAUSED),
    "resume": (lambda control, job: control.resume(job), JobState.QUEUED),
    "resolve": (lambda control, job: control.resolve(job, "1"), JobState.COMPLETED),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", ["lost answer", "lost question"])
def test_a_verb_whose_answer_was_lost_is_carried_out_once(store: SqlStore, verb: str, fault: str) -> None:
    submit = submitter(store)
    job = submit.job(WORKFLOW, PAYLOAD, Options())
    submit.submit([job])
    if verb in ("resume", "resolve"):
        store.interrupt("default", job.id, "me")
    before = len(store.history("default", job.id))
    ask, wanted = VERBS[verb]

    record = ask(JobVerbs(Faulty(store, **{verb: [fault]}), by="me"), job.id)

    assert record.state is wanted
    assert len(store.history("default", job.id)) <= before + 2
    kinds = [event.kind for event in store.history("default", job.id)]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("ends", [True, False])
def test_a_resume_whose_answer_was_lost_opens_one_run_however_far_that_has_come(store: SqlStore, ends: bool) -> None:
    """Claimed already, or even failed again: the repeat must not take that for the old run."""
    worker = a_worker(store)
    job = submitter(store).job(WORKFLOW, PAYLOAD, Options().with_(retries=0))
    store.submit([job])
    settle(store, worker, claim_all(store, worker)[0].ref, boom())

    def run_at_once() -> None:
        (attempt,) = claim_all(store, worker)
        if ends:
            settle(store, worker, attempt.ref, boom())

    line = Faulty(store, resume=["lost answer"])
    line.meanwhile = run_at_once

    record = JobVerbs(line).resume(job.id)

    assert (record.run, record.state) == (2, JobState.FAILED if ends else JobState.RUNNING)
    assert [event.kind for event in store.history("default", job.id)].count("resumed") == 1


def test_verbs_on_a_job_that_does_not_exist_say_so(store: SqlStore) -> None:
    control = JobVerbs(store)
    missing = SeededChance(9).job_id()

    for ask, _ in VERBS.values():
        with pytest.raises(UnknownJob):
            ask(control, missing)
    with pytest.raises(UnknownJob):
        control.retry(missing)


def test_a_verb_that_the_state_does_not_know_changes_nothing_a18(store: SqlStore) -> None:
    submit = submitter(store)
    job = submit.job(WORKFLOW, PAYLOAD, Options())
    submit.submit([job])
    control = JobVerbs(store)
    control.interrupt(job.id)
    control.resolve(job.id, "1")
    before = store.get("default", job.id)

    for ask, _ in VERBS.values():
        with pytest.raises(IllegalMove, match="COMPLETED"):
            ask(control, job.id)

    assert store.get("default", job.id) == before


@pytest.mark.parametrize("fault", ["lost answer", "lost question"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_release_whose_answer_was_lost_happens_once(store: SqlStore, fault: str, waits: bool) -> None:
    submit = submitter(store)
    first = submit.job(WORKFLOW, PAYLOAD, Options())
    job = submit.job(WORKFLOW, PAYLOAD, Options().with_(hold=True, after=[first.id] if waits else []))
    submit.submit([first, job])

    record = JobVerbs(Faulty(store, release=[fault]), by="me").release(job.id)

    assert (record.state, record.on_hold) == (JobState.PENDING if waits else JobState.QUEUED, False)
    kinds = [event.kind for event in store.history("default", job.id)]
    assert kinds == ["submitted", "held", "unheld" if waits else "released"]


def test_a_release_that_lost_to_a_cancel_is_no_release(store: SqlStore) -> None:
    submit = submitter(store)
    job = submit.job(WORKFLOW, PAYLOAD, Options().with_(hold=True))
    submit.submit([job])
    line = Faulty(store, release=["lost question"])
    control = JobVerbs(line, by="me")
    real = store.get

    def cancelled_meanwhile(tenant: str, uid: str) -> Any:
        found = real(tenant, uid)
        if found is not None and found.state is JobState.PENDING:
            store.cancel(tenant, uid, by="other")
        return found

    line.get = cancelled_meanwhile  # type: ignore[attr-defined]
    with pytest.raises(IllegalMove):
        control.release(job.id)
