"""The port of stored secrets: those of hooks and webhooks, which must be read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from unstuck.records import dataclass

SecretOwner = Literal["hook", "webhook"]


@dataclass(frozen=True, slots=True)
class KeptSecret:
    """A secret as it is stored, of a hook or webhook that uses it still. `place`: whose it is, it opens for no
    other."""

    owner: SecretOwner
    number: int
    tenant: str
    name: str
    place: str
    stored: str


class SecretsPort(Protocol):
    def kept_secrets(self, owner: SecretOwner, after: int = 0, limit: int = 100) -> Sequence[KeptSecret]:
        """Those of the next so many hooks or webhooks behind this number, in their order."""
        ...

    def reseal_secret(self, kept: KeptSecret, stored: str, by: str) -> bool:
        """The same secret, stored so from now on. False: it was changed meanwhile, and nothing is written."""
        ...
