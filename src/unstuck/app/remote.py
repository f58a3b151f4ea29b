"""RemoteEngine: an engine without a database, which asks a server. AsyncEngine: the same for coroutines alone.

Nothing is imported or opened before the first question: every executor imports its App, and most ask nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from unstuck import tracing
from unstuck.app.cancellable_clock import CancellableClock, longest_look
from unstuck.app.engine import Engine
from unstuck.app.job import Job
from unstuck.app.workflow import Calls, Submit
from unstuck.client.address import ApiKey, check_secret_travels_safely, server_address
from unstuck.intake.submit import UNSAID, Options
from unstuck.model.errors import InvalidInput, UnstuckError
from unstuck.signing import NO_KEYS, SigningKeys
from unstuck.tracing import TracedSubmit

if TYPE_CHECKING:
    from unstuck.app.code import AppCode
    from unstuck.client.asking import Asking, Steps
    from unstuck.client.signing import RequestSigner
    from unstuck.client.streams import Question
    from unstuck.client.transport import AsyncTransport, Transport
    from unstuck.observe.lookup import Lookup
    from unstuck.observe.stream import AsyncStream, Source, Stream
    from unstuck.operations.kinds import Duration
    from unstuck.operations.table import Caller, Operation
    from unstuck.store.port import Store
    from unstuck.views.jobs import JobView
    from unstuck.views.why import WhyAnswer

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")

#: Seconds that all repeats of a question may take together, unless somebody says otherwise.
TIMEOUT = 30.0
#: Seconds between two waits for the same job.
SOON = 0.02
#: So many jobs, with so many bytes of arguments, go in one request.
BATCH = 500
LARGEST_BATCH = 1_000_000


class Server:
    """Where a server is, and how to speak to it. The key is read when it is first needed, and never shown."""

    def __init__(self, url: str, key: str | None, *, timeout: float = TIMEOUT, allow_http: bool = False) -> None:
        self.address = server_address(url)
        self._given = key
        self._timeout = timeout
        self._allow_http = allow_http
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3600:
            raise InvalidInput("timeout= is a number of seconds, above 0 and at most an hour")
        if key is not None:
            self._key()

    def __repr__(self) -> str:
        return f"<Server {self.address}>"

    def asking(self) -> Asking:
        from unstuck.client.asking import Asking

        return Asking(self.address, self._timeout)

    def transport(self) -> Transport:
        _check_extra()
        from unstuck.client.transport import Transport

        return Transport(self.address, self._key())

    def atransport(self) -> AsyncTransport:
        _check_extra()
        from unstuck.client.transport import AsyncTransport

        return AsyncTransport(self.address, self._key())

    def _key(self) -> ApiKey | None:
        key = ApiKey.found(self._given)
        if key is not None:
            check_secret_travels_safely(self.address, allow_http=self._allow_http)
        return key


def _check_extra() -> None:
    try:
        import httpx2 as httpx2
    except ImportError:
        raise InvalidInput("to ask a server httpx2 is needed: pip install 'unstuck[client]'") from None


def about(
    operation: Operation[Any, Any], tenant: str | None, by: str | None, kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The named arguments of a request."""
    return {**kwargs, "tenant": None if operation.entry.whose == "platform" else tenant, "by": by}


def traced(
    operation: Operation[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> AbstractContextManager[object]:
    """A span around a submit. The server makes none: what we send as headers is what the job carries."""
    if operation.name != "jobs.enqueue" or not tracing.is_used():
        return nullcontext()
    return TracedSubmit(kwargs.get("queue"), str(args[0] if args else kwargs.get("workflow")))


class RemoteEngine(Engine):
    def __init__(self, name: str | None, given: dict[str, Any], server: Server) -> None:
        super().__init__(name, given)
        self._server = server
        self._transport: Transport | None = None
        self._asking: Asking | None = None
        self._signer: RequestSigner | None = None

    # --- ask --------------------------------------------------------------------------------------------------

    def ask(
        self, operation: Operation[P, V], tenant: str | None, by: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> V:
        whose = tenant or self.own_tenant
        if operation.name == "jobs.enqueue" and self.signer.keys:
            [request] = self._signed([{**kwargs, **_named(args)}], whose)
            return self._asked(operation, whose, by, (), request)
        return self._asked(operation, whose, by, args, kwargs)

    def _asked(
        self,
        operation: Operation[Any, V],
        tenant: str | None,
        by: str | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> V:
        with traced(operation, args, kwargs):
            return self._driven(self.asking.steps(operation, args, about(operation, tenant, by, kwargs)))

    @property
    def signer(self) -> RequestSigner:
        """By the signing keys of this process; without any it signs nothing."""
        if self._signer is None:
            from unstuck.client.signing import RequestSigner

            self._signer = RequestSigner(self.signing)
        return self._signer

    def _signed(self, submits: list[dict[str, Any]], tenant: str | None) -> list[dict[str, Any]]:
        from unstuck.operations import workflows

        key = self.signer.signer(tenant)
        if key is None or tenant is None:
            for submit in submits:
                if not _is_signed(submit):
                    self.signer.check_unsigned(tenant, submit)
            return submits
        found = []
        for submit in submits:
            name = str(submit["workflow"])
            row = self.signer.row(tenant, name)
            if row is None:
                row = self.signer.keep(tenant, self.ask(workflows.get, tenant, None, name))
            found.append(submit if _is_signed(submit) else self.signer.signed(key, tenant, row, submit))
        return found

    def wait(self, operation: Operation[Any, JobView], tenant: str | None, job: str, *, timeout: Duration) -> JobView:
        """The server waits; here it is only looked, now and then, whether the caller is to stop."""
        from unstuck.observe.wait import wait_for_end
        from unstuck.operations.kinds import patience

        def look(name: str, within: float = 0.0) -> JobView:
            return self.ask(operation, tenant, None, name, timeout=min(within, longest_look()))

        most, seen = patience(timeout), look(job)
        if seen.state.is_final or not most:
            return seen
        ident = seen.id
        ended = wait_for_end(lambda: look(ident), most, CancellableClock(), lambda within: look(ident, within))
        return ended or look(ident)

    def follow(
        self, operation: Operation[P, Source[V]], tenant: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[V]:
        from unstuck.observe.stream import Stream

        return Stream(self._source(operation, tenant, args, kwargs), clock=CancellableClock())

    def afollow(
        self, operation: Operation[P, Source[V]], tenant: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[V]:
        from unstuck.observe.stream import AsyncStream

        def open_() -> Source[V]:
            # Without patience: there are few threads, and a look holds one.
            return self._source(operation, tenant, args, kwargs, lambda: 0.0)

        return AsyncStream(lambda: self.in_thread(open_), lambda source: self.in_thread(source.look))

    def enqueue(self, submits: list[dict[str, Any]], tenant: str | None) -> list[Any]:
        """One answer for each, in its place: a NewJobView, or the exception that it would raise."""
        whose = tenant or self.own_tenant
        if self.signer.keys:
            submits = self._signed(submits, whose)
        with TracedSubmit(submits[0].get("queue"), submits[0]["workflow"], len(submits)):
            return self._driven(self.asking.batch(submits, whose))

    @property
    def asking(self) -> Asking:
        if self._asking is None:
            self._asking = self._server.asking()
        return self._asking

    def _driven(self, steps: Steps[V]) -> V:
        from unstuck.client.asking import drive

        if self._transport is None:
            self._transport = self._server.transport()
        return drive(steps, self._transport.send, CancellableClock())

    @property
    def own_tenant(self) -> str | None:
        """The tenant that settings name; None: none does, and the server goes by the key."""
        settings = self.config
        return settings.tenant if "tenant" in settings.origins else None

    def _source(
        self,
        operation: Operation[Any, Any],
        tenant: str | None,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        patience: Callable[[], float] = longest_look,
    ) -> Source[Any]:
        from unstuck.client.streams import AskedSource, source

        def ask(question: Question) -> Any:
            return self.ask(question.operation, tenant, None, *question.args, **question.kwargs)

        return AskedSource(source(operation, args, kwargs, patience), ask)

    # --- jobs -------------------------------------------------------------------------------------------------

    def reading(self, tenant: str) -> RemoteReading:
        return RemoteReading(self, tenant)

    def named(self, job: str, tenant: str | None) -> tuple[str, str]:
        """Asked of the server: the key decides whose jobs are meant."""
        from unstuck.operations import jobs

        found = self.ask(jobs.wait, tenant, None, job, timeout=0)
        return found.id, found.tenant

    def prepared(self, code: AppCode, workflow: str, options: Options) -> Submit:
        """The arguments are checked here, by the handler's signature; the rest by the server, and by the row that its
        workers registered. What the code says of queue, policy, target and limits counts where the worker is."""
        arguments, said = code.drafts[workflow].resolved(), _said(workflow, options)

        def returns(_: str) -> Any:
            return arguments.returns

        def submit(calls: Calls) -> list[Job[Any]]:
            payloads = [arguments.pack(args, kwargs) for args, kwargs in calls]
            if options.id is not None and len(payloads) > 1:
                raise InvalidInput(f"id={options.id!r} names one job, and these are {len(payloads)}")
            found: list[Any] = []
            for batch in _batches(payloads):
                submits = [{**said, **json.loads(payload)} for payload in batch]
                found += self._accepted(submits, options.tenant, len(found), len(payloads))
            return [self._handle(view, returns) for view in found]

        return submit

    def _accepted(self, submits: list[dict[str, Any]], tenant: str | None, stored: int, count: int) -> list[Any]:
        from unstuck.operations import jobs

        try:
            if count == 1:
                return [self.ask(jobs.enqueue, tenant, None, **submits[0])]
            answers = self.enqueue(submits, tenant)
            stored += sum(not isinstance(answer, UnstuckError) for answer in answers)
            for answer in answers:
                if isinstance(answer, UnstuckError):
                    raise answer
        except UnstuckError as error:
            if stored:
                error.add_note(f"{stored} of {count} jobs were stored; each call is accepted or refused by itself")
            raise
        return answers

    def _handle(self, view: Any, returns: Any) -> Job[Any]:
        job: Job[Any] = Job(self, view.id, view.tenant, returns=returns, is_new=view.created)
        job.seen = view
        return job

    # --- what it does not have --------------------------------------------------------------------------------

    def check_database(self) -> None:
        raise self._needs_database()

    @property
    def store(self) -> Store:
        raise self._needs_database()

    def caller(self, tenant: str | None = None, by: str | None = None) -> Caller:
        raise self._needs_database()

    def lookup(self, tenant: str | None = None) -> Lookup:
        raise self._needs_database()

    def _needs_database(self) -> InvalidInput:
        return InvalidInput(
            f"this needs the database itself, and the App was given a server, {self._server.address}; give it "
            "sqlite:///… or postgresql://… where that can be reached"
        )

    def close(self) -> None:
        super().close()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()


class RemoteReading:
    """What the handle of a job reads, over HTTP: a look is a view already."""

    is_patient = True

    def __init__(self, engine: RemoteEngine, tenant: str) -> None:
        from unstuck.app.nouns import JobsNoun

        self._engine = engine
        self._jobs = JobsNoun(engine)
        self._tenant = tenant

    def look(self, job: str, within: float = 0.0) -> JobView:
        from unstuck.operations import jobs

        return self._engine.ask(jobs.wait, self._tenant, None, job, timeout=min(within, longest_look()))

    def view(self, looked: JobView) -> JobView:
        return looked

    def result(self, looked: JobView) -> Any:
        return looked.result

    def progress(self, job: str) -> Any:
        return self._jobs.get(job, last=1, tenant=self._tenant).progress

    def parent(self, job: str) -> str | None:
        return self._jobs.get(job, last=1, tenant=self._tenant).parent

    def why(self, job: str) -> WhyAnswer:
        return self._jobs.why(job, tenant=self._tenant)


class AsyncEngine:
    """What the nouns of an AsyncClient ask: the coroutines of one event loop, no threads."""

    def __init__(self, server: Server, tenant: str | None, signing: SigningKeys = NO_KEYS) -> None:
        from unstuck.client.signing import RequestSigner

        self._asking = server.asking()
        self._transport = server.atransport()
        self._tenant = tenant
        self._signer = RequestSigner(signing)

    async def aask(
        self, operation: Operation[P, V], tenant: str | None, by: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> V:
        whose = tenant or self._tenant
        if operation.name == "jobs.enqueue" and self._signer.keys:
            return await self._asked(operation, whose, by, (), await self._signed({**kwargs, **_named(args)}, whose))
        return await self._asked(operation, whose, by, args, kwargs)

    async def _asked(
        self,
        operation: Operation[Any, V],
        tenant: str | None,
        by: str | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> V:
        from unstuck.client.asking import adrive

        with traced(operation, args, kwargs):
            steps = self._asking.steps(operation, args, about(operation, tenant, by, kwargs))
            return await adrive(steps, self._transport.asend)

    async def _signed(self, submit: dict[str, Any], tenant: str | None) -> dict[str, Any]:
        from unstuck.operations import workflows

        key, name = self._signer.signer(tenant), str(submit["workflow"])
        if key is None or tenant is None or _is_signed(submit):
            if not _is_signed(submit):
                self._signer.check_unsigned(tenant, submit)
            return submit
        row = self._signer.row(tenant, name)
        if row is None:
            found = await self.aask(workflows.get, tenant, None, name)
            row = self._signer.keep(tenant, found)
        return self._signer.signed(key, tenant, row, submit)

    async def await_(
        self, operation: Operation[Any, JobView], tenant: str | None, job: str, *, timeout: Duration
    ) -> JobView:
        """The server waits. One that leaves answers before the time is over: then the next one is asked."""
        import asyncio

        from unstuck.clock import MachineClock
        from unstuck.operations.kinds import patience

        clock, most = MachineClock(), patience(timeout)
        until, left = clock.boot() + most, most
        while True:
            seen = await self.aask(operation, tenant, None, job, timeout=left)
            left = until - clock.boot()
            if seen.state.is_final or left <= 0:
                return seen
            await asyncio.sleep(SOON)

    def afollow(
        self, operation: Operation[P, Source[V]], tenant: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[V]:
        from unstuck.client.streams import AwaitedSource, source
        from unstuck.observe.stream import AsyncStream

        async def ask(question: Question) -> Any:
            return await self.aask(question.operation, tenant, None, *question.args, **question.kwargs)

        async def open_() -> AwaitedSource[V]:
            return AwaitedSource(source(operation, args, kwargs), ask)

        return AsyncStream(open_, AwaitedSource.alook)

    async def aclose(self) -> None:
        await self._transport.aclose()


def _named(args: Sequence[Any]) -> dict[str, Any]:
    """`jobs.enqueue` takes its workflow by place too."""
    return {"workflow": args[0]} if args else {}


def _is_signed(submit: Mapping[str, Any]) -> bool:
    return submit.get("signature") is not None


def _batches(payloads: Sequence[str]) -> Iterator[list[str]]:
    """As many at a time as a server takes in one request."""
    batch: list[str] = []
    size = 0
    for payload in payloads:
        length = len(payload.encode())
        if batch and (len(batch) == BATCH or size + length > LARGEST_BATCH):
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += length
    if batch:
        yield batch


def _said(workflow: str, options: Options) -> dict[str, Any]:
    """The options of a job as `jobs.enqueue` takes them; what was not said is left out."""
    own = {each.name: getattr(options, each.name) for each in fields(options)}
    own.pop("tenant")
    return {"workflow": workflow, **{name: value for name, value in own.items() if value is not UNSAID}}
