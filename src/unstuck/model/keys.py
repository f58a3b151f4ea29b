"""API keys: how one is spelled and checked, what it may touch, and when it has ended.

A key is `usk_ID_SECRETCHECK`: a prefix that scanners of leaked secrets find, an id of 8 characters that people may
see, a secret of 43 (256 bits), and a checksum of 6. A mistyped key is known by its checksum, before anybody is asked.
Only the SHA-256 of the whole text is stored: a secret of 256 random bits needs no slower hash.

A browser that has shown a key keeps `uss_SECRET` instead, which opens the same doors until its session ends. Its
pages prove that a change comes from them by a token that is computed from it. `ust_SECRET` opens one stream, once,
within a minute: it stands in an address, where no key may.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal
from zlib import crc32

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_name
from unstuck.records import dataclass

PREFIX: Final = "usk"
SESSION_PREFIX: Final = "uss"
TICKET_PREFIX: Final = "ust"
ID_LENGTH: Final = 8
SECRET_LENGTH: Final = 43
_CHECK_LENGTH: Final = 6
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SMALL: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
#: As many ids, and as many secrets, there are.
IDS: Final = len(_SMALL) ** ID_LENGTH
SECRETS: Final = len(_DIGITS) ** SECRET_LENGTH
_KEY = re.compile(rf"{PREFIX}_([0-9a-z]{{{ID_LENGTH}}})_[0-9A-Za-z]{{{SECRET_LENGTH + _CHECK_LENGTH}}}", re.ASCII)
_SESSION = re.compile(rf"{SESSION_PREFIX}_[0-9A-Za-z]{{{SECRET_LENGTH}}}", re.ASCII)
_TICKET = re.compile(rf"{TICKET_PREFIX}_[0-9A-Za-z]{{{SECRET_LENGTH}}}", re.ASCII)
_ID = re.compile(rf"[0-9a-z]{{{ID_LENGTH}}}", re.ASCII)
#: How every key begins, for a quick look.
KEY_BEGINNING: Final = f"{PREFIX}_"
#: Also with a letter too many or too few.
_WRITTEN_KEY = re.compile(rf"({PREFIX}_[0-9a-z]{{{ID_LENGTH}}}_)[0-9A-Za-z]{{8,}}", re.ASCII)
#: Between the person for whom a key acts and the key's name, in histories and in the audit.
VIA: Final = " via key "
#: What the audit keeps of who asked is 200 characters: both names must fit.
LONGEST_NAME: Final = 80
LONGEST_PERSON: Final = 100
#: As many queues, or workflows, one key may name.
MOST_NAMES: Final = 100


class Scope(StrEnum):
    """What a key may do besides what its role allows."""

    #: Name another person as the one who asks; the audit keeps both.
    ACT_AS = "act-as"


def spell(id_number: int, secret_number: int) -> str:
    """The key of these two numbers, below IDS and SECRETS."""
    text = f"{PREFIX}_{key_id(id_number)}_{_written(secret_number, SECRET_LENGTH, _DIGITS)}"
    return text + _check(text)


def without_keys(text: str) -> str:
    """A text without the secrets of keys that stand in it; their ids people may see."""
    return _WRITTEN_KEY.sub(r"\1***", text)


def key_id(number: int) -> str:
    return _written(number, ID_LENGTH, _SMALL)


def id_in(key: Any) -> str | None:
    """The id of a key; None: no key is written so."""
    found = _KEY.fullmatch(key) if isinstance(key, str) else None
    if found is None or key[-_CHECK_LENGTH:] != _check(key[:-_CHECK_LENGTH]):
        return None
    return found[1]


def is_id(text: Any) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def digest(text: str) -> str:
    """What is stored of a secret. What no UTF-8 can say is nobody's secret."""
    import hashlib

    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def spell_session(number: int) -> str:
    """What a browser keeps; of a number below SECRETS."""
    return f"{SESSION_PREFIX}_{_written(number, SECRET_LENGTH, _DIGITS)}"


def is_session(text: Any) -> bool:
    return isinstance(text, str) and _SESSION.fullmatch(text) is not None


def spell_ticket(number: int) -> str:
    """What stands in the address of a stream, once; of a number below SECRETS."""
    return f"{TICKET_PREFIX}_{_written(number, SECRET_LENGTH, _DIGITS)}"


def is_ticket(text: Any) -> bool:
    return isinstance(text, str) and _TICKET.fullmatch(text) is not None


def csrf_token(session: str) -> str:
    """Only who has the session can compute it, and nobody the session from it."""
    import hashlib
    import hmac

    return hmac.new(session.encode(), b"csrf", hashlib.sha256).hexdigest()


def _check(text: str) -> str:
    return _written(crc32(text.encode()), _CHECK_LENGTH, _DIGITS)


def _written(number: int, length: int, digits: str) -> str:
    signs = []
    for _ in range(length):
        number, sign = divmod(number, len(digits))
        signs.append(digits[sign])
    return "".join(reversed(signs))


# --- what a key may touch ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Within:
    """The queues and workflows that somebody may touch; None: all of them."""

    queues: frozenset[str] | None = None
    workflows: frozenset[str] | None = None

    def holds(self, queue: str | None, workflow: str | None) -> bool:
        """What is about no queue, or no workflow, is in none of those that are named."""
        return (self.queues is None or queue in self.queues) and (
            self.workflows is None or workflow in self.workflows
        )


def check_names(names: Any, kind: str) -> frozenset[str] | None:
    """Several names, or None for all of them; none at all would be a key for nothing."""
    if names is None:
        return None
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise InvalidInput(f"{kind}s={quoted(names)} is not a list of names")
    found = frozenset(check_name(name, kind) for name in names)
    if not 1 <= len(found) <= MOST_NAMES:
        raise InvalidInput(f"{kind}s= names {len(found)}; name 1 to {MOST_NAMES}, or leave it out for all")
    return found


def check_scopes(scopes: Any) -> frozenset[Scope]:
    if isinstance(scopes, str | bytes) or not isinstance(scopes, Iterable):
        raise InvalidInput(f"scopes={quoted(scopes)} is not a list of scopes")
    try:
        return frozenset(Scope(scope) for scope in scopes)
    except (ValueError, TypeError):
        raise InvalidInput(f"scopes={quoted(scopes)}: known are {', '.join(Scope)}") from None


def check_key_name(name: Any) -> str:
    """Whose key it is; histories and the audit say it as who asked."""
    return _unmistakable(check_name(name, "key"), LONGEST_NAME, "key")


def acting_for(person: str, key_name: str) -> str:
    """Who asks, where a key speaks for a person."""
    return f"{_unmistakable(person, LONGEST_PERSON, 'by')}{VIA}{key_name}"


def person_in(by: str) -> str:
    """For whom somebody acts who acts by a key; else who asks."""
    return by.partition(VIA)[0]


def _unmistakable(name: str, longest: int, what: str) -> str:
    if len(name) > longest:
        raise InvalidInput(f"{what} {quoted(name)} has {len(name)} characters; the limit is {longest}")
    if VIA in f" {name} ":
        raise InvalidInput(f"{what} {quoted(name)}: {VIA.strip()!r} says for whom a key acts, and is part of no name")
    return name


# --- what is stored ------------------------------------------------------------------------------------------------

KeyState = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class NewKey:
    """`lasting`: seconds until it ends; None: it does not."""

    id: str
    name: str
    digest: str
    tenant: str | None
    role: str
    by: str
    scopes: Collection[str] = ()
    within: Within = Within()
    lasting: float | None = None


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """`tenant` None: it is the platform's. `rotated_to`: the key that took its place."""

    number: int
    id: str
    name: str
    digest: str
    tenant: str | None
    role: str
    scopes: frozenset[str]
    within: Within
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    rotated_from: str | None = None
    rotated_to: str | None = None

    def state(self, now: datetime) -> KeyState:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


@dataclass(frozen=True, slots=True)
class NewBrowserSession:
    """`digest` is of the id that the browser keeps. It ends after `idle` seconds without use, and `lasting` seconds
    after its beginning in any case."""

    digest: str
    key: str
    idle: float
    lasting: float
    #: From where it was begun.
    address: str | None = None


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """`at`: the store's time when it was read. `ends_at`: used or not, and no later than its key."""

    number: int
    key: KeyRecord
    address: str | None
    created_at: datetime
    idle_until: datetime
    ends_at: datetime
    at: datetime
