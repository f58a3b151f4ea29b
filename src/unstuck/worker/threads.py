"""What the kernel tells of a silent process: whether it is stopped, and which thread keeps the interpreter to itself.

A thread that waits for the interpreter wakes every 5 ms to ask for it again: its voluntary switches climb by some
200 a second, and no other state of a thread looks like that. The time that it stands in the queue for a core does not
count: on a busy machine it may wake ten times a second. If our own control thread waits like that, another
thread holds the interpreter: among the threads that run jobs, it is the one that does not wait. Several may not
wait, if some of them sleep in calls that leave the interpreter free; then it is the only one of them that burns CPU,
or else we cannot tell. We cannot tell either if threads of no job do not wait: a leaked thread may sleep with the
interpreter as well.

The control thread may sleep itself meanwhile: it has just started a thread and waits for its first sign, or wants a
lock whose owner waits for the interpreter. So there is a second witness: the main thread, which turns the event
loop. If that stands still too, both lack the interpreter, provided that no job is on it that could be the reason, or
that any thread waits visibly. Where no thread waits visibly (a job has told the interpreter to ask so rarely), only
burning CPU tells. A job on the loop is no reason then if the kernel says that both threads sleep at a lock, or that
the job burns CPU: asleep anywhere else it would leave the interpreter free.

A control thread that stands in the queue for a core is kept by nobody in its process: the machine starves it. So is a
main thread that hardly gets one: an interrupt reaches a job on it when it runs, and even then the process speaks
before the job has obeyed.

Nothing here needs the process's help, or more than to read /proc.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import field

from unstuck.records import dataclass

#: Between two looks: long enough to tell a waiter from a sleeper.
LOOK_EVERY = 0.2
#: That nobody waits is said after so long: on a busy machine a waiter may not wake up often enough before.
LOOK_LONG = 0.6
#: Wake-ups a second of the time it slept that make a waiter; a quarter of what there are. And how many of them.
WAITER_RATE = 50.0
FEWEST_WAKES = 3
#: Of a core. Waking up 200 times a second takes less than a tenth of this.
BURNING_SHARE = 0.1
#: Of the time: a thread that never sleeps, and has run or waited for a core for so much of it, burns CPU as well as a
#: busy machine lets it.
RUNNABLE_SHARE = 0.5
#: Of a core. With less, and always in the queue for one, even an interrupt reaches a thread later than a short grace
#: allows.
STARVED_SHARE = 0.02
#: Of the time: who waits for the interpreter on a busy machine is in the queue for less.
QUEUED_SHARE = 0.9

_STATE = re.compile(rb"^State:\s+(\S)", re.MULTILINE)
_SWITCHES = re.compile(rb"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
_CAUGHT = re.compile(rb"^SigCgt:\s+([0-9a-f]+)", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Activity:
    """Of one thread, since it began."""

    state: str
    switches: int
    cpu_seconds: float
    #: How long it was ready to run, and had no core.
    queued_seconds: float = 0.0
    #: It sleeps until another thread lets it go on; never where the kernel does not tell.
    is_at_lock: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    at: float
    threads: Mapping[int, Activity]


def look_at_threads(pid: int, now: float) -> Look:
    """Every thread of the process by its kernel number; none of one that is gone."""
    threads: dict[int, Activity] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            if (activity := _activity(f"/proc/{pid}/task/{name}")) is not None:
                threads[int(name)] = activity
    return Look(now, threads)


def look_at_main(pid: int, now: float) -> Look:
    """Its main thread alone, which has the process's own number."""
    activity = _activity(f"/proc/{pid}/task/{pid}")
    return Look(now, {} if activity is None else {pid: activity})


def waiters(before: Look, after: Look) -> set[int]:
    """Those that asked for the interpreter all the time between the two looks."""
    span = after.at - before.at
    return {
        thread
        for thread, then, now in _both(before, after)
        if now.switches - then.switches >= max(FEWEST_WAKES, WAITER_RATE * (span - _awake_for(then, now)))
        and now.state not in "Tt"
    }


def holder(
    before: Look,
    after: Look,
    control: int,
    jobs: Mapping[int, int],
    cleared: Collection[int] = (),
    ours: Collection[int] = (),
    *,
    is_held: bool | None = None,
) -> int | None:
    """Whose thread holds the interpreter: `jobs` says which attempt is on which thread. None if nobody can tell.

    `cleared` are threads that were seen to wait before, while the same silence lasted; `ours` are known to rest
    between jobs. `is_held`: a thread does, whether or not the control thread is seen to wait.
    """
    waiting = waiters(before, after)
    if not (control in waiting if is_held is None else is_held):
        return None
    awake = {thread for thread, _, _ in _both(before, after)} - waiting - set(cleared)
    burning = {
        thread for thread, then, now in _both(before, after) if thread in awake and _burns(before, after, then, now)
    }
    # If no thread is seen to wait, one that sleeps may be waiting.
    suspects = burning or (awake - {control, *ours} if waiting else set())
    return jobs.get(suspects.pop()) if len(suspects) == 1 else None


def is_stopped(look: Look, *threads: int) -> bool:
    """By a signal or a debugger: one of the threads that matter does not run, and not because it waits."""
    return any(thread in look.threads and look.threads[thread].state in "Tt" for thread in threads)


def catches(pid: int, signum: int) -> bool:
    """Whether that process has a handler for the signal: without one it would be killed by it. If unknown, it has."""
    found = _CAUGHT.search(_bytes(f"/proc/{pid}/status"))
    return found is None or bool(int(found[1], 16) >> (signum - 1) & 1)


@dataclass(slots=True)
class SilenceProbe:
    """What is known of a process that has been silent since that pulse: looks, and what they say."""

    pulse: float
    last: Look | None = None
    #: What the next look is compared with: the last one that told something.
    since: Look | None = None
    holder: int | None = None
    is_stopped: bool = False
    #: A thread holds the interpreter, known or not: nothing of Python moves in the process.
    is_held: bool = False
    #: The thread that it depends on would run, and has no core: the control thread, or the holder's.
    is_starved: bool = False
    _cleared: set[int] = field(default_factory=set)

    def is_due(self, now: float) -> bool:
        return self.last is None or now - self.last.at >= LOOK_EVERY

    def look(
        self,
        look: Look,
        pid: int,
        control: int,
        jobs: Mapping[int, int],
        crew: Collection[int] = (),
        *,
        is_loop_silent: bool = False,
    ) -> None:
        """The main thread has the process's own number. `is_loop_silent`: the event loop stands still as well."""
        self.is_stopped = is_stopped(look, pid, control)
        if self.since is not None:
            waiting = waiters(self.since, look)
            is_a_reason = pid in jobs and not _are_kept(self.since, look, control, pid)
            is_main_kept = is_loop_silent and (bool(waiting) or not is_a_reason)
            is_held = control in waiting or (is_main_kept and not self.is_stopped)
            before = self.since
            if is_held or self.is_stopped or look.at - self.since.at >= LOOK_LONG:
                resting = {pid, *crew} - jobs.keys()
                found = holder(self.since, look, control, jobs, self._cleared, resting, is_held=is_held)
                # What one look cannot tell does not refute the one before it: they are of the same silence.
                is_refuted = not is_held or any(jobs.get(thread) == self.holder for thread in waiting)
                self.is_held, self.holder = is_held, found if found is not None or is_refuted else self.holder
                self._cleared |= waiting
                self.since = look
            needed = {thread for thread, job in jobs.items() if job == self.holder} if is_held else set()
            needed = needed or {control}
            self.is_starved = any(_is_starved(before, look, thread) for thread in needed)
        self.since, self.last = self.since or look, look


@dataclass(slots=True)
class StallProbe:
    """Whether the main thread of a process whose event loop has stood still since that pulse gets a core."""

    pulse: float
    last: Look
    is_starved: bool = False

    def is_due(self, now: float) -> bool:
        return now - self.last.at >= LOOK_EVERY

    def look(self, look: Look, pid: int) -> None:
        self.is_starved, self.last = _is_starved(self.last, look, pid), look


def _both(before: Look, after: Look) -> list[tuple[int, Activity, Activity]]:
    return [
        (thread, before.threads[thread], now) for thread, now in after.threads.items() if thread in before.threads
    ]


def _are_kept(before: Look, after: Look, control: int, main: int) -> bool:
    """The control thread slept at a lock all the time, and the main thread did as well, or never slept."""
    both = {thread: (then, now) for thread, then, now in _both(before, after) if thread in (control, main)}
    if len(both) < 2:
        return False
    at_lock = {
        thread
        for thread, (then, now) in both.items()
        if then.is_at_lock and now.is_at_lock and now.switches == then.switches
    }
    return control in at_lock and (main in at_lock or _burns(before, after, *both[main]))


def _burns(before: Look, after: Look, then: Activity, now: Activity) -> bool:
    span, ran = after.at - before.at, now.cpu_seconds - then.cpu_seconds
    if ran >= BURNING_SHARE * span:
        return True
    is_sleepless = ran > 0 and now.switches == then.switches
    return is_sleepless and _awake_for(then, now) >= RUNNABLE_SHARE * span


def _is_starved(before: Look, after: Look, thread: int) -> bool:
    if thread not in before.threads or thread not in after.threads:
        return False
    span, then, now = after.at - before.at, before.threads[thread], after.threads[thread]
    # The time in the queue is counted when it ends.
    is_queued = then.state == now.state == "R" and then.switches == now.switches
    has_hardly_run = now.cpu_seconds - then.cpu_seconds < STARVED_SHARE * span
    return has_hardly_run and (is_queued or _awake_for(then, now) >= QUEUED_SHARE * span)


def _awake_for(then: Activity, now: Activity) -> float:
    """On a core, or in the queue for one."""
    return now.cpu_seconds - then.cpu_seconds + now.queued_seconds - then.queued_seconds


def _activity(folder: str) -> Activity | None:
    text = _bytes(f"{folder}/status")
    state, switches = _STATE.search(text), _SWITCHES.search(text)
    if state is None or switches is None:
        return None
    is_at_lock = b"futex" in _bytes(f"{folder}/wchan")
    return Activity(state[1].decode(), int(switches[1]), *_seconds(folder), is_at_lock)


def _seconds(folder: str) -> tuple[float, float]:
    """On a core and in the queue for one: in nanoseconds where the kernel counts them, else in its coarse ticks."""
    with contextlib.suppress(ValueError, IndexError):
        fields = _bytes(f"{folder}/schedstat").split()
        return int(fields[0]) / 1e9, int(fields[1]) / 1e9
    with contextlib.suppress(ValueError, IndexError):
        fields = _bytes(f"{folder}/stat").rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS, 0.0
    return 0.0, 0.0


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
