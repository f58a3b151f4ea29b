"""The hooks' port: other systems' calls that start a workflow, and what was done about each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from unstuck.model.hooks import HookOutcome, HookRules, HookSpec
from unstuck.model.job import NewJob
from unstuck.records import dataclass


class StoredSecret(NamedTuple):
    """As `sealing.py` writes it. `until`: so long it is accepted beside a newer one; None: it is the one in use."""

    stored: str
    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class HookRecord:
    """A hook as it stands. `uid` is the last part of its address; `secrets`: the newest first."""

    number: int
    uid: str
    tenant: str
    name: str
    spec: HookSpec
    secrets: tuple[StoredSecret, ...]
    is_sealed: bool
    version: int
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    now: datetime

    @property
    def place(self) -> str:
        """Whose its secrets are: they open for no other."""
        return f"hook/{self.uid}"


@dataclass(frozen=True, slots=True)
class NewHook:
    uid: str
    tenant: str
    name: str
    spec: HookSpec
    stored: str


@dataclass(frozen=True, slots=True)
class NewHookDelivery:
    """A delivery whose sender is known, and the job that it is to become. `key`: by which it is known when it comes
    again."""

    hook: HookRecord
    key: str
    job: NewJob
    address: str | None = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class HookRefusal:
    """`calls`: it stands for so many."""

    hook: int
    problem: str
    reason: str
    status: int
    key: str | None = None
    address: str | None = None
    size: int | None = None
    calls: int = 1


@dataclass(frozen=True, slots=True)
class HookDelivery:
    number: int
    key: str | None
    at: datetime
    last_at: datetime
    outcome: HookOutcome
    problem: str | None
    reason: str | None
    status: int
    job: str | None
    address: str | None
    size: int | None
    calls: int
    version: int


class HookDelivered(NamedTuple):
    """`is_new`: it did not come before."""

    delivery: HookDelivery
    is_new: bool


class HooksPort(Protocol):
    def hook_rules(self) -> HookRules:
        """The runtime settings of hooks, as they stand."""
        ...

    def create_hook(self, new: NewHook, by: str) -> HookRecord:
        """HookExists, TooManyHooks."""
        ...

    def change_hook(self, number: int, spec: HookSpec, by: str, seen: int) -> HookRecord:
        """A new version. `seen`: the one that is changed; Conflict if there is a newer one. UnknownHook."""
        ...

    def rotate_hook(self, number: int, stored: str, overlap: float, by: str) -> HookRecord:
        """A new secret; those before it are accepted for so many seconds more at most."""
        ...

    def pause_hook(self, number: int, by: str, reason: str | None = None) -> HookRecord: ...

    def resume_hook(self, number: int, by: str) -> HookRecord: ...

    def delete_hook(self, number: int, by: str) -> HookRecord: ...

    def hook(self, tenant: str, name: str) -> HookRecord | None:
        """By its name, or by the last part of its address."""
        ...

    def hooks(self, tenant: str | None, after: int = 0, limit: int = 100) -> list[HookRecord]:
        """In the order in which they were made."""
        ...

    def hooks_stamp(self) -> tuple[Any, ...]:
        """Another one after every change of any of them."""
        ...

    def clear_hooks(self, tenant: str | None) -> tuple[int, str | None]:
        """How many keep their secrets in clear text, and the name of one."""
        ...

    def deliver_to_hook(self, new: NewHookDelivery) -> HookDelivered | None:
        """Store its job, once, in one transaction with the line about it. None: the hook is not as it was seen. What
        a submit refuses is raised, and nothing is written."""
        ...

    def refuse_hook_deliveries(self, refused: Sequence[HookRefusal]) -> None: ...

    def hook_deliveries(
        self, hook: int, before: int | None = None, limit: int = 100, outcome: HookOutcome | None = None
    ) -> list[HookDelivery]:
        """The newest first."""
        ...

    def forget_hook_deliveries(self, batch: int = 1000, past: int = 0) -> int:
        """Those older than the setting says."""
        ...
