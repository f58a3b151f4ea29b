"""Hooks as they are kept: what cannot be is refused when they are made, and a delivery becomes a job once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, chance
from tests.support.hooks import REPO, SEALER, made, register, verbs
from unstuck.intake.hooks import job_of, opened_secrets
from unstuck.model.errors import (
    HookExists,
    InvalidArguments,
    InvalidInput,
    SecretNotOpened,
    TooManyHooks,
    TooManyQueued,
    UnknownHook,
    UnknownWorkflowName,
    WorkflowBlacklisted,
)
from unstuck.model.hooks import Delivery, DeliveryProblem, DeliveryRefused
from unstuck.sealing import NO_SEALER, is_clear
from unstuck.store.port import HookRecord, HookRefusal, JobFilter, Limit, NewHookDelivery, Store
from unstuck.store.sql_store import SqlStore


def delivery(
    hook: HookRecord, store: Store, key: str = "id:d-1", body: bytes = b'{"repo": "a/b"}'
) -> NewHookDelivery:
    return NewHookDelivery(hook, key, job_of(store, hook, Delivery(body), key), "10.0.0.1", len(body))


def jobs(store: Store) -> list[Any]:
    return list(store.jobs(TENANT, JobFilter(newest_first=False), 1000).jobs)


def test_a_delivery_becomes_a_job_with_what_the_hook_fixes_and_a_repeat_is_the_same(store: SqlStore) -> None:
    hook = made(store, queue="slow", priority=3, tags=["ci"], target="a/b").hook
    first = store.deliver_to_hook(delivery(hook, store))
    again = store.deliver_to_hook(delivery(hook, store))

    assert first is not None
    assert again is not None
    [job] = jobs(store)
    assert (first.is_new, again.is_new) == (True, False)
    assert first.delivery.job == again.delivery.job == job.id
    assert (job.workflow, job.queue, job.priority, job.target) == ("build", "slow", 3, "a/b")
    assert job.tags == ("ci", "hook:pushes")
    assert '"a/b",1' in job.payload
    [seen] = store.hook_deliveries(hook.number)
    assert (seen.outcome, seen.calls, seen.key, seen.address, seen.size) == ("accepted", 2, "id:d-1", "10.0.0.1", 15)


def test_the_same_delivery_at_once_from_many_is_one_job(store: SqlStore) -> None:
    hook = made(store).hook
    barrier = threading.Barrier(6)

    def bring() -> str | None:
        new = delivery(hook, store)
        barrier.wait()
        found = store.deliver_to_hook(new)
        return None if found is None else found.delivery.job

    with ThreadPoolExecutor(6) as pool:
        answers = [each.result() for each in [pool.submit(bring) for _ in range(6)]]

    [job] = jobs(store)
    assert answers == [job.id] * 6


def test_a_hook_that_was_edited_paused_or_deleted_meanwhile_makes_no_job(store: SqlStore) -> None:
    hook = made(store).hook
    new = delivery(hook, store)
    changed = verbs(store).update("pushes", priority=5)
    assert store.deliver_to_hook(new) is None
    verbs(store).pause("pushes", "too much")
    assert store.deliver_to_hook(replace(new, hook=verbs(store).get("pushes"))) is None
    resumed = verbs(store).resume("pushes")
    assert changed.version < resumed.version
    verbs(store).delete("pushes")
    assert store.deliver_to_hook(replace(new, hook=resumed)) is None
    assert jobs(store) == []
    with pytest.raises(UnknownHook):
        verbs(store).get("pushes")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"repo": "body.repo", "nope": "body.x"}, "there is no parameter nope"),
        ({"n": "query.n"}, "missing a required argument: repo"),
        ({"repo": {"value": 3}}, "its value: expected string, got integer"),
        ({"repo": "body.repo", "n": {"from": "query.n", "default": "many"}}, "its default: expected integer"),
        ({"repo": "body.repo", "extra": "header.x-extra"}, "is text, expected null or object"),
        ({"repo": "body.repo", "n": "raw"}, "raw is text, expected integer"),
        ({"repo": "boddy.repo"}, "is not body, body.NAME"),
        ("body", "is not a mapping"),
    ],
)
def test_a_mapping_that_cannot_fit_is_refused_when_it_is_made(store: SqlStore, arguments: Any, words: str) -> None:
    register(store)
    with pytest.raises(InvalidInput) as refused:
        verbs(store).create("pushes", "build", arguments=arguments)
    assert words in str(refused.value)
    assert store.hooks(TENANT) == []


def test_what_else_cannot_be_is_refused(store: SqlStore) -> None:
    made(store)
    with pytest.raises(HookExists):
        made(store)
    with pytest.raises(UnknownWorkflowName):
        verbs(store).create("other", "nothing")
    for said in (
        {"secret": "short"},
        {"secret": "not base64 but long enough"},
        {"priority": "high"},
        {"queue": ""},
        {"policy": {"timeout": -1}},
    ):
        with pytest.raises(InvalidInput):
            verbs(store).create("other", "build", arguments=REPO, **said)
    with pytest.raises(InvalidInput, match="hk_"):
        verbs(store).create("hk_a", "build", arguments=REPO)
    with pytest.raises(InvalidInput, match="make another hook"):
        verbs(store).update("pushes", scheme="stripe")
    with pytest.raises(InvalidArguments):
        verbs(store).update("pushes", arguments={"n": "query.n"})
    store.set_setting("hooks_per_tenant", "1", "ada")
    with pytest.raises(TooManyHooks):
        made(store, "second")


@pytest.mark.parametrize(
    ("body", "query", "words"),
    [
        (b"{}", [], "repo: there is no body.repo"),
        (b'{"repo": 3}', [], "expected string, got integer"),
        (b'{"repo": "a"}', [("n", "x")], "expected integer, got string"),
        (b"not json", [], "it is not JSON"),
        (b"\xff\xfe", [], "UTF-8"),
    ],
)
def test_what_does_not_fit_when_it_comes_is_refused(store: SqlStore, body: bytes, query: Any, words: str) -> None:
    hook = made(store).hook
    with pytest.raises(DeliveryRefused) as refused:
        job_of(store, hook, Delivery(body, query=query), "id:d")
    assert words in str(refused.value)
    assert refused.value.problem in (DeliveryProblem.MISFIT, DeliveryProblem.UNREADABLE)


def test_a_schema_that_changed_since_counts_at_the_next_delivery(store: SqlStore) -> None:
    hook = made(store).hook
    job_of(store, hook, Delivery(b'{"repo": "a"}'), "id:d")
    schema = {
        "type": "object",
        "properties": {"repo": {"type": "integer"}},
        "required": ["repo"],
        "additionalProperties": False,
    }
    register(store, schema=schema)
    with pytest.raises(DeliveryRefused, match="there is no parameter n"):
        job_of(store, hook, Delivery(b'{"repo": "a"}'), "id:d")


def test_a35_the_blacklist_and_a_full_queue_refuse_a_delivery_and_leave_nothing(store: SqlStore) -> None:
    """A35: every way in"""
    hook = made(store).hook
    store.set_limit(Limit("queue", "default", TENANT, "ada", max_queued=1))
    assert store.deliver_to_hook(delivery(hook, store)) is not None
    with pytest.raises(TooManyQueued):
        store.deliver_to_hook(delivery(hook, store, "id:d-2"))
    store.remove_limit("queue", "default", TENANT, "ada")
    store.blacklist_add(TENANT, "build", "it loops", "ada")
    with pytest.raises(WorkflowBlacklisted):
        store.deliver_to_hook(delivery(hook, store, "id:d-3"))
    assert len(jobs(store)) == 1
    assert [each.key for each in store.hook_deliveries(hook.number)] == ["id:d-1"]


def test_refusals_are_written_and_stand_in_nobodys_way(store: SqlStore) -> None:
    hook = made(store).hook
    note = HookRefusal(hook.number, "misfit", "repo: there is no body.repo", 422, "id:d-1", "10.0.0.1", 2)
    store.refuse_hook_deliveries([note, replace(note, calls=7, key=None)])
    found = store.deliver_to_hook(delivery(hook, store))
    assert found is not None
    assert found.is_new

    listed = store.hook_deliveries(hook.number)
    assert [(each.outcome, each.calls, each.status) for each in listed] == [
        ("accepted", 1, 202),
        ("refused", 7, 422),
        ("refused", 1, 422),
    ]
    assert [each.number for each in store.hook_deliveries(hook.number, outcome="refused")] == [
        each.number for each in listed[1:]
    ]


def test_secrets_overlap_when_they_are_rotated_and_are_sealed_where_there_is_a_key(
    store: SqlStore, clock: StoreClock
) -> None:
    first = made(store, sealer=SEALER)
    second = verbs(store, sealer=SEALER).rotate("pushes", overlap=60.0)
    assert first.secret != second.secret
    assert [text for text, _ in opened_secrets(second.hook, SEALER)] == [second.secret, first.secret]
    assert second.hook.is_sealed
    assert not any(is_clear(each.stored) for each in second.hook.secrets)
    assert first.secret not in repr(second.hook)
    with pytest.raises(SecretNotOpened):
        opened_secrets(second.hook, NO_SEALER)

    clock.advance(61)
    assert [text for text, _ in opened_secrets(verbs(store).get("pushes"), SEALER)] == [second.secret]
    third = verbs(store, sealer=NO_SEALER).rotate("pushes", overlap=0.0)
    assert [text for text, _ in opened_secrets(third.hook, NO_SEALER)] == [third.secret]
    assert not third.hook.is_sealed
    assert store.clear_hooks(None) == (1, "pushes")


def test_a_delivery_is_remembered_for_seven_days(store: SqlStore, clock: StoreClock) -> None:
    hook = made(store).hook
    store.deliver_to_hook(delivery(hook, store))
    clock.advance(timedelta(days=6, hours=23).total_seconds())
    assert store.forget_hook_deliveries() == 0
    repeated = store.deliver_to_hook(delivery(hook, store))
    assert repeated is not None
    assert not repeated.is_new
    clock.advance(7200)
    assert store.forget_hook_deliveries() == 1
    new = store.deliver_to_hook(delivery(hook, store))
    assert new is not None
    assert new.is_new


def test_the_stamp_changes_with_every_change(store: SqlStore) -> None:
    stamps = [store.hooks_stamp()]
    made(store)
    stamps.append(store.hooks_stamp())
    verbs(store).update("pushes", priority=1)
    stamps.append(store.hooks_stamp())
    verbs(store).pause("pushes")
    stamps.append(store.hooks_stamp())
    verbs(store).rotate("pushes")
    stamps.append(store.hooks_stamp())
    verbs(store).delete("pushes")
    stamps.append(store.hooks_stamp())
    made(store)
    stamps.append(store.hooks_stamp())
    assert len(set(stamps[:5] + stamps[6:])) == 6
    assert stamps[5] == stamps[0]


def test_hooks_of_one_tenant_are_not_anothers(store: SqlStore) -> None:
    hook = made(store).hook
    assert store.hook("other", "pushes") is None
    assert store.hook("other", hook.uid) is None
    assert store.hook(TENANT, hook.uid) is not None
    assert chance.job_id() != hook.uid
