"""unstuck dev APP: worker, server and reload on code change, while you write the app."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import Annotated

from unstuck.cli import options
from unstuck.cli.parser import Argument, option
from unstuck.model.errors import InvalidInput
from unstuck.records import dataclass
from unstuck.server.listening import address_of, listen

app = options.single()

PORT = 8420


@dataclass(frozen=True)
class DevFlags:
    """Everything that the command line may say of it."""

    app_name: Annotated[str | None, Argument(metavar="MODULE:APP", help="where the App is  [UNSTUCK_APP]")] = None
    host: Annotated[
        str, option("--host", metavar="ADDRESS", help="where the server listens; elsewhere than here only with keys")
    ] = "127.0.0.1"
    port: Annotated[
        int | None, option("--port", least=0, most=65535, help=f"{PORT}, or any that is free if not given")
    ] = None
    no_server: Annotated[bool, option("--no-server", help="the worker alone")] = False
    no_reload: Annotated[bool, option("--no-reload", help="code that changes is not noticed")] = False
    reload_dir: Annotated[
        list[str] | None,
        option("--reload-dir", metavar="FOLDER", help="watch this one too; may be repeated"),
    ] = None
    concurrency: Annotated[int | None, option("--concurrency", "-c", least=1, help="jobs at once")] = None
    processes: Annotated[int | None, option("--processes", "-p", least=1, help="executor processes")] = None
    drain: Annotated[
        float,
        option(
            "--drain",
            read=options.seconds,
            metavar="DURATION",
            help="how long running jobs may finish when code changes, and at the end",
        ),
    ] = 2.0
    json: Annotated[bool, option("--json", help="for programs: an object for everything that happens")] = False
    database: options.Database = None


@app.command()
def dev(flags: DevFlags) -> int:
    """Worker and server of an app that you are writing: what you save is imported and runs; what cannot be imported
    is shown, and the code from before goes on. Ctrl-C ends all: once in order, twice at once."""
    from unstuck.cli.dev.lines import DevLines
    from unstuck.cli.dev.run import DevOptions, DevRun
    from unstuck.cli.dev.sources import roots_of
    from unstuck.cli.stop_signals import StopSignals
    from unstuck.config import load

    settings = load({"app": flags.app_name, "database": flags.database})
    if not settings.app:
        raise InvalidInput("which app? unstuck dev MODULE:APP, or UNSTUCK_APP=MODULE:APP")
    folder = Path.cwd()
    listener, remark = _listener(flags)
    address = None if listener is None else address_of(listener)
    chosen = DevOptions(
        app=settings.app,
        flags={"database": flags.database, "concurrency": flags.concurrency, "processes": flags.processes},
        drain=flags.drain,
        folder=folder,
        roots=tuple(roots_of(settings.app, folder, [_folder(name) for name in flags.reload_dir or []])),
        reloads=not flags.no_reload,
        worker=(*_worker_words(flags), *_log_words(flags)),
        server=_log_words(flags),
        host=flags.host,
        listener=listener,
        address=address,
        served=f"{address or 'none'}{remark}",
    )
    with StopSignals() as signals:
        return DevRun(chosen, settings, DevLines(as_json=flags.json), signals).run()


def _worker_words(flags: DevFlags) -> list[str]:
    given = [("--concurrency", flags.concurrency), ("--processes", flags.processes)]
    return [word for name, value in given if value is not None for word in (name, str(value))]


def _log_words(flags: DevFlags) -> tuple[str, ...]:
    """All of them write on our stdout, each as we do, whether or not a terminal reads it."""
    return "--log-format", "json" if flags.json else "human"


def _folder(name: str) -> Path:
    path = Path(name)
    if not path.is_dir():
        raise InvalidInput(f"--reload-dir {name}: there is no such folder")
    return path


def _listener(flags: DevFlags) -> tuple[socket | None, str]:
    """The server's socket, or None; and a remark. Instead of a port that nobody asked for any other will do."""
    if flags.no_server:
        return None, ": --no-server"
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        return None, ": it needs `pip install unstuck[server]`"
    if flags.port is not None:
        return listen(flags.host, flags.port), ""
    try:
        return listen(flags.host, PORT), ""
    except InvalidInput:
        return listen(flags.host, 0), f"    (port {PORT} is taken)"
