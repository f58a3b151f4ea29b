"""unstuck server: everything over HTTP, until told to stop."""

from __future__ import annotations

import sys
from socket import socket
from typing import Annotated

from unstuck import telemetry
from unstuck.cli import options, output
from unstuck.cli.eventlog import human_log, json_log
from unstuck.cli.library_log import LibraryLog
from unstuck.cli.log_writer import LogWriter
from unstuck.cli.parser import option
from unstuck.cli.session import prepare_database, sealer_of, settings_of, signing_file, signing_of
from unstuck.cli.worker import stop_when_stdin_ends, wants_json

app = options.single()


@app.command()
def server(
    host: Annotated[
        str, option("--host", metavar="ADDRESS", help="where to listen; elsewhere than here only with keys")
    ] = "127.0.0.1",
    port: Annotated[int, option("--port", least=0, most=65535, help="0: any that is free")] = 8420,
    rate: Annotated[float, option("--rate", metavar="NUMBER", help="requests a second of one key")] = 1000.0,
    public_url: Annotated[
        str | None,
        option(
            "--public-url", metavar="URL", help="where browsers find it behind a proxy, e.g. https://jobs.example"
        ),
    ] = None,
    log_format: Annotated[
        str | None, option("--log-format", metavar="auto|human|json", help="on stderr; json without a terminal")
    ] = None,
    stop_with_stdin: Annotated[bool, option("--stop-with-stdin")] = False,
    listener_fd: Annotated[int | None, option("--listener-fd")] = None,
    app_name: options.AppName = None,
    database: options.Database = None,
) -> int:
    """Answer HTTP: everything that can be asked, under /api/v1, as /openapi.json describes it. Like a worker it also
    recovers lost jobs, fires timers and forgets what is old. TERM or Ctrl-C: answer what was asked, then end."""
    from unstuck.assembly.server import ServerOptions, build_server
    from unstuck.config import masked
    from unstuck.model.errors import InvalidInput

    if not 0 < rate < float("inf"):
        raise InvalidInput(f"--rate {rate:g} is not a number of requests above 0")
    settings = settings_of({"app": app_name, "database": database, "log_format": log_format})
    signing = signing_of(settings)  # what is required without a key is refused before anything else is done
    prepare_database(settings)
    shown = masked(settings.database)
    times = settings.times
    file = signing_file(settings)
    sealer = sealer_of(settings)
    built = build_server(
        ServerOptions(settings.database, host, port, rate, times, shown, public_url, signing, file, sealer)
    )
    from unstuck.server.listening import address_of, listen

    # Who starts servers one after the other holds their socket: nobody who asks meanwhile is refused.
    listener = listen(host, port) if listener_fd is None else socket(fileno=listener_fd)
    output.say(f"unstuck server on {address_of(listener)}  ({shown})")
    writer = _log(settings.log_format)
    if stop_with_stdin:
        stop_when_stdin_ends(built.stop)
    try:
        built.run(listener)
    finally:
        writer.finish()
    return 0


def _log(choice: str) -> LogWriter:
    """What its janitor does, and what goes wrong, as a worker would say it; nothing of single requests."""
    as_json = wants_json(choice)
    writer = LogWriter(sys.stderr, as_json=as_json)
    human = human_log(writer.say, colour=not output.is_plain(sys.stderr), verbose=False)
    telemetry.subscribe(json_log(writer.say, writer.mention) if as_json else human)
    LibraryLog.install(writer.say, as_json=as_json)
    return writer
