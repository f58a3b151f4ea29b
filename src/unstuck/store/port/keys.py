"""The keys' port: who may ask over HTTP, and the browser sessions and tickets that were begun with a key."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

from unstuck.model.keys import BrowserSession, KeyRecord, NewBrowserSession, NewKey


class SeenKey(NamedTuple):
    """A key, and the store's time when it was read."""

    key: KeyRecord
    at: datetime


class KeysPort(Protocol):
    """Keys are kept when they have ended: the audit names them. `tenant` None: of everybody, and the platform's."""

    def add_key(self, key: NewKey) -> KeyRecord | None:
        """None: there is one of that id."""
        ...

    def key(self, id: str, tenant: str | None = None) -> SeenKey | None: ...

    def shown_key(self, id: str, digest: str) -> SeenKey | None:
        """For whoever shows a key: None if it is unknown, and if its digest is another. Both take as long."""
        ...

    def keys_of(self, ids: Collection[str]) -> dict[str, SeenKey]:
        """By their ids, those that there are; into whose place another came is not told."""
        ...

    def keys(
        self, tenant: str | None = None, *, ended: bool = False, before: int | None = None, limit: int = 100
    ) -> list[KeyRecord]:
        """The newest first; those that work, with `ended` all."""
        ...

    def has_keys(self) -> bool:
        """Whether there ever was one: from then on nobody asks without, not even when all have ended."""
        ...

    def revoke_key(self, id: str, by: str) -> KeyRecord | None:
        """It works no more, nor do its browser sessions. One that was revoked stays as it is."""
        ...

    def rotate_key(self, id: str, new: NewKey, overlap: float) -> KeyRecord | None:
        """`new` takes its place; it works for `overlap` seconds more at most. UnknownKey, KeyEnded. None:
        there is one of the id of `new`."""
        ...

    def note_key_uses(self, ids: Collection[str], every: float) -> None:
        """They were used now; what was written less than `every` seconds ago is not written again."""
        ...

    def open_browser_session(self, new: NewBrowserSession, by: str) -> int:
        """Its number. Of one key only the newest are kept."""
        ...

    def browser_session(self, digest: str) -> BrowserSession | None:
        """None: there is none, or it has ended, or its key has."""
        ...

    def browser_sessions(
        self, tenant: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[BrowserSession]:
        """Those that have not ended, of the keys of a tenant; the newest first."""
        ...

    def browser_session_numbered(self, number: int, tenant: str | None = None) -> BrowserSession | None: ...

    def touch_browser_sessions(self, digests: Collection[str]) -> None:
        """They are used: their idle time begins anew. What has ended stays so."""
        ...

    def end_browser_session(self, by: str, *, number: int | None = None, digest: str | None = None) -> bool:
        """False: there is none."""
        ...

    def add_ticket(self, digest: str, key: str, lasting: float) -> datetime:
        """A ticket of this key, told by its digest; when it ends."""
        ...

    def use_ticket(self, digest: str) -> str | None:
        """The id of its key, to one caller only. None: there is none, it was used, or its time is over."""
        ...
