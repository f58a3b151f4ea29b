"""Sealing: how secrets that must be read again (of webhooks) are kept in the database.

A secret that an HMAC is computed with cannot be kept as a digest. With sealing keys it is stored sealed, by
AES-256-GCM and bound to its place, so that neither a copy of the database nor a row that was moved gives it away.
Without sealing keys it is stored in clear text, and whoever looks at the health of the installation is told so. What
is sealed says by which key; of several the first seals and all of them open. Which process should hold them:
docs/hooks.md.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from unstuck.model.errors import InvalidSettings, SecretNotOpened

#: Bytes of a sealing key.
KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_CLEAR: Final = "clear:"
_SEALED: Final = "sealed:1:"
_KEY: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,63}):([A-Za-z0-9+/]{43}=)", re.ASCII)


class Sealer:
    """The sealing keys of a process, by name, the one that seals first. Falsy: it has none."""

    def __init__(self, keys: Iterable[tuple[str, bytes]] = ()) -> None:
        self._keys = dict(keys)
        self._first = next(iter(self._keys), None)
        if wrong := [name for name, key in self._keys.items() if len(key) != KEY_BYTES]:
            raise InvalidSettings([f"sealing key {wrong[0]} is not {KEY_BYTES} bytes long"])
        if self._keys:
            _aes()  # what is to be sealed is not stored in clear text because a library is missing

    @classmethod
    def of(cls, source: str | None) -> Sealer:
        """As settings name them: `sealing_keys`, a file or its text. InvalidSettings, without what is secret."""
        return cls(read_keys(source)) if source else NO_SEALER

    def __bool__(self) -> bool:
        return bool(self._keys)

    def is_newest(self, stored: str) -> bool:
        """Whether it is stored as this process would store it now."""
        return key_of(stored) == self._first

    def seal(self, secret: bytes, place: str) -> str:
        """As it is stored. `place`: whose it is; it opens for nothing else."""
        if self._first is None:
            return _CLEAR + base64.b64encode(secret).decode()
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + _aes()(self._keys[self._first]).encrypt(nonce, secret, place.encode())
        return f"{_SEALED}{self._first}:{base64.b64encode(sealed).decode()}"

    def open(self, stored: str, place: str) -> bytes:
        """SecretNotOpened, if this process lacks the key, or the row was changed or moved."""
        try:
            if stored.startswith(_CLEAR):
                return base64.b64decode(stored.removeprefix(_CLEAR), validate=True)
            name, _, text = stored.removeprefix(_SEALED).partition(":")
            sealed = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise SecretNotOpened("the stored secret cannot be read: the row was changed") from None
        if not stored.startswith(_SEALED) or not text:
            raise SecretNotOpened("the stored secret cannot be read: the row was changed")
        if name not in self._keys:
            raise SecretNotOpened(
                f"the stored secret is sealed by key {name}, which this process lacks: sealing_keys"
            )
        return self._opened(name, sealed, place)

    def _opened(self, name: str, sealed: bytes, place: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            found: bytes = _aes()(self._keys[name]).decrypt(nonce, rest, place.encode())
        except (InvalidTag, ValueError):
            problem = f"key {name} does not open the stored secret: it is another key, or the row was changed"
            raise SecretNotOpened(problem) from None
        return found


def is_clear(stored: str) -> bool:
    """Whether whoever can read the database can read this secret."""
    return stored.startswith(_CLEAR)


def key_of(stored: str) -> str | None:
    """The name of the key that it is sealed by; None: it is in clear text."""
    return None if is_clear(stored) else stored.removeprefix(_SEALED).partition(":")[0]


def read_keys(source: str) -> list[tuple[str, bytes]]:
    """Of a file, or of its text: NAME:BASE64, one in a line or several behind commas, the one that seals first."""
    said = _parts(source if _is_text_of_keys(source) else _file_text(Path(source)))
    found: dict[str, bytes] = {}
    problems = [] if said else ["there is no sealing key: write NAME:KEY, the key being base64 of 32 bytes"]
    for number, part in enumerate(said, 1):
        if (match := _KEY.fullmatch(part)) is None:
            problems.append(f"sealing key {number} is not NAME:KEY, the key being base64 of {KEY_BYTES} bytes")
        elif match[1] in found:
            problems.append(f"sealing key {match[1]} is there twice")
        else:
            found[match[1]] = base64.b64decode(match[2])
    if problems:
        raise InvalidSettings(problems)
    return list(found.items())


def _is_text_of_keys(source: str) -> bool:
    """Rather than where they are."""
    return bool(said := _parts(source)) and _KEY.fullmatch(said[0]) is not None


def _parts(text: str) -> list[str]:
    lines = (line.partition("#")[0] for line in text.splitlines())
    return [part for line in lines for part in re.split(r"[,\s]+", line) if part]


def _file_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError) as error:
        raise InvalidSettings([f"the sealing keys in {path} cannot be read: {error}"]) from None


def _aes() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise InvalidSettings(['sealing_keys are set: pip install "unstuck[sealing]"']) from None
    return AESGCM


#: Of a process without sealing keys.
NO_SEALER: Final = Sealer()
