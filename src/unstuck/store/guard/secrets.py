"""Secrets of hooks and webhooks as they are stored: read, and written anew under another key. What they are stays."""

from __future__ import annotations

from unstuck.model.webhooks import secret_place
from unstuck.sealing import key_of
from unstuck.store.database import Transaction
from unstuck.store.guard import audit
from unstuck.store.life import hooks
from unstuck.store.port import KeptSecret, SecretOwner


def page(t: Transaction, owner: SecretOwner, after: int, limit: int) -> list[KeptSecret]:
    return _of_hooks(t, after, limit) if owner == "hook" else _of_webhooks(t, after, limit)


def _of_hooks(t: Transaction, after: int, limit: int) -> list[KeptSecret]:
    return [
        KeptSecret("hook", hook.number, hook.tenant, hook.name, hook.place, secret.stored)
        for hook in hooks.page(t, None, after, limit)
        for secret in hook.secrets
        if secret.until is None or secret.until > hook.now
    ]


def _of_webhooks(t: Transaction, after: int, limit: int) -> list[KeptSecret]:
    return [
        KeptSecret("webhook", row["id"], row["tenant"], row["name"], secret_place(row["tenant"], row["name"]), stored)
        for row in t.all("webhook_secrets", after=after, most=limit)
        for stored in (row["secret"], row["old_secret"])
        if stored is not None
    ]


def reseal(t: Transaction, kept: KeptSecret, stored: str, by: str) -> bool:
    if kept.owner == "hook":
        done = hooks.reseal(t, kept.number, kept.stored, stored)
    else:
        done = t.run("reseal_webhook", webhook=kept.number, was=kept.stored, now=stored) == 1
    if done:
        told = {"from": key_of(kept.stored), "to": key_of(stored)}
        audit.note(t, by, f"{kept.owner}s.reseal", kept.name, kept.tenant, told)
    return done
