"""How a store is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstuck.model.times import Times

if TYPE_CHECKING:
    from unstuck.store.drivers.leaps import Witness
    from unstuck.store.port import Store


def open_store(
    url: str, times: Times, *, migrate: bool = False, application: str = "unstuck", witness: Witness | None = None
) -> Store:
    """A store on this database. Nothing is connected before its first call, unless it is to migrate."""
    from unstuck.store.drivers.connect import open_database
    from unstuck.store.drivers.leaps import Witness
    from unstuck.store.sql_store import SqlStore

    witness = witness or Witness()
    database = open_database(url, store_call=times.store_call, application=application, witness=witness)
    store = SqlStore(database, key_retention=times.key_retention)
    if migrate:
        store.migrate()
    return store
