"""An app is asked for its settings by a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

APP = """
import threading, time, unstuck
print("hello")
app = unstuck.App("sqlite:///shop.db")
threading.Thread(target=time.sleep, args=(60,)).start()
"""


def test_an_app_that_starts_a_thread_when_it_is_imported_answers_at_once(tmp_path: Path) -> None:
    """The process waited for the end of that thread, and the worker that had asked for the end of the process."""
    (tmp_path / "shop.py").write_text(APP)
    command = [sys.executable, "-m", "unstuck.executor.loading", "shop:app"]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    hello, answer = asked.stdout.splitlines()
    assert hello == "hello"
    assert json.loads(answer)["settings"] == {"database": "sqlite:///shop.db"}
