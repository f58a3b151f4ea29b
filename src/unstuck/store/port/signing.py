"""The port of signed jobs: what signatures are held against, and which keys are revoked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import NamedTuple, Protocol

from unstuck.model.job import NewJob
from unstuck.model.policy import Policy
from unstuck.records import dataclass


class SignedRow(NamedTuple):
    """What the row of a claimed job says itself, beside what its claim has answered; as it is read, by place.
    `has_target` without a `target`: one that there is not, or of another tenant. `made_by`: as `JobRecord`.
    `is_first`: no claim of its run came before this one; None: no key is revoked, and nobody has looked.
    `signature`: the envelope as it is stored."""

    job: int
    tenant: str
    queue: str
    workflow: str
    priority: int
    has_target: int
    target: str | None
    made_by: str | None
    is_first: int | None
    signature: str | bytes
    clock: int


@dataclass(frozen=True, slots=True)
class SignedFacts:
    """Of one claim: its signed jobs by number, and the keys that were revoked by then. `clock`: the later
    of the database's own and the engine's; None: there are none."""

    rows: Mapping[int, SignedRow] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()
    clock: datetime | None = None


@dataclass(frozen=True, slots=True)
class Revocation:
    """A signing key by which nothing starts any more."""

    key: str
    revoked_at: datetime
    revoked_by: str
    reason: str | None


class SigningPort(Protocol):
    def signed_facts(self, worker: int, claim: str) -> SignedFacts:
        """Of the open attempts of this claim. It sees every revocation that was committed before the claim was."""
        ...

    def policy_of(self, job: NewJob) -> Policy:
        """With which it would be stored now: what it says, over what its workflow's row has."""
        ...

    def revoke_signer(self, key: str, by: str, reason: str | None = None) -> tuple[Revocation, bool]:
        """No job that is claimed after this starts by it. One that is revoked already stays so, with its reason, and
        then the second answer is False."""
        ...

    def unrevoke_signer(self, key: str, by: str) -> Revocation | None:
        """What stood; None: it was not revoked."""
        ...

    def revoked_signers(self) -> list[Revocation]:
        """The newest first."""
        ...
