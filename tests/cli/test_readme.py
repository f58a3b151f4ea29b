"""The README's quick start works as written, on both databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.command import ROOT, Command

README = (ROOT / "README.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(python|sh)\n(.*?)```", README, re.S)


def block(beginning: str) -> str:
    """The code block that begins with these words."""
    return next(text for _, text in BLOCKS if text.startswith(beginning))


def test_the_quick_start_works_as_written(unstuck: Command) -> None:
    folder = unstuck.directory
    (folder / "shop.py").write_text(block("# shop.py"))
    (folder / "client.py").write_text(block("from shop import greet"))
    shell = block("pip install .")
    worker_line = next(line for line in shell.splitlines() if line.startswith("unstuck dev"))
    other_lines = [line for line in shell.splitlines() if line.startswith(("unstuck enqueue", "unstuck jobs"))]
    environment = unstuck.environment(
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", PYTHONPATH=str(ROOT / "src")
    )

    def run(line: str) -> str:
        done = subprocess.run(
            line.partition("#")[0],
            shell=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    worker = subprocess.Popen(
        ["/bin/sh", "-c", "exec " + worker_line.partition("#")[0]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        enqueued, listed = map(run, other_lines)
        assert enqueued.strip() == '"Hello, world!"'
        assert "COMPLETED" in listed
        assert run(f"{sys.executable} client.py").strip() == "Hello, world!"
        assert run("unstuck jobs list").count("greet") == 3
    finally:
        worker.terminate()
        assert worker.wait(60) == 0


def test_every_code_block_of_the_readme_is_valid_python() -> None:
    for language, text in BLOCKS:
        if language == "python":
            compile(text, "README.md", "exec")
