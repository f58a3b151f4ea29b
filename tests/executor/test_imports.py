"""The import of an app: once, under a deadline, and with a reason when forking is not safe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.executor.watch import APP, Watch, is_gone
from tests.support.eventually import eventually
from unstuck.executor.descendants import executor_of, processes
from unstuck.model.settlement import Returned
from unstuck.worker.processes import Imported, ImportFailed

APP_TEXT = """
from types import SimpleNamespace
from unstuck.model.workflow import Handler, Registry
import json
registry = Registry()
app = SimpleNamespace(_registry=registry)
def add(a, b):
    return a + b
registry.add(Handler(
    name="add", call=add, is_async=False, takes_context=False,
    unpack=lambda text: tuple(json.loads(text)), pack=json.dumps,
))
"""


@contextmanager
def watching(app: str, mode: str = "fork", **options: float) -> Iterator[Watch]:
    watch = Watch(mode, app, **options)
    try:
        yield watch
    finally:
        watch.close()


def write_app(folder: Path, text: str) -> str:
    path = folder / "my_app.py"
    path.write_text(text + APP_TEXT)
    return f"{path}:app"


def test_an_app_tells_what_it_can_run() -> None:
    with watching(APP) as watch:
        imported = watch.imported()

    assert imported.mode == "fork"
    assert imported.code_version == "tests"
    assert {"add", "add_async"} <= {record.name for record in imported.workflows}
    assert next(r.policy.max_result for r in imported.workflows if r.name == "too_big") == 100


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_an_app_in_a_file_is_found_by_its_path(tmp_path: Path, mode: str) -> None:
    with watching(write_app(tmp_path, ""), mode) as watch:
        assert watch.result(watch.executor(), "add", 1, 2) == 3


@pytest.mark.parametrize(
    ("app", "problem"),
    [
        ("tests.executor.nothing:app", "No module named"),
        ("tests.executor.apps:nothing", "has no nothing"),
        ("tests.executor.apps:log", "not an App"),
        ("missing.py:app", "there is no file"),
    ],
)
def test_an_app_that_is_not_there_says_so(app: str, problem: str) -> None:
    with watching(app) as watch:
        assert problem in watch.import_failed().error


def test_an_import_that_raises_leaves_its_traceback_and_is_tried_again(tmp_path: Path) -> None:
    app = write_app(tmp_path, "raise RuntimeError('no database today')\n")
    with watching(app) as watch:
        first = watch.import_failed()
        assert "no database today" in first.error
        assert "my_app.py" in first.error
        assert first.again_in == 1.0

        write_app(tmp_path, "")
        assert watch.hear_one(Imported, within=5.0).mode == "fork"


def test_an_import_that_hangs_is_ended_and_tried_later_each_time(tmp_path: Path) -> None:
    """F14."""
    app = write_app(tmp_path, "import time, sys\nprint('importing')\ntime.sleep(60)\n")
    with watching(app, import_limit=0.7) as watch:
        zygote = watch.wait(lambda: watch.fleet.hear(0.05) or watch.fleet.pids()["zygote"])["pid"]
        failed = watch.import_failed(within=3.0)
        assert failed.error == "the import took longer than 0.7 s"
        eventually(lambda: is_gone(zygote))

        def twice() -> list[ImportFailed] | None:
            found = [event for event in watch.events if isinstance(event, ImportFailed)]
            return found if len(found) == 2 else None

        assert [event.again_in for event in watch.wait(twice)] == [1.0, 2.0]


def test_an_import_that_ends_the_process_is_a_failed_import(tmp_path: Path) -> None:
    with watching(write_app(tmp_path, "import os\nos._exit(5)\n")) as watch:
        assert "exit 5" in watch.import_failed().error


def test_an_app_that_imports_numpy_still_forks(tmp_path: Path) -> None:
    app = write_app(tmp_path, "import numpy\nnumpy.ones((500, 500)) @ numpy.ones((500, 500))\n")
    with watching(app) as watch:
        imported = watch.imported()
        assert (imported.mode, imported.reason) == ("fork", "")
        assert watch.result(watch.executor(), "add", 1, 2) == 3
        assert watch.result(watch.executor(), "add", 1, 2) == 3


def test_an_app_that_leaves_a_thread_running_is_spawned_with_the_reason(tmp_path: Path) -> None:
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    with watching(write_app(tmp_path, text)) as watch:
        imported = watch.imported()
        assert imported.mode == "spawn"
        assert "1 Python thread" in imported.reason
        assert watch.run(watch.executor(), "add", 1, 2).outcome == Returned("3")


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_the_database_is_known_to_handlers_and_stands_in_no_command_line(tmp_path: Path, mode: str) -> None:
    """Its password would be told to everybody on this host."""
    address = "postgresql://shop:hush@localhost/shop"
    text = APP_TEXT.replace("return a + b", "import os; return os.environ['UNSTUCK_DATABASE']")
    (tmp_path / "my_app.py").write_text(text)
    watch = Watch(mode, f"{tmp_path / 'my_app.py'}:app", database=address)
    try:
        executor = watch.executor()
        assert watch.result(executor, "add", 1, 2) == address
        started = [found.pid for found in processes() if executor_of(found.pid, watch.incarnation) is not None]
        assert len(started) >= 2
        lines = [Path(f"/proc/{pid}/cmdline").read_text() for pid in started]
        assert [line for line in lines if "hush" in line] == []
    finally:
        watch.close()


def test_forking_is_switched_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSTUCK_FORK", "off")
    with watching(APP) as watch:
        imported = watch.imported()
        assert (imported.mode, imported.reason) == ("spawn", "forking is switched off")
        seen = watch.result(watch.executor(), "who")
        guard = watch.fleet.pids()["zygote"]["pid"]
        assert seen["ppid"] == guard
        assert "tests.executor.apps" not in Path(f"/proc/{guard}/maps").read_text()
        assert "guard" in Path(f"/proc/{guard}/cmdline").read_text()


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_an_on_start_hook_that_raises_keeps_its_executor_from_starting(tmp_path: Path, mode: str) -> None:
    app = write_app(tmp_path, "")
    path = tmp_path / "my_app.py"
    path.write_text(path.read_text() + "\nregistry.on_start.append(lambda: 1 / 0)\n")
    with watching(app, mode) as watch:
        watch.fleet.spawn(1)
        ref = watch.feed(1, "add", 1, 2)
        died = watch.died(1)

    assert "ZeroDivisionError" in died.status
    assert died.unstarted == (ref,)
    assert not died.expected


def test_an_on_start_hook_that_hangs_is_ended_after_the_import_limit(tmp_path: Path) -> None:
    app = write_app(tmp_path, "")
    path = tmp_path / "my_app.py"
    path.write_text(path.read_text() + "\nimport time\nregistry.on_start.append(lambda: time.sleep(60))\n")
    with watching(app, import_limit=3.0) as watch:
        watch.imported()
        watch.fleet.spawn(1)
        died = watch.died(1, within=30.0)

    assert "not ready after 3 s" in died.status


def test_the_supervisor_never_imports_the_app(tmp_path: Path) -> None:
    with watching(write_app(tmp_path, "import os\nos.environ['MY_APP_RAN'] = 'yes'\n")) as watch:
        watch.executor()

    assert "my_app" not in sys.modules
    assert "MY_APP_RAN" not in os.environ


def _version(folder: Path, app: str = "shop.jobs:app") -> str:
    """As a worker that starts there finds it."""
    asked = f"from unstuck.executor.loading import load_registry; print(load_registry({app!r}).code_version)"
    answer = subprocess.run([sys.executable, "-c", asked], cwd=folder, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_code_without_a_version_is_known_by_a_digest_of_what_was_imported(tmp_path: Path) -> None:
    """The same on every machine, another when a module of the app changes, and deaf to what it does not import."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        (folder / "shop").mkdir(parents=True)
        (folder / "shop" / "__init__.py").write_text("")
        (folder / "shop" / "jobs.py").write_text("import prices\n" + APP_TEXT)
        (folder / "prices.py").write_text("RATE = 1\n")
    first = _version(here)
    assert first.startswith("code-")
    assert first == _version(there)

    (there / "shop" / "unused.py").write_text("RATE = 2\n")
    assert first == _version(there)
    (there / "prices.py").write_text("RATE = 2\n")
    assert first != _version(there)
