"""Asker: what a command asks, of the database itself or with `--server` of a server; the answers are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from unstuck.cli.session import opened, settings_of
from unstuck.model.errors import InvalidInput
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.cli.options import CommonAnywhere
    from unstuck.config import Settings
    from unstuck.operations.table import Operation
    from unstuck.store.port import Store

V = TypeVar("V")


class AskFunction(Protocol):
    def __call__(self, operation: Operation[Any, V], /, *args: Any, **kwargs: Any) -> V: ...


@dataclass(frozen=True, slots=True)
class Asker:
    """`where`: what is asked, as people may see it. `store`: None: a server is asked."""

    ask: AskFunction
    where: str
    settings: Settings
    store: Store | None


@contextmanager
def asked(common: CommonAnywhere, by: str | None = None) -> Iterator[Asker]:
    """Of what flags name, or environment and files; who asks is whose shell this is, or whose key."""
    if common.server is not None:
        with _server(common, by) as asker:
            yield asker
        return
    if common.key or common.allow_http:
        raise InvalidInput("--key and --allow-http are about a server: name it with --server URL")
    with opened(common) as session:
        caller = session.caller.about(by=by)

        def ask(operation: Operation[Any, V], /, *args: Any, **kwargs: Any) -> V:
            return operation(caller, *args, **kwargs)

        yield Asker(ask, session.shown_database, session.settings, session.store)


@contextmanager
def _server(common: CommonAnywhere, by: str | None) -> Iterator[Asker]:
    from unstuck.app.remote import RemoteEngine, Server

    if common.database is not None:
        raise InvalidInput("--server and --database: one of them is asked")
    assert common.server is not None
    server = Server(common.server, common.key, allow_http=common.allow_http)
    engine = RemoteEngine("cli", {"tenant": common.tenant}, server)

    def ask(operation: Operation[Any, V], /, *args: Any, **kwargs: Any) -> V:
        return engine.ask(operation, None, by if operation.entry.effect == "change" else None, *args, **kwargs)

    try:
        yield Asker(ask, server.address, settings_of(common.flags), None)
    finally:
        engine.close()
