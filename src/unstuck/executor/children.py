"""The processes that an attempt starts: marked as its own when they begin, ended when its handler has.

The mark is an entry of their environment, which all that they start in turn inherits, daemons too. A program gets it
with its environment; a fork without exec writes it over its parent's, where /proc shows it. What runs a program from
the executor is wrapped, since one environment serves all attempts there. Not marked, and so left to the end of their
executor: what an `on_start` hook starts, the servers of `multiprocessing`, which serve all jobs of a process, and
what native code forks past the interpreter.

The processes of an ended attempt are ended by a thread of its own: what /proc says of a process may be long in
coming, and nobody else is to wait for it.
"""

from __future__ import annotations

import _posixsubprocess
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt, End
from unstuck.executor.collector_pause import CollectorPause
from unstuck.executor.descendants import attempt_tag, children_of, family, is_dead, look_at, name_of, tags_of
from unstuck.executor.leftovers import started_by, started_here
from unstuck.executor.messages import LeftBehindMessage
from unstuck.executor.process import EXECUTOR_TAG
from unstuck.executor.started import StartedByJob
from unstuck.executor.tagging import ProcessTag
from unstuck.records import dataclass

#: From TERM to KILL, and from KILL until nobody waits for it any more (a process may be past killing).
TERM_FOR = 1.0
KILL_FOR = 2.0
#: So much of its grace an attempt keeps for its end to be said in.
SPARED = 0.5
LOOK_EVERY = 0.01
#: A program that is being started has no environment for a moment.
SURE_AFTER = 0.05
#: Descriptors that are kept for looking at processes.
RESERVE = 3
#: Seconds in which the job may reap its child itself; then we do.
REAP_AFTER = 1.0
#: They serve every job of their process, although one job started them.
_SERVERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
_MAX_NAMES = 20


@dataclass(slots=True)
class EndedAttempt:
    """An attempt whose handler has ended, and what is left of it."""

    attempt: Attempt
    started: StartedByJob
    end: End
    #: When it was last seen to have any; its end counts as that.
    seen_at: float
    kill_at: float
    #: The processes that were told to end: name, and when it began.
    told: dict[int, tuple[str, int]] = field(default_factory=dict)
    is_killed: bool = False

    def known(self) -> list[int]:
        return [
            pid
            for pid, (_, start) in self.told.items()
            if (found := look_at(pid)) is not None and found.start == start
        ]


class Children:
    """`say_end` is called once none of its processes is left; `say` before that, if there were any."""

    def __init__(
        self,
        tag: ProcessTag,
        gc_pause: CollectorPause,
        say_end: Callable[[Attempt, End], None],
        say: Callable[[LeftBehindMessage], None],
    ) -> None:
        self._tag = tag
        self._gc_pause = gc_pause
        self._say_end = say_end
        self._say = say
        self._pid = os.getpid()
        # A finalizer may fork amid a fork.
        self._forking = threading.RLock()
        self._arrivals: deque[EndedAttempt] = deque()
        self._bell = threading.Lock()
        self._attempts: list[EndedAttempt] = []
        self._reserve: list[int] = []
        #: Children that we ended: when to reap them if nobody has, and when they began.
        self._ended: dict[int, tuple[float, int]] = {}

    def start(self) -> None:
        self._take_reserve()
        self._watch()
        threading.Thread(target=self._serve, name="unstuck-children", daemon=True).start()

    def end_all_of(self, attempt: Attempt, end: End) -> None:
        now = boot()
        until = now + TERM_FOR
        if attempt.asked_at:
            until = min(until, max(now, attempt.asked_at + attempt.run.grace - SPARED))
        self._arrivals.append(EndedAttempt(attempt, started_by(attempt), end, now, until))
        with contextlib.suppress(RuntimeError):  # it has rung already
            self._bell.release()

    # what begins

    def _watch(self) -> None:
        os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._tag_copy)
        fork_exec: Callable[..., int] = _posixsubprocess.fork_exec

        def tagged_fork_exec(*args: Any) -> int:
            started = None if _is_server() else self._note()
            if started is None or len(args) < 6:
                return fork_exec(*args)
            pid = fork_exec(*args[:5], self._tagged_list(args[5], started.number), *args[6:])
            started.add_process(pid)
            return pid

        for module, name in ((_posixsubprocess, "fork_exec"), (subprocess, "_fork_exec")):
            setattr(module, name, tagged_fork_exec)
        for name in ("posix_spawn", "posix_spawnp"):
            if hasattr(os, name):
                setattr(os, name, self._tagged_spawn(getattr(os, name)))
        os.system = self._system

    def _note(self) -> StartedByJob | None:
        """The job on whose behalf a process begins here, if there is one."""
        started = started_here() if os.getpid() == self._pid else None
        if started is not None:
            started.has_children = True
        return started

    def _before_fork(self) -> None:
        """The copy has its mark from its first instant: it may be looked for before it has run at all."""
        self._forking.acquire()
        if (started := self._note()) is not None:
            self._tag.lend(started.number)

    def _after_fork(self) -> None:
        if os.getpid() == self._pid:
            self._tag.lend(0)
        self._forking.release()

    def _tag_copy(self) -> None:
        """In what a handler has forked, and in what that has."""
        self._forking = threading.RLock()
        started = started_here()
        if started is not None:
            self._tag.write(started.number)

    def _tagged_list(self, given: Iterable[bytes] | None, number: int) -> list[bytes]:
        entries = given if given is not None else [b"%b=%b" % pair for pair in os.environb.items()]
        name = f"{EXECUTOR_TAG}=".encode()
        return [e for e in entries if not e.startswith(name)] + [name + self._tag.value(number).encode()]

    def _tagged_spawn(self, spawn: Callable[..., int]) -> Callable[..., int]:
        def tagged_spawn(path: Any, argv: Any, env: Mapping[Any, Any], **options: Any) -> int:
            started = self._note()
            if started is None or not isinstance(env, Mapping):
                return spawn(path, argv, env, **options)
            pid = spawn(path, argv, {**env, EXECUTOR_TAG: self._tag.value(started.number)}, **options)
            started.add_process(pid)
            return pid

        return tagged_spawn

    def _system(self, command: Any) -> int:
        """As the one of C, which knows no environment but the executor's."""
        code = subprocess.Popen(command, shell=True).wait()
        return -code if code < 0 else code << 8

    # what ends

    def _serve(self) -> None:
        # Our signals are the main thread's.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            while True:
                # Nothing here makes an object, not even a cell for a comprehension: it could be one too many.
                self._bell.acquire(True, self._pause())
                self._gc_pause.begin()
                self._look()
                self._gc_pause.end()
        except BaseException:
            # Ends would not be said any more.
            os._exit(70)

    def _pause(self) -> float:
        return LOOK_EVERY if self._attempts else REAP_AFTER if self._ended else -1.0

    def _look(self) -> None:
        while self._arrivals:
            self._attempts.append(self._arrivals.popleft())
        now = boot()
        # Or we would be blind where a job has used up all descriptors, and take everybody for gone.
        self._give_up_reserve()
        self._attempts = [ended for ended in self._attempts if not self._is_over(ended, now)]
        self._reap(now)
        self._take_reserve()

    def _give_up_reserve(self) -> None:
        while self._reserve:
            with contextlib.suppress(OSError):
                os.close(self._reserve.pop())

    def _take_reserve(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._reserve) < RESERVE:
                self._reserve.append(os.open(os.devnull, os.O_RDONLY))

    def _is_over(self, ended: EndedAttempt, now: float) -> bool:
        """One look: new processes get TERM, after a while all get KILL. When none is left, the end is said."""
        left, is_sure = self._left(ended)
        if left:
            ended.seen_at = now
            ended.is_killed = now >= ended.kill_at
            self._signal(ended, left, now)
        if not is_sure and now < min(ended.seen_at + SURE_AFTER, ended.kill_at + KILL_FOR):
            return False
        if ended.told:
            names = [f"{name} ({pid})" for pid, (name, _) in list(ended.told.items())[:_MAX_NAMES]]
            self._say(LeftBehindMessage(ended.attempt.run.workflow, [], processes=names, is_killed=ended.is_killed))
        self._say_end(ended.attempt, ended.end)
        return True

    def _left(self, ended: EndedAttempt) -> tuple[list[int], bool]:
        """Its processes: its own children, those that carry its mark, and whatever these have started.

        Whether there is none can only be said if none was seen: what ends while we look hands its own children to the
        zygote, maybe behind our back. Nor while one has no environment: it may be about to become a program.
        """
        tag = attempt_tag(self._tag.value(ended.started.number))
        heads = {pid for pid in (*ended.started.children(), *ended.known()) if not is_dead(pid)}
        is_sure = True
        for parent in (self._pid, os.getppid()):
            for pid in children_of(parent):
                tags = tags_of(pid)
                if tag in tags:
                    heads.add(pid)
                elif not tags and not (parent == self._pid and is_dead(pid)):
                    is_sure = False
        return family(heads), is_sure and not heads

    def _signal(self, ended: EndedAttempt, left: Iterable[int], now: float) -> None:
        for pid in left:
            if pid in ended.told and not ended.is_killed:
                continue
            if (found := look_at(pid)) is None:
                continue
            ended.told[pid] = name_of(pid), found.start
            if found.parent == self._pid:
                self._ended[pid] = now + REAP_AFTER, found.start
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL if ended.is_killed else signal.SIGTERM)

    def _reap(self, now: float) -> None:
        for pid, (at, start) in tuple(self._ended.items()):
            if now < at:
                continue
            found = look_at(pid)
            if found is not None and found.start == start and found.parent == self._pid:
                if found.state != "Z":
                    continue
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            del self._ended[pid]


def _is_server() -> bool:
    frame = sys._getframe(1)
    for _ in range(4):
        if (outer := frame.f_back) is None:
            return False
        frame = outer
        if frame.f_globals.get("__name__") in _SERVERS:
            return True
    return False
