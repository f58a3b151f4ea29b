"""What keeps the keys of a supervisor from the code that it supervises."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from unstuck.worker.secrecy import without_secrets


def test_no_executor_is_started_with_what_may_hold_keys() -> None:
    given = {
        "UNSTUCK_SIGNING_KEYS": "x",
        "unstuck_signing_keys_file": "y",
        "UNSTUCK_SEALING_KEYS": "z",
        "UNSTUCK_DATABASE": "d",
        "PATH": "p",
    }

    assert without_secrets(given) == {"UNSTUCK_DATABASE": "d", "PATH": "p"}


_STORY = """
import ctypes, os, sys
from unstuck.worker.secrecy import hide_memory
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
prctl = ctypes.CDLL(None).prctl
prctl(4, 1, 0, 0, 0)  # another user's program is not to be read from the start; one of this user's is

def readable(name):
    me = os.getpid()
    if (child := os.fork()) == 0:
        prctl(4, 1, 0, 0, 0)
        try:
            open(f"/proc/{me}/{name}", "rb").read(1)
        except PermissionError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

before = readable("environ")
hidden = hide_memory()
print(before, hidden, readable("environ"), readable("mem"), readable("stat"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux closes a process to others of its user")
def test_the_memory_of_a_supervisor_with_keys_is_closed_to_others_of_its_user() -> None:
    """As nobody, if the tests run as root, whom nothing is closed to"""
    done = subprocess.run(
        [sys.executable, "-c", _STORY], capture_output=True, text=True, timeout=60, check=False, env={**os.environ}
    )

    assert done.stdout.split() == ["True", "True", "False", "False", "True"], done.stderr
