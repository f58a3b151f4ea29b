"""DevRun: worker and server of an app, and another worker with every change of its code, until somebody stops it.

New code is imported once by a process that does nothing else (`CodeCheck`); only if that works is the worker
replaced. So what cannot be imported stops nothing that runs. The old worker takes no more jobs; those that it runs
may finish for a moment, then they are handed back, and the new one runs them from their start, uncharged. The server
imports no code of the app: it stays, unless the app names another database.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from unstuck import clock
from unstuck.cli import exits
from unstuck.cli.companion import Leaving
from unstuck.cli.dev.changes import FileChanges
from unstuck.cli.dev.children import DevChild, DevServer, DevWorker
from unstuck.cli.dev.code_check import CodeCheck
from unstuck.cli.dev.file_watch import FileWatch
from unstuck.cli.dev.lines import DevLines
from unstuck.cli.output import count, duration
from unstuck.cli.session import prepare_database, repeated, settings_of
from unstuck.cli.stop_signals import StopSignals
from unstuck.config import Settings, masked
from unstuck.model.errors import StoreError, UnstuckError
from unstuck.records import dataclass

#: Seconds between two looks at our processes: while something is under way, and else.
_BUSY, _CALM = 0.05, 0.5
#: Seconds until what died by itself is started again: the first time, and at most.
_AGAIN, _AGAIN_MOST = 1.0, 30.0
#: So many old workers may still drain; with the next save the oldest hands back at once.
_DRAINING = 2
#: As many lines of a traceback as are shown.
_TRACEBACK = 16


@dataclass(frozen=True, slots=True)
class DevOptions:
    """What `unstuck dev` was asked for. Without a listener there is no server, for the reason that is told."""

    app: str
    #: Settings that the command line names.
    flags: Mapping[str, Any]
    drain: float
    folder: Path
    roots: tuple[Path, ...]
    reloads: bool = True
    #: Options for the worker's own command line, and for the server's.
    worker: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    host: str = ""
    listener: socket.socket | None = None
    address: str | None = None
    #: What is to be said of it.
    served: str = ""
    #: Python knows compiled files by whole seconds and lengths: of two saves in one second it would run the first.
    environ: Mapping[str, str] = field(default_factory=lambda: {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


class DevRun:
    def __init__(self, options: DevOptions, settings: Settings, lines: DevLines, signals: StopSignals) -> None:
        self._options = options
        self._lines = lines
        self._signals = signals
        self._watch = FileWatch(options.roots, signals.wake) if options.reloads else None
        self._limit = settings.times.import_limit
        self._wants_check = True
        self._check: CodeCheck | None = None
        #: What was saved and not imported yet, and when that was noticed; the same of what a starting worker brings.
        self._changes = self._bringing = FileChanges()
        self._noticed = self._since = clock.boot()
        #: What the newest code that can be imported says: in all, and alone.
        self._settings: Settings | None = None
        self._own: Mapping[str, Any] = {}
        #: One that waits for code that can be imported; the one that runs jobs, and whether it is still starting.
        self._next: DevWorker | None = None
        self._worker: DevWorker | None = None
        self._is_awaited = False
        self._server: DevServer | None = None
        self._leaving: list[Leaving] = []
        #: When what died by itself is started again.
        self._again: dict[str, float] = {}
        self._pause = _AGAIN
        self._code: int | None = None

    def run(self) -> int:
        """Until the first signal. Whatever happens, everything that was started is ended."""
        try:
            if self._watch is not None:
                self._watch.start()
            while self._code is None and not self._signals.asked:
                self._tick(clock.boot())
                self._signals.wait(_BUSY if self._is_busy else _CALM)
            return self._code or exits.OK
        finally:
            self._end()

    @property
    def _is_busy(self) -> bool:
        is_rising = self._server is not None and not self._server.is_up
        return bool(self._check or self._leaving or self._is_awaited or self._again or is_rising)

    def _tick(self, now: float) -> None:
        self._look_at_files(now)
        self._look_at_check(now)
        self._look_at_worker(now)
        self._look_at_server(now)
        self._leaving = [leaving for leaving in self._leaving if not leaving.has_ended(now)]

    # --- code -----------------------------------------------------------------------------------------------------
    def _look_at_files(self, now: float) -> None:
        """A save while other code is being imported: that is old already."""
        if self._watch is not None:
            if self._watch.files is None:  # what is saved after they were first looked at is noticed
                return
            if found := self._watch.take():
                self._changes, self._noticed, self._wants_check = self._changes.then(found), now, True
        if self._wants_check:
            self._wants_check = False
            if self._check is not None:
                self._check.cancel()
            self._check = CodeCheck(self._options.app, self._limit, self._options.environ, now)
            self._prepare_worker()

    def _look_at_check(self, now: float) -> None:
        if self._check is None:
            return
        try:
            said = self._check.answer(now)
            if said is None:
                return
            self._check = None
            self._take_up(said, now)
        except UnstuckError as error:
            self._check = None
            if self._watch is None or (self._settings is None and isinstance(error, StoreError)):
                raise
            self._tell_refusal(error)

    def _take_up(self, said: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """This code can be imported: from now on it is what runs."""
        flags = {**self._options.flags, "app": self._options.app}
        settings, before = settings_of(flags, own=said["settings"]), self._settings
        if before is None or before.database != settings.database:
            prepare_database(settings)
        self._settings, self._own, self._pause = settings, said["settings"], _AGAIN
        self._again.pop("worker", None)
        if before is None:
            self._introduce(settings, list(said["workflows"]))
        if before is None or before.database != settings.database:
            self._start_server(settings, now)
        self._bringing, self._since = self._bringing.then(self._changes), self._noticed
        self._changes = FileChanges()
        self._start_worker(settings, now)

    # --- processes ------------------------------------------------------------------------------------------------
    def _prepare_worker(self) -> DevWorker:
        if self._next is None or self._next.code is not None:
            options = self._options
            self._next = DevWorker(options.app, options.drain, options.worker, options.environ)
        return self._next

    def _start_worker(self, settings: Settings, now: float) -> None:
        if self._worker is not None:
            self._let_go(self._worker, now)
        self._worker, self._next = self._prepare_worker(), None
        self._worker.begin(self._own, settings.database)
        self._is_awaited = True

    def _start_server(self, settings: Settings, now: float) -> None:
        if self._server is not None:
            self._let_go(self._server, now)
        if self._options.listener is not None:
            self._server = DevServer(
                settings.database, self._options.host, self._options.listener, self._options.server
            )

    def _let_go(self, child: DevChild, now: float) -> None:
        for impatient in self._leaving[: 1 - _DRAINING]:
            impatient.hurry(now)
        self._leaving.append(child.leave(now))

    def _look_at_worker(self, now: float) -> None:
        if self._worker is not None:
            for news in self._worker.news():
                if news["event"] == "imported" and self._is_awaited:
                    self._tell_ready(int(news["workflows"]), now)
                self._is_awaited = False
            if (code := self._worker.code) is not None:
                self._worker, self._is_awaited = None, False
                self._mourn("worker", code, now)
        elif self._is_due("worker", now) and self._settings is not None:
            self._start_worker(self._settings, now)

    def _look_at_server(self, now: float) -> None:
        if self._server is not None:
            is_up, code = self._server.is_up, self._server.code
            if code is not None and not is_up:  # it has said why
                self._code = code
            elif code is not None:
                self._server = None
                self._mourn("server", code, now)
        elif self._is_due("server", now) and self._settings is not None:
            self._start_server(self._settings, now)

    def _mourn(self, name: str, code: int, now: float) -> None:
        """It ended by itself."""
        if name == "worker" and code == exits.USAGE:  # it has said why; another start would end the same way
            self._code = code if self._watch is None else None
            then = "it starts again when a file is saved"
        else:
            self._again[name] = now + self._pause
            then = f"it starts again in {duration(self._pause)}"
            self._pause = min(2 * self._pause, _AGAIN_MOST)
        if self._code is None:
            how = f"with code {code}" if code >= 0 else f"by signal {-code}"
            self._lines.say(f"{name}_died", f"the {name} ended by itself {how}; {then}", is_loud=True, code=code)

    def _is_due(self, name: str, now: float) -> bool:
        if self._again.get(name, float("inf")) > now:
            return False
        del self._again[name]
        return True

    def _end(self) -> None:
        """A second signal: at once."""
        heard = self._signals.asked
        if self._watch is not None:
            self._watch.stop()
        if self._check is not None:
            self._check.cancel()
        children = [child for child in (self._next, self._worker, self._server) if child is not None]
        left = [*self._leaving, *(child.leave(clock.boot()) for child in children)]
        if self._worker is not None:
            rest = f"running jobs have {duration(self._options.drain)}, then they are handed back"
            self._lines.say("stopping", f"stopping: {rest}; once more ends it at once")
        while left := [leaving for leaving in left if not leaving.has_ended(clock.boot())]:
            self._signals.wait(_BUSY)
            if self._signals.asked > heard:
                heard = self._signals.asked
                for leaving in left:
                    leaving.hurry(clock.boot())
        self._lines.tell_programs("stopped")
        self._lines.finish()

    # --- words ----------------------------------------------------------------------------------------------------
    def _introduce(self, settings: Settings, workflows: list[str]) -> None:
        options, database = self._options, masked(settings.database)
        again = ("app", "database") if settings.origins.get("database") == "flags" else ("app",)
        first = workflows[0] if workflows else "WORKFLOW"
        rows = [("server", options.served), ("watches", self._watched())]
        rows.append(("try", f"unstuck enqueue {first} … --wait{repeated(settings, *again)}    in another terminal"))
        rows.append(("Ctrl-C", f"ends all; running jobs have {duration(options.drain)}, and run again next time"))
        self._lines.head(f"unstuck dev of {options.app} on {database}", rows)
        files = None if self._watch is None else self._watch.files
        self._lines.tell_programs(
            "dev_started", app=options.app, database=database, server=options.address, files=files
        )

    def _watched(self) -> str:
        if self._watch is None:
            return "nothing: --no-reload"
        folders = ", ".join(str(root) for root in self._options.roots)
        return f"{count(self._watch.files or 0, 'file')} of code in {folders}"

    def _tell_ready(self, workflows: int, now: float) -> None:
        number, took = count(workflows, "workflow"), now - self._since
        if self._bringing:
            what, paths = self._bringing.text(self._options.folder), self._bringing.paths
            text = f"{what}: reloaded in {duration(took)}, {number}"
            self._lines.say("reloaded", text, changed=paths, seconds=round(took, 3), workflows=workflows)
        else:
            self._lines.say("ready", f"ready: {number}", workflows=workflows)
        self._bringing = FileChanges()

    def _tell_refusal(self, error: UnstuckError) -> None:
        what = f"{self._changes.text(self._options.folder)}: " if self._changes else ""
        goes_on = "the code from before goes on; " if self._worker is not None else ""
        text = f"{what}{_end_of(str(error))}\n{goes_on}waiting for a fix to be saved"
        self._lines.say("code_refused", text, is_loud=True, changed=self._changes.paths, error=str(error))


def _end_of(error: str) -> str:
    """What happened and the end of its traceback, where the reason is."""
    first, *rest = error.splitlines()
    left_out = len(rest) - _TRACEBACK
    if left_out > 1:
        rest = [f"  … {left_out} lines before", *rest[-_TRACEBACK:]]
    return "\n".join([first, *rest])
