"""A Client: refusals are the exceptions that Python callers get, keys stay secret and go nowhere else."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unstuck
from tests.client.code import deploy, with_code
from tests.client.rogue import Rogue
from unstuck.client.address import ApiKey
from unstuck.model import errors

NOBODY = "01900000-0000-7000-8000-000000000000"
SECRET = "usk_AbCdEfGh_" + "s3cret" * 8
SRC = Path(unstuck.__file__).parents[1]


@pytest.fixture(autouse=True)
def _code(request: pytest.FixtureRequest) -> None:
    if "here" in request.fixturenames:
        here = request.getfixturevalue("here")
        with_code(here)
        deploy(here)


# --- refusals -------------------------------------------------------------------------------------------------------


def refusal(ask: Any) -> unstuck.UnstuckError:
    with pytest.raises(unstuck.UnstuckError) as refused:
        ask()
    return refused.value


def test_a_refusal_is_the_exception_that_the_database_gives(client: unstuck.Client, here: unstuck.App) -> None:
    ended = here.jobs.enqueue("note", args=["x"])
    here.jobs.cancel(ended.id)
    here.jobs.enqueue("note", args=["x"], key="k")

    def asked(face: Any) -> dict[str, Any]:
        return {
            "UnknownJob": lambda: face.jobs.get(NOBODY),
            "IllegalMove": lambda: face.jobs.interrupt(ended.id),
            "UnknownWorkflowName": lambda: face.jobs.enqueue("nothing"),
            "InvalidArguments": lambda: face.jobs.enqueue("bill", args=[1, 2, 3]),
            "KeyConflict": lambda: face.jobs.enqueue("note", args=["y"], key="k"),
            "InvalidPolicy": lambda: face.jobs.enqueue("note", args=["y"], policy={"retries": -1}),
            "NotBlocking": lambda: face.jobs.skip(ended.id),
            "UnknownSetting": lambda: face.settings.get("nothing"),
            "NotWaiting": lambda: face.approvals.approve(ended.id),
            "UnknownTarget": lambda: face.targets.get("a/b c?d#e%"),
            "AmbiguousJob": lambda: face.jobs.get("01"),
            "NoStack": lambda: face.jobs.stack(ended.id),
        }

    for name, ask in asked(client).items():
        local, remote = refusal(asked(here)[name]), refusal(ask)
        assert type(remote) is type(local) is getattr(errors, name)
        assert str(remote) == str(local)
        for carried, value in vars(local).items():
            assert getattr(remote, carried) == value, f"{name}.{carried}"
        assert remote.request_id  # type: ignore[attr-defined]
        assert remote.remedy  # type: ignore[attr-defined]
        assert pickle.loads(pickle.dumps(remote.args)) == remote.args


def test_what_the_arguments_of_a_request_are_not_is_told_with_its_place(client: unstuck.Client) -> None:
    with pytest.raises(errors.WrongArguments) as refused:
        client.jobs.list(limit="many")  # type: ignore[arg-type]
    assert [problem[:2] for problem in refused.value.problems] == [("query", "/limit")]


def test_a_code_that_nobody_knows_is_a_plain_error_with_all_that_was_said() -> None:
    told = {
        "title": "New here", "detail": "the moon is full", "code": "MoonFull", "remedy": "wait", "request_id": "r1",
    }  # fmt: skip
    for code in ("MoonFull", "Exception", "ErrorType", "quoted", "__doc__", "StrEnum"):
        with Rogue(status=409, problem={**told, "code": code}) as rogue, unstuck.Client(rogue.url) as client:
            error = refusal(client.stats.get)
        assert type(error) is unstuck.UnstuckError
        assert str(error) == "New here; the moon is full; wait"
        assert (error.code, error.request_id) == (code, "r1")  # type: ignore[attr-defined]


def test_a_name_with_slashes_and_dots_is_one_name(client: unstuck.Client, here: unstuck.App) -> None:
    for name in ("acme/site", "..", ".", "a b", "ä?#%2F", "x" * 100):
        client.jobs.enqueue("note", args=["x"], target=name)
        assert client.targets.pause(name).name == name
        assert [pause.name for pause in here.pauses.list()] == [name]
        here.targets.unpause(name)


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_key_decides_who_asks_and_whose_jobs_are_meant(url: str, here: unstuck.App) -> None:
    admin = here.keys.create("root", role="platform-admin").key
    acme = here.keys.create("anna", role="operator", tenant="acme").key
    reader = here.keys.create("ron", role="reader", tenant="acme").key
    foreign = here.jobs.enqueue("note", args=["x"])

    with unstuck.Client(url, acme) as client:
        job = client.jobs.enqueue("note", args=["x"])
        assert job.tenant == "acme"
        assert client.job(job.id).tenant == "acme"
        assert client.job(job.id[:30]).cancel().state == "CANCELLED"
        for name in (foreign.id, NOBODY):
            with pytest.raises(unstuck.UnknownJob) as refused:
                client.jobs.get(name)
            assert str(refused.value) == str(unstuck.UnknownJob(name, "acme"))
    with unstuck.Client(url, reader) as client:
        assert len(client.jobs.list()) == 1
        with pytest.raises(unstuck.NotPermitted, match="submitter"):
            client.jobs.enqueue("note", args=["x"])
    with unstuck.Client(url, admin, tenant="acme") as client:
        assert len(client.jobs.list()) == 1
        assert {job.tenant for job in client.jobs.list(tenant="*")} == {"acme", "default"}
    mistyped = acme[:-1] + ("x" if acme[-1] != "x" else "y")
    for wrong in (None, SECRET, mistyped):
        with unstuck.Client(url, wrong) as client, pytest.raises(errors.Unauthenticated):
            client.jobs.list()


def test_a_key_comes_from_the_argument_the_environment_or_a_file(
    url: str, here: unstuck.App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = here.keys.create("anna", role="reader").key
    with unstuck.Client(url) as client:
        with pytest.raises(errors.Unauthenticated):
            client.stats.get()
        file = tmp_path / "key"
        file.write_text(f"{key}\n")
    monkeypatch.setenv("UNSTUCK_KEY_FILE", str(file))
    with unstuck.Client(url) as client:
        client.stats.get()
    monkeypatch.setenv("UNSTUCK_KEY", key)
    monkeypatch.setenv("UNSTUCK_KEY_FILE", str(tmp_path / "nothing"))
    with unstuck.Client(url) as client:
        client.stats.get()
    monkeypatch.delenv("UNSTUCK_KEY")
    with unstuck.Client(url) as client, pytest.raises(unstuck.InvalidInput, match="UNSTUCK_KEY_FILE"):
        client.stats.get()


def test_a_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """RELIABILITY §6: secrets never in logs, errors or reprs."""
    caplog.set_level(logging.DEBUG)
    shown = [repr(ApiKey(SECRET, "key=…")), str(ApiKey(SECRET, "key=…"))]
    client, aclient = (
        unstuck.Client("http://127.0.0.1:1", SECRET, timeout=0.2),
        unstuck.AsyncClient("http://127.0.0.1:1", SECRET, timeout=0.2),
    )
    app = unstuck.App("http://127.0.0.1:1", key=SECRET)
    for each in (client, aclient, app, client.jobs, app.config):
        shown += [repr(each), str(each)]
    shown.append(str(app._given))
    with Rogue(status=500, body=b"oh no") as rogue:
        for broken in (unstuck.Client(rogue.url, SECRET), client):
            error: BaseException | None = refusal(broken.stats.get)
            while error is not None:
                shown += [repr(error), str(error), repr(vars(error)), *getattr(error, "__notes__", [])]
                error = error.__context__
        assert f"Bearer {SECRET}" in rogue.heard[0]
    for text in ("two words", "line\nbreak", "ümlaut", "\x00"):
        with pytest.raises(unstuck.InvalidInput) as refused:
            unstuck.Client("http://127.0.0.1:1", SECRET + text)
        shown.append(str(refused.value))
    asyncio.run(aclient.close())
    shown += [caplog.text, *capsys.readouterr()]
    assert not [text for text in shown if "s3cret" in text]


@pytest.mark.parametrize(
    "address",
    ["http://jobs.example.org", "http://10.0.0.1:8420", "http://localhost.example.org", "http://127.0.0.1.nip.io"],
)
def test_a_key_is_not_sent_where_others_can_read_it(address: str) -> None:
    with pytest.raises(unstuck.InvalidInput, match="https://"):
        unstuck.Client(address, SECRET)
    with pytest.raises(unstuck.InvalidInput, match="allow_http=True"):
        unstuck.App(address, key=SECRET)
    unstuck.Client(address, SECRET, allow_http=True)
    unstuck.Client(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
def test_this_machine_is_no_other(host: str) -> None:
    assert repr(unstuck.Client(f"http://{host}:8420/", SECRET)) == f"<Client http://{host}:8420>"


@pytest.mark.parametrize(
    "address",
    [
        "jobs.example.org", "ftp://x", "https://", "https://a:b@c", "https://anna@c", "https://x?key=1", "https://x#f",
        "https://x y", "https://x:port", "sqlite:///x.db", "", "https://[::1", "http:///x", "https://ü.example",
    ],
)  # fmt: skip
def test_what_is_no_servers_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(unstuck.InvalidInput) as refused:
        unstuck.Client(address, SECRET)
    assert "s3cret" not in str(refused.value)


def test_no_redirect_is_followed_and_no_key_goes_there() -> None:
    with Rogue(status=200, body=b"{}") as other, Rogue(status=307, headers=[("Location", other.url)]) as rogue:
        with (
            unstuck.Client(rogue.url, SECRET) as client,
            pytest.raises(unstuck.UnstuckError, match="sends its callers"),
        ):
            client.stats.get()
        assert not other.heard


def test_no_proxy_of_the_environment_reads_a_key_that_goes_by_http(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        Rogue(status=200, body=b"{}") as proxy,
        Rogue(status=404, problem={"code": "UnknownJob", "detail": "no"}) as site,
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        with unstuck.Client(site.url, SECRET) as client, pytest.raises(unstuck.UnknownJob):
            client.jobs.get(NOBODY)
        assert not proxy.heard


# --- what else may be at an address ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"<html>hello</html>", "text/html"),
        (200, b"[]", "application/json"),
        (200, b'{"a": 1}', "application/json"),
        (200, b"\xff\xfe", "application/json"),
        (200, b"[" * 100_000, "application/json"),
        (404, b"nothing", "text/plain"),
        (404, b"[]", "application/problem+json"),
        (418, b'{"code": 5}', "application/problem+json"),
        (400, b"{" * 100_000, "application/problem+json"),
        (204, b"", ""),
        (304, b"", ""),
    ],
)
def test_what_is_no_server_of_ours_is_told_as_that(status: int, body: bytes, kind: str) -> None:
    with (
        Rogue(status=status, body=body, headers=[("Content-Type", kind)]) as rogue,
        unstuck.Client(rogue.url) as client,
    ):
        error = refusal(client.stats.get)
    assert type(error) is unstuck.UnstuckError
    assert rogue.url in str(error)


# --- imports --------------------------------------------------------------------------------------------------------


def test_importing_us_imports_no_httpx2() -> None:
    script = (
        "import sys, unstuck; app = unstuck.App('https://x.example', key='usk_a_b'); unstuck.Client; "
        "app.workflow(lambda: None) if False else None; assert 'httpx2' not in sys.modules; print('none')"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "none\n"
    )


def test_a_missing_extra_is_told_with_how_to_install_it() -> None:
    script = (
        "import sys; sys.modules['httpx2'] = None\nimport unstuck\n"
        "for ask in (unstuck.Client('http://localhost:1').stats.get, unstuck.App('http://localhost:1').stats.get,\n"
        "            lambda: unstuck.AsyncClient('http://localhost:1')):\n"
        "    try: ask()\n"
        "    except unstuck.InvalidInput as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.count("pip install 'unstuck[client]'") == 3


def test_one_file_knows_httpx2() -> None:
    files = [file for file in (SRC / "unstuck").rglob("*.py") if "import httpx2" in file.read_text()]
    assert {str(file.relative_to(SRC / "unstuck")) for file in files} <= {"client/transport.py", "app/remote.py"}


def test_a_fork_opens_connections_of_its_own(client: unstuck.Client) -> None:
    client.stats.get()
    pid = os.fork()
    if pid == 0:
        try:
            client.stats.get()
            client.close()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    client.stats.get()
