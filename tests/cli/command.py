"""Runs `unstuck …` as its users do: another directory, its own environment and streams; and a process of its own
where that can make a difference. Questions and requests, which only ask the database and answer, are run in this
one: a fork copies three thousand pages for them, which costs more than all that they do (`tests/support/inside.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import inside
from tests.support.warm import PATHS, warm_process

ROOT = Path(__file__).parents[2]
APP = "tests.cli.shop:app"
#: Commands that ask the database and answer.
ASKING = frozenset(
    [
        "alerts",
        "approvals",
        "audit",
        "blacklist",
        "bulks",
        "dead-letters",
        "health",
        "hooks",
        "jobs",
        "keys",
        "limits",
        "notifications",
        "quarantine",
        "queues",
        "schedules",
        "series",
        "settings",
        "stats",
        "targets",
        "tenants",
        "webhooks",
        "deliveries",
        "why",
        "workers",
        "workflows",
    ]
)


def environment(**changes: str | None) -> dict[str, str]:
    """Ours, without what a person's shell may say about settings and colours."""
    dropped = ("UNSTUCK_", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    merged = kept | PATHS | {"TERM": "xterm-256color"} | changes
    return {name: value for name, value in merged.items() if value is not None}


@contextmanager
def ended(process: subprocess.Popen[bytes], within: float) -> Iterator[subprocess.Popen[bytes]]:
    """It ends with the test, however the test ends."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(within)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """stdout as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> Any:
        [only] = self.lines
        return only

    @property
    def word(self) -> str:
        return self.out.strip()


@dataclass(frozen=True, slots=True)
class Command:
    """`unstuck` on one database."""

    url: str | None
    directory: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, **variables: str | None) -> Answer:
        around = self.environment(**variables)
        if not warm_process().can_run(around):
            finished = self._start(words, around)
        elif self._only_asks(words, around):
            finished = inside.run(words, self.directory, around)
        else:
            finished = warm_process().run(["-m", "unstuck", *words], self.directory, around, 60)
        return Answer(finished.returncode, finished.stdout, finished.stderr)

    def _only_asks(self, words: Sequence[str], around: Mapping[str, str]) -> bool:
        """And imports no code of a user's."""
        names_app = "UNSTUCK_APP" in around or any(word.startswith("--app") for word in words)
        has_file = any((self.directory / name).exists() for name in ("unstuck.toml", "pyproject.toml"))
        return bool(words) and words[0] in ASKING and not names_app and not has_file and inside.can_run()

    def _start(self, words: Sequence[str], around: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words),
            cwd=self.directory,
            env=around,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "unstuck", *words]

    def environment(self, **variables: str | None) -> dict[str, str]:
        database = {"UNSTUCK_DATABASE": self.url} if self.url else {}
        return environment(**(database | dict(self.variables) | variables))

    def enqueue(self, *words: str) -> str:
        """The id of a new job of the test app."""
        answer = self("enqueue", *words, "--app", APP)
        assert answer.code == 0, answer.err
        return answer.word
