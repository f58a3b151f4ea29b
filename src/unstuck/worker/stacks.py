"""What faulthandler wrote, read: whose thread was where, turned round to how people read stacks.

It writes without the interpreter's help, so also while a job keeps everybody else from it: every thread, the most
recent call first, our own machinery included. At most 100 threads and 100 frames of each.
"""

from __future__ import annotations

import os
import re

import unstuck.executor
from unstuck.model.payload import clean_text

MAX_STACK = 32 << 10
#: Every crash report begins so, and no dump contains it.
FATAL = "Fatal Python error"
_CRASHED_THREAD = re.compile(r"^Current thread 0x([0-9a-f]+)", re.MULTILINE)
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)[^\n]*\n((?:  [^\n]*\n?)*)", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')
#: Where our code calls handlers; what handlers call of ours (Context, output) is part of their own story.
_GATE_MODULES = ["attempt", "crew", "event_loop", "execution", "leftovers", "main", "main_thread", "run_handler"]
_GATE_MODULES += ["marked_coroutine", "started"]
_GATES = {os.path.join(unstuck.executor.__path__[0], f"{name}.py") for name in _GATE_MODULES}


def crash_report(text: str) -> str | None:
    """The last one in it, without what was dumped before; the thread that crashed first, lest it be cut off."""
    _, fatal, report = text.rpartition(FATAL)
    if not fatal:
        return None
    heading, at, threads = report.partition("\n\n")
    crashed = next((found for found in _THREAD.finditer(threads) if found[0].startswith("Current")), None)
    if crashed is None:
        return fatal + report
    others = threads[: crashed.start()] + threads[crashed.end() :].lstrip("\n")
    return f"{fatal}{heading}{at}{crashed[0]}\n{others}".rstrip("\n")


def crashed_thread(report: str) -> int | None:
    found = _CRASHED_THREAD.search(report)
    return int(found[1], 16) if found else None


def stack_of(thread: int, text: str, title: str) -> str | None:
    """Where that thread was by the last dump in the text: from the handler on, turned round, under a title."""
    dumps = text.partition(FATAL)[0]
    last = next((found for found in reversed([*_THREAD.finditer(dumps)]) if int(found[1], 16) == thread), None)
    frames = last[2].splitlines() if last else []
    gate = next((at for at, line in enumerate(frames) if _is_gate(line)), None)
    if last is None or not frames or (gate is None and not dumps.startswith("\n", last.end())):
        return None  # or not all of it: it is written call by call, and something of ours stands below every handler
    # The most recent call comes first there. All of them, if our own code is what runs.
    lines = map(_line, reversed(frames[:gate] or frames))
    return clean_text("\n".join([f"{title} (most recent call last):", *lines]), MAX_STACK)


def _is_gate(line: str) -> bool:
    frame = _FRAME.match(line)
    return frame is not None and frame[1] in _GATES


def _line(line: str) -> str:
    frame = _FRAME.match(line)
    return f'  File "{frame[1]}", line {frame[2]}, in {frame[3]}' if frame else line
