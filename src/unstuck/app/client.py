"""Client and AsyncClient: everything that can be asked, of a server instead of a database.

A Client has the nouns and verbs of an App, with the same views and exceptions, and the `a` twins for coroutines. The
twins run on threads, as an App's do. An AsyncClient is for programs that are coroutines throughout: its methods have
no `a`, and it needs no threads. Neither knows any code: workflows are named, and checked by the server.
"""

from __future__ import annotations

import os
from typing import Any

from unstuck.app.async_face import AsyncFace
from unstuck.app.face import Face
from unstuck.app.job import Job
from unstuck.app.remote import TIMEOUT, AsyncEngine, RemoteEngine, Server
from unstuck.intake.arguments import ANY_RESULT
from unstuck.model.payload import check_wording
from unstuck.signing import NO_KEYS, SigningKeys


def _signing(source: str | os.PathLike[str] | None) -> SigningKeys:
    return NO_KEYS if source is None else SigningKeys.of(os.fspath(source))


class Client(Face):
    """`with Client("https://jobs.example.org", key="usk_…") as client: client.jobs.list()`. Without `key` that of
    UNSTUCK_KEY, or in the file that UNSTUCK_KEY_FILE names. `timeout`: seconds that all repeats of a question may
    take together. `signing_keys`: a file of signing keys, by which it signs what it enqueues; then `tenant` must be
    named. Threads may share it."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        tenant: str | None = None,
        timeout: float = TIMEOUT,
        allow_http: bool = False,
        signing_keys: str | os.PathLike[str] | None = None,
    ) -> None:
        self._server = Server(url, key, timeout=timeout, allow_http=allow_http)
        self._engine = _ClientEngine(self._server, check_wording(tenant, "tenant"), _signing(signing_keys))

    def __repr__(self) -> str:
        return f"<Client {self._server.address}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections and threads; the next question opens them again."""
        self._engine.close()

    def job(self, name: str, *, tenant: str | None = None) -> Job[Any]:
        """The handle of a job, by id or by as much of its beginning as names one job only."""
        ident, whose = self._engine.named(name, tenant)
        return Job(self._engine, ident, whose, returns=lambda _: ANY_RESULT)


class AsyncClient(AsyncFace):
    """`async with AsyncClient("https://jobs.example.org", key="usk_…") as client: await client.jobs.list()`. It
    belongs to the event loop that asks it first. Its arguments are those of a Client."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        tenant: str | None = None,
        timeout: float = TIMEOUT,
        allow_http: bool = False,
        signing_keys: str | os.PathLike[str] | None = None,
    ) -> None:
        self._server = Server(url, key, timeout=timeout, allow_http=allow_http)
        self._engine = AsyncEngine(self._server, check_wording(tenant, "tenant"), _signing(signing_keys))

    def __repr__(self) -> str:
        return f"<AsyncClient {self._server.address}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of its connections."""
        await self._engine.aclose()


class _ClientEngine(RemoteEngine):
    """It reads no settings: all that it is told stands in the call."""

    def __init__(self, server: Server, tenant: str | None, signing: SigningKeys) -> None:
        super().__init__("client", {}, server)
        self._tenant = tenant
        self._keys = signing

    @property
    def own_tenant(self) -> str | None:
        return self._tenant
