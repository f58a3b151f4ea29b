"""A zygote as a process: what it is asked before its worker knows how it is to run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.executor.watch import is_gone
from tests.support.eventually import eventually
from unstuck.chance import SystemChance
from unstuck.worker.zygote_process import NotImported, ZygoteProcess


def started(folder: Path, text: str) -> ZygoteProcess:
    path = folder / "my_app.py"
    path.write_text(text)
    return ZygoteProcess(f"{path}:app", SystemChance().nonce(), os.environ)


def test_an_import_that_hangs_up_and_goes_on_is_ended_in_time(tmp_path: Path) -> None:
    """Code that makes itself a daemon closes all that it has not opened, our end too."""
    text = "import os, time\nprint('now a daemon')\nos.closerange(3, 256)\ntime.sleep(60)\n"
    zygote = started(tmp_path, text)
    began = time.monotonic()
    with pytest.raises(NotImported, match="now a daemon"):
        zygote.ask(10.0, lambda: None)
    assert time.monotonic() - began < 30.0
    eventually(lambda: is_gone(zygote.pid))


def test_an_import_that_ends_its_process_says_what_it_printed_or_how_it_ended(tmp_path: Path) -> None:
    for words, said in (("", "exit 5"), ("os.write(2, b'why')\n", "why")):
        with pytest.raises(NotImported, match=said):
            started(tmp_path, f"import os\n{words}os._exit(5)\n").ask(20.0, lambda: None)
