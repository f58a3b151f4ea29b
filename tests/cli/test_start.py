"""What a command imports before it answers: who lists jobs on a SQLite file does not pay for what others need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import unstuck
from tests.cli.command import environment

#: No command that asks a SQLite file and answers has any use for these.
NOBODYS = {
    "asyncio",
    "bz2",
    "cryptography",
    "difflib",
    "httpx2",
    "lzma",
    "prometheus_client",
    "psycopg",
    "random",
    "rich",
    "shutil",
    "socket",
    "ssl",
    "starlette",
    "subprocess",
    "tempfile",
    "tomllib",
    "uvicorn",
    "unstuck.model.destination",
    "unstuck.store.drivers.postgres",
}
#: These start code that they wait for, or tell others that there is work.
READING = [("jobs", "list"), ("stats",), ("workers",), ("queues",), ("audit",), ("targets",), ("workflows",)]
SOURCES = Path(unstuck.__file__).parent
LOADED = """
import json, sys
from unstuck.cli.main import main
code = main({words!r})
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def loaded(folder: Path, *words: str) -> set[str]:
    """The modules that a command has imported when it has answered."""
    script = LOADED.format(words=list(words))
    around = environment(UNSTUCK_DATABASE=f"sqlite:///{folder / 'jobs.db'}")
    ran = subprocess.run([sys.executable, "-c", script], cwd=folder, env=around, capture_output=True, timeout=60)
    code, modules = json.loads(ran.stderr.splitlines()[-1])
    assert code == 0, ran.stderr.decode()
    return set(modules)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a database that has its tables."""
    made = tmp_path_factory.mktemp("start")
    loaded(made, "db", "migrate")
    return made


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_question_imports_nothing_that_it_has_no_use_for(folder: Path, words: tuple[str, ...]) -> None:
    assert loaded(folder, *words) & NOBODYS == set()


def test_no_record_is_made_by_the_dataclass_of_the_standard_library() -> None:
    """It compiles six functions for each frozen class: half of a start."""
    found = [path for path in SOURCES.rglob("*.py") if "from dataclasses import dataclass" in path.read_text()]
    assert found == [SOURCES / "records.py"]
