"""How stored secrets come under the newest sealing key, once every process has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final, get_args

from unstuck.model.errors import InvalidInput, SecretNotOpened
from unstuck.records import dataclass
from unstuck.sealing import Sealer
from unstuck.store.port import KeptSecret, SecretOwner, Store

_PAGE: Final = 100


@dataclass(slots=True)
class Resealed:
    """How many were sealed anew, how many were so already, and of those that could not be opened why."""

    resealed: int = 0
    kept: int = 0
    problems: dict[str, str] = field(default_factory=dict)


def all_secrets(store: Store) -> Iterator[KeptSecret]:
    """Of all hooks and webhooks, of every tenant."""
    for owner in get_args(SecretOwner):
        after = 0
        while found := store.kept_secrets(owner, after, _PAGE):
            yield from found
            after = found[-1].number


def reseal(store: Store, sealer: Sealer, by: str) -> Resealed:
    """One after the other; what another changes at this moment, it seals by its own newest key. One that cannot be
    opened here keeps no other from it."""
    if not sealer:
        raise InvalidInput("there is no sealing key: set sealing_keys, the newest first (docs/hooks.md)")
    done = Resealed()
    for kept in all_secrets(store):
        if sealer.is_newest(kept.stored):
            done.kept += 1
            continue
        try:
            stored = sealer.seal(sealer.open(kept.stored, kept.place), kept.place)
        except SecretNotOpened as problem:
            done.problems[f"{kept.owner} {kept.name} of tenant {kept.tenant}"] = str(problem)
            continue
        done.resealed += store.reseal_secret(kept, stored, by)
    return done
