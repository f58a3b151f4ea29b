"""The verbs of API keys, browser sessions and tickets."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from unstuck.model.keys import BrowserSession, KeyRecord, NewBrowserSession, NewKey
from unstuck.store.guard import keys
from unstuck.store.port import SeenKey
from unstuck.store.read import lookup
from unstuck.store.rows import span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlKeys(SqlVerbs):
    def add_key(self, key: NewKey) -> KeyRecord | None:
        return self._database.write(lambda t: keys.add(t, key))

    def key(self, id: str, tenant: str | None = None) -> SeenKey | None:
        return self._database.read(lambda t: keys.one(t, id, tenant)) if lookup.can_exist(id, tenant) else None

    def shown_key(self, id: str, digest: str) -> SeenKey | None:
        return self._database.read(lambda t: keys.one(t, id, digest=digest))

    def keys_of(self, ids: Collection[str]) -> dict[str, SeenKey]:
        return self._database.read(lambda t: keys.several(t, ids))

    def keys(
        self, tenant: str | None = None, *, ended: bool = False, before: int | None = None, limit: int = 100
    ) -> list[KeyRecord]:
        if not lookup.can_exist(tenant):
            return []
        return self._database.read(lambda t: keys.page(t, tenant, ended, before, limit))

    def has_keys(self) -> bool:
        return self._database.read(lambda t: t.one("has_api_keys")) is not None

    def revoke_key(self, id: str, by: str) -> KeyRecord | None:
        return self._database.write(lambda t: keys.revoke(t, id, by)) if lookup.can_exist(id) else None

    def rotate_key(self, id: str, new: NewKey, overlap: float) -> KeyRecord | None:
        return self._database.write(lambda t: keys.rotate(t, id, new, overlap))

    def note_key_uses(self, ids: Collection[str], every: float) -> None:
        self._database.write(lambda t: t.run("note_api_key_uses", ids=sorted(ids), every=span(every)))

    def open_browser_session(self, new: NewBrowserSession, by: str) -> int:
        return self._database.write(lambda t: keys.open_session(t, new, by))

    def browser_session(self, digest: str) -> BrowserSession | None:
        return self._database.read(lambda t: keys.session(t, digest))

    def browser_sessions(
        self, tenant: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[BrowserSession]:
        if not lookup.can_exist(tenant):
            return []
        return self._database.read(lambda t: keys.sessions(t, tenant, before, limit))

    def browser_session_numbered(self, number: int, tenant: str | None = None) -> BrowserSession | None:
        if not lookup.can_exist(tenant) or not 0 < number < keys.LAST:
            return None
        found = self._database.read(lambda t: keys.sessions(t, tenant, number + 1, 1, least=number))
        return found[0] if found else None

    def touch_browser_sessions(self, digests: Collection[str]) -> None:
        self._database.write(lambda t: t.run("touch_browser_sessions", digests=sorted(digests)))

    def end_browser_session(self, by: str, *, number: int | None = None, digest: str | None = None) -> bool:
        return self._database.write(lambda t: keys.end_session(t, by, number, digest))

    def add_ticket(self, digest: str, key: str, lasting: float) -> datetime:
        return self._database.write(lambda t: keys.add_ticket(t, digest, key, lasting))

    def use_ticket(self, digest: str) -> str | None:
        if self._database.read(lambda t: t.one("ticket", digest=digest)) is None:
            return None
        return self._database.write(lambda t: keys.use_ticket(t, digest))
