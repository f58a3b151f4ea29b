"""The address of a server and the key for it, checked before anything is sent. No message repeats a key."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from unstuck.model.errors import InvalidInput, quoted

VARIABLE: Final = "UNSTUCK_KEY"
FILE_VARIABLE: Final = "UNSTUCK_KEY_FILE"
_LONGEST_KEY = 4096


class ApiKey:
    """A secret. It is shown as its public beginning, wherever somebody prints it."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str, source: str) -> None:
        """`source` says where it is from, for the message about one that cannot be right."""
        text = secret.strip()
        if not text or len(text) > _LONGEST_KEY or not text.isascii() or not text.isprintable() or " " in text:
            raise InvalidInput(f"the key from {source} is not one that `unstuck keys create` gives out")
        self._secret = text

    def __repr__(self) -> str:
        kind, _, rest = self._secret.partition("_")
        name, separator, _ = rest.partition("_")
        return f"<ApiKey {kind}_{name}_…>" if separator else "<ApiKey>"

    @property
    def secret(self) -> str:
        """For who has to pass it on; nobody prints it."""
        return self._secret

    @property
    def authorization(self) -> str:
        return f"Bearer {self._secret}"

    @classmethod
    def found(cls, given: str | None) -> ApiKey | None:
        """The one that was given, else that of the environment, else that in the file which the environment names."""
        if given is not None:
            if not isinstance(given, str):
                raise InvalidInput(f"key= is a text, not a {type(given).__name__}")
            return cls(given, "key=…")
        if text := os.environ.get(VARIABLE):
            return cls(text, VARIABLE)
        if name := os.environ.get(FILE_VARIABLE):
            try:
                return cls(Path(name).read_text(encoding="utf-8"), f"the file that {FILE_VARIABLE} names")
            except (OSError, ValueError) as problem:
                reason = getattr(problem, "strerror", None) or "it is not text"
                raise InvalidInput(f"{FILE_VARIABLE}={quoted(name)} cannot be read: {reason}") from None
        return None


def is_server(address: object) -> bool:
    """Whether it is a server's and no database's."""
    return isinstance(address, str) and address.lower().startswith(("http://", "https://"))


def server_address(url: str) -> str:
    """Where a server is, without a slash at its end; what stands behind the host is where it is mounted."""
    if not is_server(url):
        raise InvalidInput(f"{quoted(url)} is no server's address; it begins with https:// or http://")
    try:
        split = urlsplit(url)
        host, _ = split.hostname, split.port
    except ValueError as problem:
        raise InvalidInput(f"the server's address cannot be read: {problem}") from None
    if "@" in split.netloc:
        raise InvalidInput("a server's address holds no name and no password; a key is given as key=…")
    if not host or split.query or split.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(f"{quoted(url)} is no server's address; write it like https://jobs.example.org/unstuck")
    return f"{split.scheme.lower()}://{split.netloc}{split.path.rstrip('/')}"


def check_secret_travels_safely(address: str, *, allow_http: bool) -> None:
    """Whoever listens on the way could read a key that is sent by http://."""
    if address.startswith("https://") or allow_http or is_loopback(urlsplit(address).hostname or ""):
        return
    raise InvalidInput(
        f"{address} would be sent the key where others can read it; use https://, or say allow_http=True if nobody "
        "else is on the way"
    )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return bool((getattr(address, "ipv4_mapped", None) or address).is_loopback)
