"""The zygote: imports the app once, alone in its thread; forks executors, reaps them, guards the lease.

A worker starts it before it knows how it is to run, because the app's own code has a say in that: it tells the
settings that it finds, and waits for its terms.

It stands between the supervisor and everything that runs user code. As sub-reaper it adopts what executors leave
behind; when the supervisor dies it kills them all and ends; when the lease in its own page has passed it kills them
even if the supervisor is frozen. It keeps none of the executors' descriptors: one executor must not hold another's
socket open.

Where forking is not safe it replaces itself, same pid and same duties, by a guard without user code (`exec`), which
starts executors as programs of their own (fallback.py).
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import select
import signal
import socket
import sys
import traceback
from dataclasses import replace
from typing import Any, Literal, NoReturn

import msgspec

from unstuck.clock import boot
from unstuck.executor import fallback, forking, process
from unstuck.executor.bootstrap import Descriptors, begin
from unstuck.executor.capture import route_streams
from unstuck.executor.descendants import Descendant, executor_of, kill_where, look_at, processes
from unstuck.executor.loading import load_app, registry_of, settings_in
from unstuck.executor.messages import (
    AppFailed,
    AppFound,
    AppImported,
    ExitedMessage,
    Fork,
    Forked,
    FrameReader,
    NotForked,
    WorkerTerms,
    pack,
    to_zygote,
)
from unstuck.executor.page import SharedPage
from unstuck.executor.tagging import TagPlace
from unstuck.executor.zygote_setup import LEASE_OVER, ZygoteSetup
from unstuck.model.errors import NotAnApp
from unstuck.model.payload import clean_text
from unstuck.model.policy import Policy
from unstuck.model.workflow import Registry

#: How often it looks around at the latest, without a signal, a word of its supervisor or the end of the lease.
ROUND = 0.5
#: The same while it has something to do that nobody wakes it for.
SHORT_ROUND = 0.05
_MAX_ERROR = 32 << 10


class Zygote:
    def __init__(
        self, setup: ZygoteSetup, terms: WorkerTerms, page: int, registry: Registry | None, place: TagPlace
    ) -> None:
        self._setup = setup
        self._pulse = terms.pulse
        self._place = place
        self._registry = registry
        self._control = socket.socket(fileno=setup.control)
        self._page = SharedPage(page)
        os.close(page)
        self._inbox = FrameReader(to_zygote)
        self._descriptors: list[int] = []
        self._executors: dict[int, int] = {}
        self._ended_by_us: dict[int, str] = {}
        #: What the app's import itself has started lives as long as we do.
        self._household = {p.pid for p in processes() if p.parent == os.getpid()}
        self._unsent = bytearray()
        self._wake_in, self._wake_out = os.pipe()

    def serve(self) -> None:
        """Until the supervisor is gone."""
        self._watch_signals()
        self._control.setblocking(False)
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._wake_in, select.POLLIN)
        while os.getppid() == self._setup.supervisor:
            for fd, _ in poller.poll(self._rest() * 1000):
                if fd == self._wake_in:
                    os.read(self._wake_in, 4096)
                elif not self._hear():
                    return
            self._guard_lease()
            self._reap()
            self._flush()

    def _rest(self) -> float:
        """Until the lease ends, if that is sooner: it may be renewed meanwhile, and is never made shorter. Bounded,
        because a suspended machine's time does not count here, and the lease's does."""
        left = self._page.lease_until - boot() if self._page.lease_until else ROUND
        return SHORT_ROUND if left <= 0 or self._unsent else min(left, ROUND)

    def _watch_signals(self) -> None:
        for fd in (self._wake_in, self._wake_out):
            os.set_blocking(fd, False)
        # The parent-death signal also comes when only the thread that started us ends; the loop asks who our
        # parent is. TERM and INT meant for a whole service are the supervisor's to act upon.
        for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, lambda *_: None)
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        process.die_with_parent(self._setup.supervisor, signal.SIGTERM)

    def _hear(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, 65536, 64, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._descriptors += fds
        for message in self._inbox.take(data):
            if isinstance(message, Fork):
                self._start(message)
        return bool(data)

    def _start(self, fork: Fork) -> None:
        fds, self._descriptors = Descriptors(*self._descriptors[:4]), self._descriptors[4:]
        try:
            pid = self._fork(fork, fds) if self._registry else self._spawn(fork, fds)
        except Exception as error:
            self._say(NotForked(fork.executor, f"{type(error).__name__}: {error}"))
        else:
            self._executors[pid] = fork.executor
            self._say(Forked(fork.executor, pid))
        finally:
            for fd in (fds.socket, fds.page, fds.stack, fds.output):
                os.close(fd)

    def _fork(self, fork: Fork, fds: Descriptors) -> int:
        if reason := forking.danger():
            raise RuntimeError(reason)
        sys.stdout.flush()
        sys.stderr.flush()
        # Asked before the fork: a child that asks for its parent may already have lost it.
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_executor(fork, fds, parent)
        return pid

    def _become_executor(self, fork: Fork, fds: Descriptors, parent: int) -> None:
        """In the child: never returns."""
        try:
            assert self._registry is not None
            setup = self._setup
            signal.set_wakeup_fd(-1)
            self._control.close()
            self._page.close()
            os.close(self._wake_in)
            os.close(self._wake_out)
            executor = begin(
                fds, fork.executor, setup.incarnation, parent, fork.slots, self._pulse, fork.alone, self._place
            )
            executor.serve(self._registry)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(70)

    def _spawn(self, fork: Fork, fds: Descriptors) -> int:
        setup = self._setup
        return fallback.start(
            fallback.ProgramSetup(
                app=setup.app,
                incarnation=setup.incarnation,
                executor=fork.executor,
                parent=os.getpid(),
                slots=fork.slots,
                pulse=self._pulse,
                alone=fork.alone,
                socket=fds.socket,
                page=fds.page,
                stack=fds.stack,
                output=fds.output,
            )
        )

    def _guard_lease(self) -> None:
        until = self._page.lease_until
        if until and boot() >= until:
            for pid in self._executors:
                self._ended_by_us[pid] = LEASE_OVER
                _kill(pid)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            executor = self._executors.pop(pid, None)
            if executor is not None:
                self._sweep(pid, executor)
                self._say(ExitedMessage(executor, pid, status, self._ended_by_us.pop(pid, "")))

    def _sweep(self, pid: int, executor: int) -> None:
        """Kill what this executor left behind, and adopted orphans that no living executor can have started."""
        me = os.getpid()
        living = set(self._executors.values())
        eldest = min((found.start for p in self._executors if (found := look_at(p)) is not None), default=math.inf)

        def is_left(found: Descendant) -> bool:
            if found.pid in self._executors:
                return False
            if found.session == pid:
                return True
            if found.session in self._executors:
                return False
            owner = executor_of(found.pid, self._setup.incarnation)
            if owner == executor:
                return True
            # Without a tag it may belong to any executor that was there when it began.
            return found.parent == me and (owner not in living if owner else found.start < eldest)

        kill_where(is_left, spare=self._household)

    def _say(self, message: Any) -> None:
        self._unsent += pack([message])
        self._flush()

    def _flush(self) -> None:
        if not self._unsent:
            return
        try:
            sent = self._control.send(self._unsent)
        except OSError:
            return
        del self._unsent[:sent]

    def end_everything(self) -> None:
        """Executors first, then all that carries our tag or was adopted by us."""
        for pid in self._executors:
            _kill(pid)
        me, incarnation = os.getpid(), self._setup.incarnation
        supervisor = self._setup.supervisor
        kill_where(lambda p: p.parent == me or executor_of(p.pid, incarnation) is not None, spare=(supervisor,))
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _import(setup: ZygoteSetup) -> tuple[Registry, WorkerTerms, int]:
    """Import the app, tell what it says of itself, hear the terms and report; ends the process if that fails, or if
    it must go on as a guard."""
    control = socket.socket(fileno=os.dup(setup.control))
    try:
        route_streams()
        sys.argv = ["unstuck"]
        found = load_app(setup.app)
        registry = registry_of(found, setup.app)
        control.sendall(pack([AppFound(settings_in(found))]))
    except BaseException as error:
        _fail(control, error)
    terms, page = _hear_terms(control)
    if terms.database is not None:
        os.environ["UNSTUCK_DATABASE"] = terms.database
    try:
        base = None if terms.policy is None else Policy.from_json(terms.policy)
        records = list(registry.records(base, terms.max_timeout))
        coroutines = [name for name, handler in registry.handlers.items() if handler.is_async]
        reason = "forking is switched off" if terms.fork is False else forking.danger()
        mode: Literal["fork", "spawn"] = "spawn" if reason else "fork"
        named = registry.app or setup.app
        facts = (records, registry.code_version, mode, reason or "", coroutines, registry.schedules, named, setup.app)
        control.sendall(pack([AppImported(*facts)]))
    except BaseException as error:
        _fail(control, error)
    control.close()
    if reason:
        _become_guard(setup, terms, page)
    return registry, terms, page


def _fail(control: socket.socket, error: BaseException) -> NoReturn:
    # The supervisor may have gone away meanwhile: then nobody needs this app.
    with contextlib.suppress(OSError):
        text = "".join(traceback.format_exception(error, limit=-60))
        found = error.found if isinstance(error, NotAnApp) else ""
        control.sendall(pack([AppFailed(clean_text(text, _MAX_ERROR), found)]))
    os._exit(1)


def _hear_terms(control: socket.socket) -> tuple[WorkerTerms, int]:
    """They may have come before the app was imported, or come long after."""
    inbox, descriptors = FrameReader(to_zygote), list[int]()
    while True:
        data, fds, _, _ = socket.recv_fds(control, 65536, 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        descriptors += fds
        if not data:
            os._exit(0)  # the supervisor needs us no more
        for message in inbox.take(data):
            assert isinstance(message, WorkerTerms)
            return message, descriptors[0]


def _become_guard(setup: ZygoteSetup, terms: WorkerTerms, page: int) -> None:
    os.set_inheritable(setup.control, True)
    os.set_inheritable(page, True)
    # A command line is everybody's to read; the database, with its password, is in the environment by now.
    known = msgspec.structs.replace(terms, database=None)
    guard = replace(setup, role="guard", page=page, terms=msgspec.json.encode(known).decode())
    os.execv(sys.executable, guard.argv())


def run(setup: ZygoteSetup) -> None:
    # While there are no executors a plain death with the supervisor is enough, and works during a hanging import.
    process.die_with_parent(setup.supervisor)
    process.adopt_orphans()
    os.set_inheritable(setup.control, False)
    # Before the app can move it.
    place = TagPlace()
    registry: Registry | None = None
    if setup.role == "import":
        registry, terms, page = _import(setup)
    else:
        terms, page = msgspec.json.decode(setup.terms, type=WorkerTerms), setup.page
    gc.collect()
    gc.freeze()
    zygote = Zygote(setup, terms, page, registry, place)
    try:
        zygote.serve()
    finally:
        zygote.end_everything()
        os._exit(0)


if __name__ == "__main__":
    run(ZygoteSetup(**json.loads(sys.argv[1])))
