"""Secrets of hooks and webhooks come under the newest sealing key, and stay what they are."""

from __future__ import annotations

import base64

import pytest

from tests.support import hooks, webhooks
from tests.support.builders import TENANT
from unstuck.intake.hooks import opened_secrets
from unstuck.intake.secrets import all_secrets, reseal
from unstuck.model.errors import InvalidInput
from unstuck.model.webhooks import WebhookFilter, secret_bytes, secret_place
from unstuck.sealing import NO_SEALER, Sealer, key_of
from unstuck.store.port import NewWebhook
from unstuck.store.sql_store import SqlStore


def keys(*names: str) -> Sealer:
    return Sealer.of(",".join(f"{name}:{base64.b64encode(name.encode()[:1] * 32).decode()}" for name in names))


OLD, NEW, BOTH = keys("old"), keys("new"), keys("new", "old")


@pytest.fixture
def stocked(store: SqlStore) -> SqlStore:
    """A hook and a webhook with two secrets each, by the old key, and one of each in clear text."""
    made = hooks.made(store, "pushes", sealer=OLD)
    hooks.verbs(store, sealer=OLD).rotate(made.hook.name)
    hooks.made(store, "plain")
    stored = webhooks.kept(webhooks.SECRET, "out", sealer=OLD)
    store.create_webhook(TENANT, NewWebhook("out", "https://hooks.example/", WebhookFilter(), stored), "ada")
    store.rotate_webhook(TENANT, "out", webhooks.kept(webhooks.SECRET, "out", sealer=OLD), 3600.0, "ada")
    webhooks.made(store, "bare")
    return store


def by_key(store: SqlStore) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for kept in all_secrets(store):
        found[key_of(kept.stored)] = found.get(key_of(kept.stored), 0) + 1
    return found


def test_all_of_them_are_sealed_by_the_first_key_and_stay_what_they_are(stocked: SqlStore) -> None:
    assert by_key(stocked) == {"old": 4, None: 2}
    before = {hook.name: opened_secrets(hook, OLD) for hook in stocked.hooks(None)}
    versions = [hook.version for hook in stocked.hooks(None)]

    done = reseal(stocked, BOTH, "ada")

    assert (done.resealed, done.kept, done.problems) == (6, 0, {})
    assert by_key(stocked) == {"new": 6}
    assert {hook.name: opened_secrets(hook, NEW) for hook in stocked.hooks(None)} == before
    assert all(hook.is_sealed for hook in stocked.hooks(None))
    assert [hook.version for hook in stocked.hooks(None)] == versions
    for kept in stocked.kept_secrets("webhook"):
        assert NEW.open(kept.stored, secret_place(TENANT, kept.name)) == secret_bytes(webhooks.SECRET)
    assert reseal(stocked, BOTH, "ada").kept == 6
    told = [each for each in stocked.audit(limit=100) if each.verb in ("hooks.reseal", "webhooks.reseal")]
    assert len(told) == 6
    assert {each.by for each in told} == {"ada"}


def test_what_cannot_be_opened_is_told_and_keeps_no_other_from_it(stocked: SqlStore) -> None:
    done = reseal(stocked, NEW, "ada")
    assert done.resealed == 2
    assert set(done.problems) == {f"hook pushes of tenant {TENANT}", f"webhook out of tenant {TENANT}"}
    assert all("key old, which this process lacks" in problem for problem in done.problems.values())
    assert by_key(stocked) == {"old": 4, "new": 2}


def test_a_secret_that_was_rotated_meanwhile_is_left_alone(stocked: SqlStore) -> None:
    for kept in list(all_secrets(stocked)):
        if kept.owner == "hook":
            hooks.verbs(stocked, sealer=BOTH).rotate(kept.name, overlap=0.0)
        else:
            stored = webhooks.kept(webhooks.SECRET, kept.name, sealer=BOTH)
            stocked.rotate_webhook(TENANT, kept.name, stored, 0.0, "ada")
        assert not stocked.reseal_secret(kept, "sealed:1:new:nonsense", "ada")
    assert by_key(stocked) == {"new": 4}


def test_without_a_key_nothing_is_done(stocked: SqlStore) -> None:
    with pytest.raises(InvalidInput, match="no sealing key"):
        reseal(stocked, NO_SEALER, "ada")
    assert by_key(stocked) == {"old": 4, None: 2}
