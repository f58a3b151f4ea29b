"""Hooks: how they are kept, and how a delivery becomes a job once.

Theory of operation. A delivery that is accepted is a row under the key of hook and delivery, written first and in one
transaction with its job. Whoever brings the same one at that moment waits for that row, and then finds it there; so
does every later one, for as long as the row is kept. The row is made of the hook's own, as it was when the delivery
was judged: what was edited, paused or deleted meanwhile makes none, and the delivery is judged again. A refusal is a
row too; it stands in nobody's way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from unstuck.model.errors import Conflict, HookExists, TooManyHooks, UnknownHook
from unstuck.model.guard import hook_rules_of
from unstuck.model.hooks import MOST_SECRETS, HookRules, HookSpec
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.model.spelling import about
from unstuck.sealing import is_clear
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit
from unstuck.store.life import submit
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.order.name_ids import Numbers
from unstuck.store.port import (
    HookDelivered,
    HookDelivery,
    HookRecord,
    HookRefusal,
    NewHook,
    NewHookDelivery,
    StoredSecret,
)
from unstuck.store.rows import instant, instant_or_none, microseconds, packed, span

_LAST = 1 << 62


def rules(t: Transaction) -> HookRules:
    """Read in the transaction that goes by them."""
    return hook_rules_of((row["name"], row["value"]) for row in t.all("settings_set"))


# --- what people ask ----------------------------------------------------------------------------------------------


def create(t: Transaction, new: NewHook, by: str) -> HookRecord:
    counted = t.one("count_hooks", tenant=new.tenant)
    most = rules(t).most
    if counted is not None and counted["hooks"] >= most:
        raise TooManyHooks(new.tenant, most)
    now = _must(t.one("now"))["now"]
    added = t.one(
        "add_hook",
        uid=new.uid,
        tenant=new.tenant,
        name=new.name,
        workflow=new.spec.workflow,
        body=new.spec.to_json(),
        **_secrets([StoredSecret(new.stored, instant(now))]),
        by=clean_text(by, MAX_NAME),
    )
    if added is None:
        raise HookExists(new.name)
    audit.note(t, by, "hooks.create", new.name, new.tenant, _told(new.spec))
    return _locked(t, added["id"])


def change(t: Transaction, number: int, spec: HookSpec, by: str, seen: int) -> HookRecord:
    record = _locked(t, number)
    if record.version != seen:
        look = about("unstuck hooks show", record.name)
        raise Conflict(f"hook {record.name} was changed meanwhile; look at it again: {look}")
    _change(t, record, spec, record.secrets, by)
    audit.note(t, by, "hooks.update", record.name, record.tenant, _told(spec))
    return _locked(t, number)


def rotate(t: Transaction, number: int, stored: str, overlap: float, by: str) -> HookRecord:
    record = _locked(t, number)
    end = instant(microseconds(record.now) + span(overlap))
    before = [
        secret._replace(until=end if secret.until is None else min(end, secret.until))
        for secret in record.secrets
        if secret.until is None or secret.until > record.now
    ]
    kept = [secret for secret in before if secret.until is not None and secret.until > record.now]
    _change(t, record, record.spec, [StoredSecret(stored, record.now), *kept][:MOST_SECRETS], by)
    audit.note(t, by, "hooks.rotate", record.name, record.tenant, {"overlap": overlap})
    return _locked(t, number)


def reseal(t: Transaction, number: int, was: str, stored: str) -> bool:
    """False: that one is not there any more."""
    row = t.one("lock_hook", number=number)
    found = () if row is None else record_of(row).secrets
    if was not in {secret.stored for secret in found}:
        return False
    after = [secret._replace(stored=stored) if secret.stored == was else secret for secret in found]
    return t.run("reseal_hook", number=number, **_secrets(after)) == 1


def _change(t: Transaction, record: HookRecord, spec: HookSpec, secrets: Sequence[StoredSecret], by: str) -> None:
    facts = {"number": record.number, "workflow": spec.workflow, "body": spec.to_json(), **_secrets(secrets)}
    t.run("change_hook", **facts, by=clean_text(by, MAX_NAME))


def pause(t: Transaction, number: int, by: str, reason: str | None) -> HookRecord:
    record, why = _locked(t, number), clean_text(reason, MAX_MESSAGE) if reason else None
    t.run("pause_hook", number=number, by=clean_text(by, MAX_NAME), reason=why)
    audit.note(t, by, "hooks.pause", record.name, record.tenant, {"reason": why})
    return _locked(t, number)


def resume(t: Transaction, number: int, by: str) -> HookRecord:
    record = _locked(t, number)
    if record.paused_at is not None:
        t.run("unpause_hook", number=number, by=clean_text(by, MAX_NAME))
        audit.note(t, by, "hooks.resume", record.name, record.tenant)
    return _locked(t, number)


def delete(t: Transaction, number: int, by: str) -> HookRecord:
    """Its jobs, and what is known of its deliveries, stay until their time is over."""
    record = _locked(t, number)
    t.run("delete_hook", number=number)
    audit.note(t, by, "hooks.delete", record.name, record.tenant, _told(record.spec))
    return record


def one(t: Transaction, tenant: str, name: str) -> HookRecord | None:
    row = t.one("hook", tenant=tenant, name=name)
    return None if row is None else record_of(row)


def page(t: Transaction, tenant: str | None, after: int, limit: int) -> list[HookRecord]:
    return [record_of(row) for row in t.all("hooks", tenant=tenant, after=after, most=limit)]


# --- deliveries ---------------------------------------------------------------------------------------------------


def deliver(t: Transaction, new: NewHookDelivery, numbers: Numbers, key_life: float) -> HookDelivered | None:
    known = {"hook": new.hook.number, "key": new.key}
    added = t.one(
        "accept_hook_delivery",
        **known,
        version=new.hook.version,
        job=new.job.id,
        address=_address(new.address),
        size=new.size,
    )
    if added is None:
        if not t.run("repeat_hook_delivery", **known):
            return None
        return HookDelivered(delivery_of(_must(t.one("known_hook_delivery", **known))), is_new=False)
    submit.submit(t, [new.job], numbers, key_life)
    return HookDelivered(delivery_of(_must(t.one("hook_delivery", number=added["id"]))), is_new=True)


def refuse(t: Transaction, refused: Sequence[HookRefusal]) -> None:
    for each in refused:
        t.run(
            "refuse_hook_delivery",
            hook=each.hook,
            key=each.key,
            problem=each.problem,
            reason=clean_text(each.reason, MAX_MESSAGE),
            status=each.status,
            address=_address(each.address),
            size=each.size,
            calls=each.calls,
        )


def deliveries(t: Transaction, hook: int, before: int | None, limit: int, outcome: str | None) -> list[HookDelivery]:
    rows = t.all("hook_deliveries", hook=hook, before=before or _LAST, most=limit, outcome=outcome)
    return [delivery_of(row) for row in rows]


# --- rows ---------------------------------------------------------------------------------------------------------


def _locked(t: Transaction, number: int) -> HookRecord:
    row = t.one("lock_hook", number=number)
    if row is None:
        raise UnknownHook(number)
    return record_of(row)


def _must(row: Row | None) -> Row:
    assert row is not None
    return row


def _address(address: str | None) -> str | None:
    return None if address is None else clean_text(address, MAX_NAME)


def _secrets(secrets: Sequence[StoredSecret]) -> dict[str, Any]:
    rows = [
        [each.stored, microseconds(each.since), None if each.until is None else microseconds(each.until)]
        for each in secrets
    ]
    return {"secrets": packed(rows), "is_sealed": int(not any(is_clear(each.stored) for each in secrets))}


def _told(spec: HookSpec) -> dict[str, Any]:
    """For the audit: without constants among the arguments, which may be nobody's business."""
    facts = json.loads(spec.to_json())
    return {name: value for name, value in facts.items() if name != "arguments"} | {
        "arguments": sorted(spec.arguments)
    }


def record_of(row: Row) -> HookRecord:
    """Of a row that was damaged nothing but its workflow, and no secret: who reads it must still see the others."""
    try:
        spec = HookSpec.from_json(row["body"])
        secrets = tuple(
            StoredSecret(stored, instant(since), instant_or_none(until))
            for stored, since, until in json.loads(row["secrets"])
        )
    except (ValueError, TypeError, AttributeError):
        spec, secrets = HookSpec(row["workflow"]), ()
    return HookRecord(
        number=row["id"],
        uid=row["uid"],
        tenant=row["tenant"],
        name=row["name"],
        spec=spec,
        secrets=secrets,
        is_sealed=bool(row["is_sealed"]),
        version=row["version"],
        created_at=instant(row["created_at"]),
        created_by=row["created_by"],
        changed_at=instant(row["changed_at"]),
        changed_by=row["changed_by"],
        paused_at=instant_or_none(row["paused_at"]),
        paused_by=row["paused_by"],
        pause_reason=row["pause_reason"],
        now=instant(row["now"]),
    )


def delivery_of(row: Row) -> HookDelivery:
    return HookDelivery(
        number=row["id"],
        key=row["key"],
        at=instant(row["at"]),
        last_at=instant(row["last_at"]),
        outcome=row["outcome"],
        problem=row["problem"],
        reason=row["reason"],
        status=row["status"],
        job=row["job"],
        address=row["address"],
        size=row["size"],
        calls=row["calls"],
        version=row["version"],
    )
