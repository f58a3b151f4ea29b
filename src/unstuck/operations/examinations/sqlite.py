"""A SQLite file: by which SQLite it is read, where it lies, and how long its log is."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from unstuck.model.wording import size
from unstuck.operations.examinations.exam import DoctorCheck, Exam, finding
from unstuck.views.doctor import FindingView

#: Before it, two connections that reset and write the log at the same moment could corrupt the file.
SAFE_SQLITE = (3, 51, 3)
#: Bytes from which a log is cut, where nobody keeps us from it.
LONG_LOG = 64 << 20
#: What is left of a disk that soon is full.
LITTLE_SHARE, LITTLE = 0.05, 512 << 20
#: Of a file that is mostly empty.
EMPTY_SHARE, EMPTY = 0.5, 256 << 20
#: File systems that a reboot, or the end of a container, takes away.
PASSING = {
    "tmpfs": "it is in memory: a reboot takes every job with it",
    "ramfs": "it is in memory: a reboot takes every job with it",
    "overlay": "it is a layer of a container: every job ends with the container",
}


def version(exam: Exam) -> Iterator[FindingView]:
    file = exam.file
    if file is None or _numbers(file.sqlite) >= SAFE_SQLITE:
        return
    safe = ".".join(map(str, SAFE_SQLITE))
    yield finding(
        "sqlite_version",
        "note",
        f"SQLite {file.sqlite}",
        f"it is older than {safe}, which mended a race that could corrupt a file in WAL mode",
        "our own processes keep out of it by a lock beside the file, which other programs that write do not know",
        f"write to the file by unstuck alone while workers run, or use a Python with SQLite {safe} or newer",
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def log(exam: Exam) -> Iterator[FindingView]:
    file = exam.file
    if file is None or file.log < LONG_LOG:
        return
    yield finding(
        "sqlite_log",
        "warning",
        f"{file.path}-wal",
        f"the write-ahead log has {size(file.log)}",
        "every read looks through it. Somebody has been reading an old state for long, or writes without a pause, so "
        "that nobody could cut it",
        "unstuck doctor --fix",
        fixable=True,
    )


def fold(exam: Exam) -> str:
    """As every writer does in a quiet moment; it waits for one."""
    before = exam.file.log if exam.file is not None else 0
    if not exam.caller.store.fold_log(within=5.0):
        path = quote(exam.file.path) if exam.file is not None else "FILE"
        raise TimeoutError(
            "somebody reads an old state of the file, or writes, all the time: the log cannot be cut; "
            f"who has it open: fuser -v {path}"
        )
    return f"the write-ahead log ({size(before)}) was moved into the file and cut"


def place(exam: Exam) -> Iterator[FindingView]:
    file = exam.file
    if file is None:
        return
    if file.kind in PASSING:
        yield finding(
            "sqlite_place",
            "warning",
            file.path,
            f"it lies on {file.kind}",
            PASSING[file.kind],
            "move it to a disk that stays: stop all workers, then move the file with its -wal beside it",
        )
    if file.disk_free < max(LITTLE_SHARE * file.disk, min(LITTLE, file.disk)):
        yield finding(
            "sqlite_place",
            "warning",
            file.path,
            f"{file.disk_free >> 20:,} MiB of {size(file.disk)} are free on its disk",
            "on a full disk no job can start or end",
            "make room, or shorten what is kept: unstuck settings",
        )


def emptiness(exam: Exam) -> Iterator[FindingView]:
    file = exam.file
    if file is None:
        return
    free = file.free_pages * file.page_size
    if free >= EMPTY and file.free_pages >= EMPTY_SHARE * file.pages:
        yield finding(
            "sqlite_pages",
            "note",
            file.path,
            f"{size(free)} of {size(file.pages * file.page_size)} are free pages",
            "they are used again for new jobs, but not given back to the disk",
            f"stop all workers, then: sqlite3 {file.path} VACUUM",
        )


CHECKS = (
    DoctorCheck("sqlite_version", "the version of SQLite in this process", version, needs_schema=False),
    DoctorCheck("sqlite_log", "how long the write-ahead log is", log, fold, needs_schema=False),
    DoctorCheck("sqlite_place", "the file system and the disk of the file", place, needs_schema=False),
    DoctorCheck("sqlite_pages", "how much of the file is empty", emptiness),
)
