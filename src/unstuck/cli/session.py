"""What every command needs: the settings, a store, and whose jobs. Opened for one command, closed after it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unstuck.cli.excerpt import told
from unstuck.model.errors import (
    InvalidInput,
    NotAnApp,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    UnknownWorkflowName,
    UnstuckError,
)
from unstuck.model.spelling import given
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.cli.options import CommonPlatform
    from unstuck.config import Settings
    from unstuck.intake.submit import Options
    from unstuck.model.job import JobRecord, WorkflowRecord
    from unstuck.observe.lookup import Lookup
    from unstuck.operations.table import Caller
    from unstuck.sealing import Sealer
    from unstuck.signing import SigningKeys
    from unstuck.store.port import Store
    from unstuck.views.jobs import JobView, NewJobView

Missing = Literal["refuse", "create", "ignore"]


@dataclass
class Session:
    settings: Settings
    store: Store
    tenant: str

    @property
    def own(self) -> str | None:
        """The tenant that flags or environment name; None: they name none, and all are meant."""
        return self.tenant if "tenant" in self.settings.origins else None

    @cached_property
    def caller(self) -> Caller:
        """Whose shell this is, about the tenant that flags or environment name."""
        from unstuck.operations.table import Caller

        repeats = repeated(self.settings, "database")
        where = self.shown_database
        own, times, keys = self.own, self.settings.times, partial(signing_of, self.settings)
        sealer = partial(sealer_of, self.settings)
        return Caller(
            self.store,
            _who(),
            own,
            times,
            database=where,
            repeats=repeats,
            signing=keys,
            signs=True,
            sealer=sealer,
        )

    @cached_property
    def lookup(self) -> Lookup:
        from unstuck.observe.lookup import Lookup

        return Lookup(self.store, tenant=self.tenant, offline=self.settings.times.offline)

    def now(self) -> datetime:
        return self.store.now()

    def job(self, name: str) -> JobRecord:
        return self.lookup.job(name)

    def wait(self, job: str, timeout: float | None) -> JobView:
        """The job once it has ended, or as it stands when the time is over; what keeps it from running is told."""
        from unstuck.cli import output
        from unstuck.observe.outlook import Outlook
        from unstuck.observe.wait import wait_for_end
        from unstuck.observe.why import why
        from unstuck.operations import jobs

        def look(name: str) -> JobView:
            return jobs.wait(self.caller, name, timeout=0)

        ident = look(job).id
        outlook = Outlook(lambda: why(self.store, self.tenant, ident, self.settings.times), output.note)
        return wait_for_end(lambda: outlook.of(look(ident)), timeout) or look(ident)

    def submit(self, asked: CheckedRequest) -> NewJobView:
        """One job of a workflow, known by the app's code or by the row that its workers registered."""
        from unstuck.operations import submitting

        job = submitting.AskedJob.of(self.caller, asked.workflow, asked.args, asked.kwargs, asked.options)
        return submitting.submit(job, asked.known)

    @property
    def shown_database(self) -> str:
        from unstuck.config import masked

        return masked(self.settings.database)

    def pause(self, seconds: float) -> None:
        from threading import Event

        Event().wait(seconds)


@dataclass(frozen=True)
class CheckedRequest:
    """What a caller wants to run, checked as far as the code at hand allows, before any database is touched."""

    workflow: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Options
    known: WorkflowRecord | None

    @classmethod
    def of(
        cls, settings: Settings, workflow: str, args: Sequence[Any], kwargs: Mapping[str, Any], how: Mapping[str, Any]
    ) -> CheckedRequest:
        from unstuck.intake.submit import Options

        asked = cls(workflow, args, kwargs, Options().with_(**how), _known_by_code(settings, workflow))
        if asked.known is not None:
            asked.payload(asked.known)
        elif not exists(settings.database):
            raise UnknownWorkflowName(
                workflow,
                hint=f"there is no database {_path_of(settings.database)} yet: name the app with --app MODULE:APP, "
                "or the database with --database",
            )
        return asked

    @property
    def is_known(self) -> bool:
        return self.known is not None

    def payload(self, known: WorkflowRecord) -> str:
        from unstuck.intake.schema import pack

        return pack(known.name, known.schema, self.args, self.kwargs)


def _known_by_code(settings: Settings, workflow: str) -> WorkflowRecord | None:
    """As the app's own code knows it; None if no app is named."""
    if not settings.app:
        return None
    records = workflows_of(settings.app)
    if workflow not in records:
        raise UnknownWorkflowName(workflow, records)
    return records[workflow]


@contextmanager
def opened(common: CommonPlatform, *, missing: Missing = "refuse") -> Iterator[Session]:
    """A session on the database that flags, environment and files name; `missing`: what to do if it is not there."""
    with session_on(settings_of(common.flags), missing=missing) as session:
        yield session


@contextmanager
def session_on(settings: Settings, *, missing: Missing = "refuse") -> Iterator[Session]:
    from unstuck.assembly.store import open_store

    if missing == "create":
        prepare_database(settings)
    elif missing == "refuse":
        _must_exist(settings)
    store = open_store(settings.database, settings.times, application="unstuck cli")
    session = Session(settings, store, settings.tenant)
    try:
        yield session
    except SchemaMismatch as error:
        raise _remedy(session) or error from None
    except UnstuckError:
        raise
    except Exception as error:
        # A row of another schema looks like a bug of ours.
        if (remedy := _remedy(session)) is not None:
            raise remedy from error
        raise
    finally:
        store.close()


def _remedy(session: Session) -> SchemaMismatch | None:
    """The database knows tables, the person a command: what to run, if running it would help."""
    try:
        found, wanted = session.store.schema_version(), session.store.shipped_version()
    except SchemaMismatch as better:
        return better
    except StoreError:
        return None
    if found == 0:
        return SchemaMismatch(
            f"{session.shown_database} has no tables yet; make them: {how_to_migrate(session.settings)} "
            "(the first worker makes them too, and so does the first job that is enqueued with --app)"
        )
    return _behind(session, found, wanted) if found < wanted else None


def _behind(session: Session, found: int, wanted: int) -> SchemaMismatch:
    return SchemaMismatch(
        f"the schema of {session.shown_database} is version {found}, this code needs {wanted}; "
        f"run: {how_to_migrate(session.settings)}"
    )


def settings_of(
    flags: Mapping[str, Any],
    *,
    ask_app: bool = False,
    insist: bool = False,
    own: Mapping[str, Any] | None = None,
    ask: Callable[[Settings], Mapping[str, Any]] | None = None,
) -> Settings:
    """Defaults < preset < file < environment < the app's own code < these flags; a flag of None was not given.

    The app is asked when the command needs all of its settings, or when nothing else names a database; `insist`: one
    that cannot be imported is an error, even if the database is known; `own`: what it answered when somebody asked it
    before; `ask`: another way to ask it.
    """
    from unstuck.config import load

    if own is not None:
        return load(flags, app=own)
    settings = load(flags)
    is_known = "database" in settings.origins
    if not settings.app or (is_known and not ask_app):
        return settings
    try:
        own = (ask or _said)(settings)
    except NotAnApp:
        raise
    except InvalidInput:
        if is_known and not insist:  # a worker tries again, later each time, and shows it in `unstuck workers`
            return settings
        raise
    return load(flags, app=own)


def _said(settings: Settings) -> Mapping[str, Any]:
    return told_by(settings.app or "", settings.times.import_limit)["settings"]


def told_by(app: str, limit: float) -> dict[str, dict[str, Any]]:
    """What `App(…)` and its decorators say in the code, asked in a process of its own: importing user code may do
    anything."""
    import subprocess

    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(question(app), text=True, env=without_keys(os.environ), **pipes) as asked:
        try:
            out, err = asked.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise took_too_long(app, limit) from None
        finally:
            asked.kill()  # of what has ended nothing is left to kill
    return answer(app, asked.returncode, out, err)


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """For a process that imports user code: that has no business with signing keys, nor with those that seal."""
    return {n: value for n, value in environ.items() if n not in ("UNSTUCK_SIGNING_KEYS", "UNSTUCK_SEALING_KEYS")}


def question(app: str) -> list[str]:
    """The command that asks an app what its code says, in a process of its own."""
    return [sys.executable, "-m", "unstuck.executor.loading", app]


def took_too_long(app: str, limit: float) -> InvalidInput:
    return InvalidInput(f"app {app} cannot be imported: it took longer than {limit:g} s")


def answer(app: str, code: int, out: str, err: str) -> dict[str, dict[str, Any]]:
    """What that process said, or why it could not."""
    from unstuck.executor.loading import NOT_AN_APP

    if code == NOT_AN_APP and (words := out.split()):
        raise NotAnApp(app, words[-1])
    if code != 0:
        raise InvalidInput(told(f"app {app} cannot be imported", err or f"exit code {code}"))
    found: dict[str, dict[str, Any]] = json.loads(out.strip().splitlines()[-1])
    return found


def signing_of(settings: Settings) -> SigningKeys:
    """InvalidSettings if the keys cannot be read, or a signature is required and there is none."""
    from unstuck.signing import SigningKeys

    return SigningKeys.of(settings.signing_keys, settings.require_signature)


def sealer_of(settings: Settings) -> Sealer:
    """InvalidSettings if the sealing keys cannot be read."""
    from unstuck.sealing import Sealer

    return Sealer.of(settings.sealing_keys)


def signing_file(settings: Settings) -> str | None:
    """Where the keys are; None: there are none, or their text stands in the settings."""
    return None if settings.signing_keys is None or "[[key]]" in settings.signing_keys else settings.signing_keys


def prepare_database(settings: Settings) -> None:
    """Before a command that submits or runs jobs: see `Store.prepare_schema`."""
    from unstuck.assembly.store import open_store

    store = open_store(settings.database, settings.times, application="unstuck cli")
    try:
        if not store.prepare_schema():
            session = Session(settings, store, settings.tenant)
            raise _behind(session, store.schema_version(), store.shipped_version())
    finally:
        store.close()


def _must_exist(settings: Settings) -> None:
    """A mistyped path must not make a new, empty database that then looks like lost jobs."""
    if not exists(settings.database):
        raise StoreUnavailable(
            f"there is no database {_path_of(settings.database)}; say which with --database or UNSTUCK_DATABASE, "
            f"or make this one: {how_to_migrate(settings)}"
        )


def how_to_migrate(settings: Settings) -> str:
    return f"unstuck db migrate{repeated(settings, 'database')}"


def repeated(settings: Settings, *options: str) -> str:
    """The options that a command which is shown must repeat: those that only this command line knows, not those that
    the environment or a file will say again. A password stays hidden."""
    from unstuck.config import masked

    own = {name for name, origin in settings.origins.items() if origin == "flags"}
    if "app" in own and settings.origins.get("database") == "app":
        own.add("database")
    return "".join(f" {given(f'--{name}', masked(getattr(settings, name)))}" for name in options if name in own)


def exists(url: str) -> bool:
    """Of PostgreSQL only the server knows."""
    return is_postgres(url) or _path_of(url).exists()


def _path_of(url: str) -> Path:
    from unstuck.store.drivers.connect import sqlite_path

    return sqlite_path(url)


def is_postgres(url: str) -> bool:
    from unstuck.store.drivers import connect

    return connect.is_postgres(url)


def workflows_of(app: str) -> dict[str, WorkflowRecord]:
    """What the app's own code says about its workflows; importing it is the caller's wish, not its fault."""
    from unstuck.executor.loading import load_registry

    try:
        return {record.name: record for record in load_registry(app).records()}
    except (InvalidInput, KeyboardInterrupt):
        raise
    except BaseException:  # an import may do anything, even leave
        import traceback

        raise InvalidInput(told(f"app {app} cannot be imported", traceback.format_exc())) from None


def _who() -> str:
    """Who asked, for the history."""
    import getpass

    from unstuck.model.waits import BY_SHELL

    try:
        return f"{getpass.getuser()}{BY_SHELL}"
    except (KeyError, OSError):
        return f"uid {os.getuid()}{BY_SHELL}"
