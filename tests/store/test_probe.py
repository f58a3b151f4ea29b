"""The probe tells a store that can be written to from one that only answers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.outage import database_away
from tests.support.workers import ROOT
from unstuck.model.errors import StoreError
from unstuck.store.sql_store import SqlStore


def test_a_probe_fails_while_nothing_can_be_written_though_questions_are_answered(
    store: SqlStore, store_url: str
) -> None:
    store.probe()
    with database_away(store_url):
        assert store.now()
        with pytest.raises(StoreError):
            store.probe()
    store.probe()


FULL_DISK = """
import resource, sys
from tests.support.builders import a_worker
from unstuck.assembly.store import open_store
from unstuck.model.errors import StoreError
from unstuck.model.times import Times
store = open_store(sys.argv[1], Times())
store.probe()
worker = a_worker(store, lease=0.0).number
resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
for verb in (store.probe, lambda: store.recover_lost(0.0), lambda: store.beat(worker, 30.0, [])):
    assert store.now()
    try:
        verb()
    except StoreError:
        continue
    sys.exit("a full disk was not noticed")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.probe()
assert not store.beat(worker, 30.0, []).alive
"""


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_full_disk_is_noticed_though_the_write_lock_is_granted(store: SqlStore, store_url: str) -> None:
    """Played by a limit on the size of files. A sweep that did not notice would take jobs from workers that could not
    renew, and charge them; a worker that heard of the end of its lease could not write that it left."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, store_url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
