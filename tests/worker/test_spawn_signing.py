"""What a job spawns is signed by its supervisor, by a key that no handler sees, or refused where it must be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.support.builders import a_job, a_worker, claimed
from tests.support.signing import a_key
from unstuck.assembly.worker import child_signer
from unstuck.clock import MachineClock
from unstuck.executor.messages import ChildAnswer, RefusedMessage, Reply, SpawnMessage
from unstuck.intake.signing import SigningDoor, stored_call
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.signing import Envelope
from unstuck.model.waits import Child
from unstuck.signing import SignatureRule, SigningKey, SigningKeys
from unstuck.store.port import NewChild, Store
from unstuck.worker.flow_calls import FlowCallRunner
from unstuck.worker.held_keys import HeldKeys
from unstuck.worker.ledger import Ledger
from unstuck.worker.processes import FlowCall

SPAWNER = a_key("spawner", purposes=("spawn",))


class Seen:
    """The store, and what was spawned."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.spawned: list[NewJob] = []

    def spawn(self, child: NewChild) -> Child | None:
        self.spawned.append(child.job)
        return self._store.spawn(child)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def spawn(
    store: Store, child: NewJob, keys: Iterable[SigningKey], required: Iterable[SignatureRule] = ()
) -> tuple[Reply, Seen]:
    seen, ledger, answers = Seen(store), Ledger(), list[Reply]()
    runner = FlowCallRunner(
        seen,
        ledger,
        MachineClock(),
        answered=lambda _, answer: answers.append(answer),
        revoked=lambda _: None,
        report=lambda _: None,
        sign=child_signer(HeldKeys(SigningKeys(keys, required)), store, MachineClock()),
    )
    parent = claimed(store, a_worker(store))
    ledger.admit(parent.ref.claim, [parent], 0.0)
    runner.take(FlowCall(1, 1, parent.ref, 1, SpawnMessage("c", 1, child, "cancel")))
    runner.tick()
    return answers[0], seen


def test_a_child_is_signed_with_what_will_be_stored(store: Store) -> None:
    """Its time limit is its workflow's: what it says itself is not all that is signed. A delay is an instant then"""
    store.register_workflows([WorkflowRecord("pay", "v1", "default", Policy(timeout=70.0), {})])
    child = a_job(
        workflow="pay",
        target="t",
        priority=2,
        delay=60.0,
        said='{"retries":3}',
        retries=3,
        signature="forged",
        made_by="schedule",
    )

    answer, seen = spawn(store, child, [SPAWNER])

    [made] = seen.spawned
    assert isinstance(answer, ChildAnswer)
    assert (made.policy.retries, made.policy.timeout, made.made_by) == (3, 70.0, "parent")
    envelope = Envelope.of(made.signature or "")
    assert envelope is not None
    assert made.signed_until == envelope.expires_at
    assert envelope.not_before is not None
    keys, then = SigningKeys([SPAWNER], [SignatureRule("*")]), store.now() + timedelta(seconds=60)
    call = stored_call(made)
    assert keys.problem_at_claim(call, envelope, store.now()) == "too_early"
    assert keys.problem_at_claim(replace(call, purpose="submit"), envelope, then) == "wrong_purpose"
    assert keys.problem_at_claim(call, envelope, then) is None
    altered = replace(call, policy=made.policy.with_("x", {"retries": 4}))
    assert keys.problem_at_claim(altered, envelope, then) == "altered"


def test_without_a_key_for_it_a_child_is_refused_where_it_must_be_signed(store: Store) -> None:
    answer, seen = spawn(store, a_job(workflow="pay"), [a_key()], [SignatureRule("workflow", "pay")])

    assert isinstance(answer, RefusedMessage)
    assert answer.type == "SignatureRefused"
    assert "no key here has the purpose spawn for tenant default" in answer.message
    assert seen.spawned == []


def test_elsewhere_it_is_unsigned_and_what_the_handler_says_of_signatures_is_nothing(store: Store) -> None:
    for keys in ([], [a_key()], [SPAWNER.for_verifying(), a_key("theirs", tenant="acme", purposes=("spawn",))][1:]):
        answer, seen = spawn(store, a_job(signature="forged", signed_until=5), keys)

        assert isinstance(answer, ChildAnswer)
        assert [(job.signature, job.signed_until) for job in seen.spawned] == [(None, None)]


def test_the_newest_key_that_may_signs(store: Store) -> None:
    other = a_key("of-acme", tenant="acme", purposes=("spawn",))
    made = SigningDoor(SigningKeys([a_key(), SPAWNER, other]), store).made(a_job(tenant="acme"), "parent")

    envelope = Envelope.of(made.signature or "")
    assert envelope is not None
    assert envelope.key == "spawner"
