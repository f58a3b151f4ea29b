"""unstuck dev: worker, server and reload in one command, as its user sees it. Real processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.command import Command, ended
from tests.cli.test_demo import tagged
from tests.support.eventually import eventually
from tests.support.lines import whole_lines

SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)

CODE = """
import time
from pathlib import Path
import unstuck

app = unstuck.App()

@app.workflow
def greet(name: str) -> str:
    return "Hello, " + name

@app.workflow
def last(path: str) -> str:
    Path(path).write_text("begun")
    time.sleep(60)
    return "done"
"""


@dataclass
class Dev:
    """One that runs in a folder with `shop.py`; it says everything as JSON."""

    unstuck: Command
    folder: Path
    process: subprocess.Popen[bytes]

    def save(self, code: str, name: str = "shop.py") -> None:
        """As editors do: another file takes its place."""
        draft = self.folder / f"{name}.draft"
        draft.write_text(code)
        draft.replace(self.folder / name)

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = whole_lines(self.folder / "said")
        return [line for text in lines if text.startswith("{") and (line := json.loads(text))["event"] == event]

    def says(self, event: str, times: int = 1) -> dict[str, Any]:
        try:
            return eventually(lambda: self.said(event)[times - 1 : times], timeout=40)[0]
        except AssertionError as error:
            raise AssertionError((self.folder / "said").read_text()) from error

    def ask(self, name: str) -> str:
        asked = self.unstuck("enqueue", "greet", name, "--app", "shop:app", "--wait", "--timeout", "30s")
        assert asked.code == 0, asked.err
        return asked.word

    def leaves_nothing(self) -> None:
        eventually(lambda: not tagged(self.folder), timeout=30)


@contextmanager
def developing(unstuck: Command, folder: Path, *words: str, code: str = CODE) -> Iterator[Dev]:
    (folder / "shop.py").write_text(code)
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            unstuck.words("dev", "shop:app", "--json", "--port", "0", "-p", "1", *words),
            cwd=folder,
            env=unstuck.environment(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    with ended(process, within=30):
        yield Dev(unstuck, folder, process)


def test_it_runs_jobs_answers_http_and_runs_what_is_saved(unstuck: Command, tmp_path: Path) -> None:
    with developing(unstuck, tmp_path) as dev:
        url = dev.says("dev_started")["server"]
        assert dev.says("ready")["workflows"] == 2
        assert dev.ask("Ada") == '"Hello, Ada"'
        assert httpx2.get(f"{url}/api/v1/jobs").json()["items"][0]["workflow"] == "greet"
        server = [line for line in tagged(tmp_path) if " server " in line]
        assert "--log-format json" in server[0], "what it says stands among our own lines"
        dev.save(CODE.replace("Hello", "Hullo"))
        reloaded = dev.says("reloaded")
        assert reloaded["changed"] == [str(tmp_path / "shop.py")]
        assert dev.ask("Ada") == '"Hullo, Ada"'
        assert [line for line in tagged(tmp_path) if " server " in line] == server, "it needs none of the code"
        assert {line["workflow"] for line in dev.said("job_ended")} == {"greet"}, "a line for every job"
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.wait(30) == 0
        assert tagged(tmp_path) == []


@SQLITE
def test_what_cannot_be_imported_is_shown_and_waited_out(unstuck: Command, tmp_path: Path) -> None:
    with developing(unstuck, tmp_path, code="import unstuck\ndef broken(:\n") as dev:
        refused = dev.says("code_refused")
        assert "SyntaxError" in refused["error"]
        assert "line 2" in refused["error"]
        dev.save("app = 7\n")
        assert "int" in dev.says("code_refused", 2)["error"], "not an App"
        dev.save(CODE)
        assert set(dev.says("reloaded")["changed"]) == {str(tmp_path / "shop.py")}
        dev.save(CODE.replace("import time", "import mail, time"))
        assert "No module named 'mail'" in dev.says("code_refused", 3)["error"]
        asked = unstuck("enqueue", "greet", "Ada", "--wait", "--timeout", "30s")
        assert asked.word == '"Hello, Ada"', "the code from before goes on"
        dev.save("", "mail.py")
        assert dev.says("reloaded", 2)["changed"] == [str(tmp_path / "mail.py"), str(tmp_path / "shop.py")]
        (tmp_path / "mail.py").unlink()
        assert "No module named 'mail'" in dev.says("code_refused", 4)["error"]
        dev.save("raise SystemExit(3)\n")
        dev.says("code_refused", 5)
        dev.save(CODE.replace("Hello", "Hallo"))
        dev.says("reloaded", 3)
        assert dev.ask("Ada") == '"Hallo, Ada"'


@SQLITE
def test_many_saves_while_it_reloads_end_with_the_last(unstuck: Command, tmp_path: Path) -> None:
    """Same length, same second, in the middle of a reload: Python's own cache would answer with the first."""
    with developing(unstuck, tmp_path) as dev:
        dev.says("ready")
        for number in range(30):
            dev.save(CODE.replace("Hello", f"He{number:02}o"))
            dev.save("x = 1\n", f"other{number}.py")
            if number % 10 == 0:  # in the middle of things
                eventually(lambda: any("executor.loading" in line for line in tagged(tmp_path)), timeout=30)
        eventually(lambda: dev.ask("Ada") == '"He29o, Ada"', timeout=40)
        assert len(dev.said("reloaded")) < 15
        eventually(lambda: sum(" worker " in line for line in tagged(tmp_path)) == 1, timeout=30)


def test_a_job_that_runs_when_code_changes_runs_again_at_no_cost(unstuck: Command, tmp_path: Path) -> None:
    with developing(unstuck, tmp_path, "--drain", "0.2s") as dev:
        dev.says("ready")
        begun = tmp_path / "begun"
        job = unstuck("enqueue", "last", str(begun)).word
        eventually(begun.exists, timeout=30)
        dev.save(CODE.replace("time.sleep(60)", "pass"))
        done = unstuck("jobs", "wait", job, "--timeout", "40s", "--json")
        assert done.code == 0, done.err
        shown = unstuck("jobs", "show", job, "--json").object
        assert shown["result"] == "done"
        assert [attempt["outcome"] for attempt in shown["attempt_list"]] == ["given_back", "completed"]
        assert (shown["failures"], shown["losses"]) == (0, 0)


@SQLITE
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_however_it_ends_nothing_is_left_behind(unstuck: Command, tmp_path: Path, sign: signal.Signals) -> None:
    with developing(unstuck, tmp_path, "--drain", "0.2s") as dev:
        dev.says("ready")
        begun = tmp_path / "begun"
        job = unstuck("enqueue", "last", str(begun)).word
        eventually(begun.exists, timeout=30)
        dev.process.send_signal(sign)
        assert dev.process.wait(30) == (-signal.SIGKILL if sign == signal.SIGKILL else 0)
        dev.leaves_nothing()
        assert unstuck("jobs", "show", job, "--json").object["state"] == "QUEUED"


@SQLITE
def test_a_second_signal_ends_it_at_once(unstuck: Command, tmp_path: Path) -> None:
    with developing(unstuck, tmp_path, "--drain", "60s") as dev:
        dev.says("ready")
        begun = tmp_path / "begun"
        job = unstuck("enqueue", "last", str(begun)).word
        eventually(begun.exists, timeout=30)
        dev.process.send_signal(signal.SIGINT)
        dev.says("stopping")
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.wait(10) == 0
        assert tagged(tmp_path) == []
        assert unstuck("jobs", "show", job, "--json").object["state"] == "QUEUED"


@SQLITE
def test_it_ends_while_an_import_hangs(unstuck: Command, tmp_path: Path) -> None:
    code = "from pathlib import Path\nimport time\nPath('begun').touch()\ntime.sleep(600)\n"
    with developing(unstuck, tmp_path, code=code) as dev:
        eventually((tmp_path / "begun").exists, timeout=30)
        dev.process.send_signal(signal.SIGTERM)
        assert dev.process.wait(10) == 0
        assert tagged(tmp_path) == []


@SQLITE
def test_a_worker_or_server_that_dies_is_started_again(unstuck: Command, tmp_path: Path) -> None:
    with developing(unstuck, tmp_path) as dev:
        url = dev.says("dev_started")["server"]
        dev.says("ready")
        eventually(lambda: httpx2.get(f"{url}/healthz").status_code == 200, timeout=30)
        children = Path(f"/proc/{dev.process.pid}/task/{dev.process.pid}/children")
        for pid in children.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        assert dev.says("worker_died")["code"] == dev.says("server_died")["code"] == -signal.SIGKILL
        assert dev.ask("Ada") == '"Hello, Ada"'
        assert httpx2.get(f"{url}/api/v1/jobs", timeout=30).status_code == 200


def test_the_app_may_move_to_another_database(bare: Command, tmp_path: Path) -> None:
    with developing(bare, tmp_path) as dev:
        started = dev.says("dev_started")
        assert started["database"] == "sqlite:///unstuck.db"
        dev.says("ready")
        dev.save(CODE.replace("App()", "App('sqlite:///other.db')"))
        dev.says("reloaded")
        assert dev.ask("Ada") == '"Hello, Ada"'
        url = started["server"]
        eventually(lambda: len(httpx2.get(f"{url}/api/v1/jobs").json()["items"]) == 1, timeout=30)
        dev.save(CODE.replace("App()", "App('sqlite:///no/such/folder/x.db')"))
        assert "folder" in dev.says("code_refused")["error"]
        assert len(httpx2.get(f"{url}/api/v1/jobs").json()["items"]) == 1, "what runs stays where it is"


@SQLITE
def test_in_a_terminal_it_is_calm_and_ends_with_ctrl_c(unstuck: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CODE)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        unstuck.words("dev", "shop:app", "--port", "0", "--no-server"),
        cwd=tmp_path,
        env=unstuck.environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    with ended(process, within=30):
        while b"ready: " not in shown:
            shown += os.read(ours, 4096)
        asked = unstuck("enqueue", "greet", "Ada", "--wait", "--timeout", "30s")
        assert asked.code == 0, asked.err
        while b"COMPLETED" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # how Linux says that nobody holds the other end any more
            pass
        assert process.wait(30) == 0
    os.close(ours)
    lines = shown.decode().splitlines()
    assert lines[0] == f"unstuck dev of shop:app on {unstuck.url}"
    assert "none: --no-server" in lines[1]
    assert f"1 file of code in {tmp_path}" in lines[2]
    said = [line for line in lines if line[:2].isdigit()]
    assert len(said) == 3, "ready, one job, stopping"
    assert "greet" in said[1]
    assert tagged(tmp_path) == []


@SQLITE
def test_when_the_terminal_closes_it_ends(unstuck: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CODE)
    pid, ours = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        words = unstuck.words("dev", "shop:app", "--port", "0")
        os.execve(words[0], words, unstuck.environment())
    shown = b""
    while b"ready: " not in shown:
        shown += os.read(ours, 4096)
    os.close(ours)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    eventually(lambda: not tagged(tmp_path), timeout=30)


@SQLITE
def test_what_cannot_be_is_told_at_once(unstuck: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(CODE)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = unstuck("dev", "shop:app", "--port", port)
    assert (refused.code, "choose another --port" in refused.err) == (2, True)
    assert unstuck("dev").code == 2
    assert "no such folder" in unstuck("dev", "shop:app", "--reload-dir", "nowhere").err
    refused = unstuck("dev", "shop:app", "--host", "0.0.0.0", "--port", "0")
    assert (refused.code, "unstuck keys create" in refused.out) == (2, True)
    (tmp_path / "shop.py").write_text("import nosuch\n")
    refused = unstuck("dev", "shop:app", "--no-reload", "--port", "0")
    assert (refused.code, "No module named 'nosuch'" in refused.err) == (2, True)
    refused = unstuck("dev", "shop:app", "--no-reload", "--port", "0", "--database", "sqlite:///no/such/x.db")
    assert refused.code == 2, "the code comes first"
    (tmp_path / "shop.py").write_text(CODE)
    refused = unstuck("dev", "shop:app", "--port", "0", "--database", "sqlite:///no/such/x.db")
    assert refused.code == 6
    assert tagged(tmp_path) == []
