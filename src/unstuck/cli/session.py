"""What every command needs: the settings, a store, and whose jobs. Opened for one command, closed after it."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from unstuck.intake.control import Control
from unstuck.model.errors import InvalidInput, SchemaMismatch, StoreUnavailable, UnknownWorkflowName
from unstuck.model.job import JobRecord, WorkerRecord, WorkflowRecord
from unstuck.observe.lookup import Lookup
from unstuck.observe.wait import wait_for_end

if TYPE_CHECKING:
    from unstuck.config import Settings
    from unstuck.store.port import Store

Missing = Literal["refuse", "create", "ignore"]


@dataclass
class Session:
    settings: Settings
    store: Store
    tenant: str

    @cached_property
    def control(self) -> Control:
        return Control(self.store, tenant=self.tenant, by=_who())

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(self.store, tenant=self.tenant, offline=self.settings.times.offline)

    def now(self) -> datetime:
        return self.store.now()

    def job(self, name: str) -> JobRecord:
        return self.lookup.job(name)

    def wait(self, job: str, timeout: float | None) -> JobRecord:
        """The job once it has ended, or as it stands when the time is over."""
        return wait_for_end(lambda: self.job(job), timeout) or self.job(job)

    def workers(self) -> list[tuple[WorkerRecord, str]]:
        """Each worker with its state as others see it: active, draining, lost, offline (silent too long), gone."""
        now, offline = self.now(), timedelta(seconds=self.settings.times.offline)
        return [(worker, _seen(worker, now, offline)) for worker in self.store.workers()]

    def submit(
        self, workflow: str, args: Sequence[Any], kwargs: Mapping[str, Any], how: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """One job of a workflow, known by the app's code or by the row that its workers registered."""
        from unstuck.intake.schema import pack
        from unstuck.intake.submit import Options, Submitter

        known = self._workflow(workflow)
        submitter = Submitter(self.store, tenant=self.tenant, max_timeout=self.settings.times.max_timeout)
        payload = pack(known.name, known.schema, args, kwargs)
        [stored] = submitter.submit([submitter.job(known, payload, Options().with_(**how))])
        return stored.id, stored.created

    def _workflow(self, name: str) -> WorkflowRecord:
        if self.settings.app:
            records = workflows_of(self.settings.app)
            if name in records:
                return records[name]
            raise UnknownWorkflowName(name, records)
        if (row := self.store.workflow(name)) is not None:
            return row
        raise UnknownWorkflowName(name, (w.name for w in self.store.workflows()))

    @property
    def shown_database(self) -> str:
        from unstuck.config import masked

        return masked(self.settings.database)

    def shipped_version(self) -> int:
        from unstuck.store.migrations import shipped

        dialect = "postgres" if is_postgres(self.settings.database) else "sqlite"
        return max((migration.number for migration in shipped(dialect)), default=0)

    def pause(self, seconds: float) -> None:
        threading.Event().wait(seconds)


@contextmanager
def opened(
    database: str | None, tenant: str | None, *, app: str | None = None, missing: Missing = "refuse"
) -> Iterator[Session]:
    """A session on the database that flags, environment and files name; `missing`: what to do if it is not there."""
    from unstuck.assembly import open_store

    settings = settings_of({"database": database, "tenant": tenant, "app": app})
    if missing == "create":
        prepare_database(settings)
    elif missing == "refuse":
        _must_exist(settings.database)
    store = open_store(settings.database, settings.times, application="unstuck cli")
    try:
        yield Session(settings, store, settings.tenant)
    finally:
        store.close()


def settings_of(flags: Mapping[str, Any], *, ask_app: bool = False) -> Settings:
    """Defaults < preset < file < environment < the app's own code < these flags; a flag of None was not given.

    The app is asked when the command needs all of its settings, or when nothing else names a database.
    """
    from unstuck.config import load

    settings = load(flags)
    is_known = "database" in settings.origins
    if not settings.app or (is_known and not ask_app):
        return settings
    try:
        own = own_settings(settings.app, settings.times.import_limit)
    except InvalidInput:
        if is_known:  # a worker tries the import again, later each time, and shows it in `unstuck workers`
            return settings
        raise
    return load(flags, app=own)


def own_settings(app: str, limit: float) -> dict[str, Any]:
    """What `App(…)` says in the code, asked in a process of its own: importing user code may do anything."""
    command = [sys.executable, "-m", "unstuck.executor.loading", app]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=limit, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"app {app} cannot be imported: it took longer than {limit:g} s") from None
    if asked.returncode != 0:
        raise InvalidInput(f"app {app} cannot be imported:\n{asked.stderr.strip()}")
    given: dict[str, Any] = json.loads(asked.stdout.strip().splitlines()[-1])
    return given


def prepare_database(settings: Settings) -> None:
    """An empty database gets its tables, SQLite is kept up to date; PostgreSQL is never upgraded behind your back."""
    from unstuck.assembly import open_store

    store = open_store(settings.database, settings.times, application="unstuck cli")
    try:
        if not is_postgres(settings.database) or store.schema_version() == 0:
            store.migrate()
        session = Session(settings, store, settings.tenant)
        if (found := store.schema_version()) < (wanted := session.shipped_version()):
            raise SchemaMismatch(
                f"the schema of {session.shown_database} is version {found}, this code needs {wanted}; "
                "run: unstuck db migrate"
            )
    finally:
        store.close()


def _must_exist(url: str) -> None:
    """A mistyped path must not make a new, empty database that then looks like lost jobs."""
    if is_postgres(url):
        return
    from unstuck.store.connect import sqlite_path

    path = sqlite_path(url)
    if not path.exists():
        raise StoreUnavailable(
            f"there is no database {path}; say which with --database or UNSTUCK_DATABASE, "
            "or make this one: unstuck db migrate"
        )


def is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def workflows_of(app: str) -> dict[str, WorkflowRecord]:
    """What the app's own code says about its workflows; importing it is the caller's wish, not its fault."""
    from unstuck.executor.loading import load_registry

    try:
        return {record.name: record for record in load_registry(app).records()}
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(f"app {app} cannot be imported: {type(error).__name__}: {error}") from error


def _seen(worker: WorkerRecord, now: datetime, offline: timedelta) -> str:
    if worker.state == "gone":  # it left in order, however long ago
        return "gone"
    if now - worker.heartbeat_at > offline:
        return "offline"
    return worker.state if worker.lease_until > now else "lost"


def _who() -> str:
    """Who asked, for the history."""
    try:
        return f"{getpass.getuser()} (cli)"
    except (KeyError, OSError):
        return f"uid {os.getuid()} (cli)"
