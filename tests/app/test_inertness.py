"""Importing starts nothing, and a fork never touches what its parent opened. In processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import unstuck
from tests.tiers import slow
from unstuck.model import errors

APP = """
import unstuck
app = unstuck.App()

@app.workflow(retries=3)
def work(ctx: unstuck.Context, n: int = 1) -> int:
    return n

@app.middleware
def around(ctx):
    yield
"""


def run(script: str, directory: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=directory,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_module_with_an_app_opens_no_file_thread_or_connection(tmp_path: Path) -> None:
    report = json.loads(
        run(
            """
            import json, os, sys, threading
            before = sorted(os.listdir("/proc/self/fd"))
            """
            + textwrap.indent(APP, " " * 12)
            + """
            print(json.dumps({
                "fds": sorted(os.listdir("/proc/self/fd")) == before,
                "threads": threading.active_count(),
                "tasks": len(os.listdir("/proc/self/task")),
                "drivers": [m for m in ("sqlite3", "psycopg", "asyncio", "typer", "rich") if m in sys.modules],
            }))
            """,
            tmp_path,
            UNSTUCK_DATABASE="postgresql://nobody@127.0.0.1:1/nothing",
        )
    )

    assert report == {"fds": True, "threads": 1, "tasks": 1, "drivers": []}
    assert list(tmp_path.iterdir()) == []


def test_the_package_alone_imports_nothing_else(tmp_path: Path) -> None:
    loaded = json.loads(
        run(
            """
            import sys
            before = set(sys.modules)
            import unstuck
            import json
            print(json.dumps(sorted(m for m in set(sys.modules) - before if m.startswith(("unstuck", "msgspec")))))
            """,
            tmp_path,
        )
    )

    assert loaded == ["unstuck"]


@slow
def test_importing_the_package_costs_little_more_than_a_bare_interpreter() -> None:
    """In processor time, the least of many rounds: the wall clock would measure the neighbours."""

    def seconds(code: str) -> float:
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
        _, status, usage = os.wait4(pid, 0)
        assert status == 0
        return usage.ru_utime + usage.ru_stime

    rounds = [(seconds("pass"), seconds("import unstuck")) for _ in range(10)]

    bare, ours = (min(times) for times in zip(*rounds, strict=True))
    assert ours < 1.5 * bare


def test_every_name_is_there_and_the_stub_says_the_same() -> None:
    stub = Path(unstuck.__file__).with_suffix(".pyi").read_text()
    told = {line.split()[-1] for line in stub.splitlines() if " as " in line}

    assert told == set(unstuck.__all__)
    assert all(getattr(unstuck, name) is not None for name in unstuck.__all__)
    assert set(unstuck.__all__) <= set(dir(unstuck))
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = unstuck.nothing_like_it  # type: ignore[attr-defined]


def test_every_error_that_the_reference_names_can_be_imported() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.UnstuckError)
    ]
    assert len(kinds) > 40
    assert [kind.__name__ for kind in kinds if kind.__name__ not in unstuck.__all__] == []


def test_the_first_use_makes_the_default_database_in_the_current_directory(tmp_path: Path) -> None:
    run(APP + "\nwork.enqueue(1)\napp.close()\n", tmp_path)

    assert (tmp_path / "unstuck.db").is_file()


def test_the_environment_names_the_database(tmp_path: Path) -> None:
    run(APP + "\nwork.enqueue(1)\n", tmp_path, UNSTUCK_DATABASE="sqlite:///jobs.db")

    assert (tmp_path / "jobs.db").is_file()
    assert not (tmp_path / "unstuck.db").exists()


def test_children_forked_after_the_first_use_have_a_store_of_their_own(tmp_path: Path, store_url: str) -> None:
    """As under a preloading server: the parent uses the app, then forks; everybody goes on enqueuing, also while
    another thread of the parent holds the app's lock during the fork."""
    script = (
        APP.replace("unstuck.App()", "unstuck.App(URL)")
        + """
import os, sys, threading

mine = [work.enqueue(0).id]
store = app._engine.store
lock = app._engine._lock()
lock.acquire()
children = []
for child in range(4):
    pid = os.fork()
    if pid == 0:
        try:
            ids = [job.id for job in work.enqueue_many(range(25))] + [work.enqueue(n).id for n in range(5)]
            assert app._engine.store is not store
            assert len(set(ids)) == 30
            app.close()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(pid)
lock.release()
mine += [work.enqueue(n).id for n in range(20)]
assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0, 0]
assert app._engine.store is store
mine += [work.enqueue(n).id for n in range(5)]
print(len(set(mine)), app.stats.get()["QUEUED"])
app.close()
"""
    )

    assert run(f"URL = {store_url!r}\n" + script, tmp_path).split() == ["26", str(26 + 4 * 30)]


def test_a_child_that_only_exits_leaves_its_parent_connected(tmp_path: Path, store_url: str) -> None:
    script = f"""
import os, sys, unstuck
app = unstuck.App({store_url!r})

@app.workflow
def work() -> None: ...

work.enqueue()
pid = os.fork()
if pid == 0:
    app.close()
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
work.enqueue()
print(app.stats.get()["QUEUED"])
"""

    assert run(script, tmp_path).split() == ["2"]
