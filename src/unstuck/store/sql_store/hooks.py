"""The verbs of hooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstuck.model.hooks import HookOutcome, HookRules, HookSpec
from unstuck.store.database import Transaction
from unstuck.store.guard import isolation
from unstuck.store.life import hooks, submit
from unstuck.store.port import HookDelivered, HookDelivery, HookRecord, HookRefusal, NewHook, NewHookDelivery
from unstuck.store.read import lookup
from unstuck.store.rows import span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlHooks(SqlVerbs):
    def hook_rules(self) -> HookRules:
        return self._database.read(hooks.rules)

    def create_hook(self, new: NewHook, by: str) -> HookRecord:
        return self._database.write(lambda t: hooks.create(t, new, by))

    def change_hook(self, number: int, spec: HookSpec, by: str, seen: int) -> HookRecord:
        return self._database.write(lambda t: hooks.change(t, number, spec, by, seen))

    def rotate_hook(self, number: int, stored: str, overlap: float, by: str) -> HookRecord:
        return self._database.write(lambda t: hooks.rotate(t, number, stored, overlap, by))

    def pause_hook(self, number: int, by: str, reason: str | None = None) -> HookRecord:
        return self._database.write(lambda t: hooks.pause(t, number, by, reason))

    def resume_hook(self, number: int, by: str) -> HookRecord:
        return self._database.write(lambda t: hooks.resume(t, number, by))

    def delete_hook(self, number: int, by: str) -> HookRecord:
        return self._database.write(lambda t: hooks.delete(t, number, by))

    def hook(self, tenant: str, name: str) -> HookRecord | None:
        if not lookup.can_exist(tenant, name):
            return None
        return self._database.read(lambda t: hooks.one(t, tenant, name))

    def hooks(self, tenant: str | None, after: int = 0, limit: int = 100) -> list[HookRecord]:
        return self._database.read(lambda t: hooks.page(t, tenant, after, limit))

    def hooks_stamp(self) -> tuple[Any, ...]:
        (row,) = self._database.read(lambda t: t.all("hooks_stamp"))
        return row["hooks"], row["changed_at"], row["versions"]

    def clear_hooks(self, tenant: str | None) -> tuple[int, str | None]:
        (row,) = self._database.read(lambda t: t.all("clear_hooks", tenant=tenant))
        return row["hooks"], row["first"]

    def deliver_to_hook(self, new: NewHookDelivery) -> HookDelivered | None:
        submit.check([new.job])
        delivered = self._transactions.with_numbers(
            [new.job],
            lambda t, numbers: hooks.deliver(t, new, numbers, self._key_life),
            patience=isolation.PATIENCE,
        )
        if delivered is not None and delivered.is_new:
            self._database.hint()
        return delivered

    def refuse_hook_deliveries(self, refused: Sequence[HookRefusal]) -> None:
        self._database.write(lambda t: hooks.refuse(t, refused), patience=isolation.PATIENCE)

    def hook_deliveries(
        self, hook: int, before: int | None = None, limit: int = 100, outcome: HookOutcome | None = None
    ) -> list[HookDelivery]:
        return self._database.read(lambda t: hooks.deliveries(t, hook, before, limit, outcome))

    def forget_hook_deliveries(self, batch: int = 1000, past: int = 0) -> int:
        def forget(t: Transaction) -> int:
            return t.run("forget_hook_deliveries", retention=span(hooks.rules(t).kept), batch=batch, past=past)

        return self._database.write(forget)
