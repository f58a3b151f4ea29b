"""unstuck server: everything over HTTP, until told to stop."""

from __future__ import annotations

from socket import socket
from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import prepare_database, settings_of
from unstuck.cli.worker import stop_when_stdin_ends

app = options.single()


@app.command()
def server(
    host: Annotated[
        str, option("--host", metavar="ADDRESS", help="where to listen; elsewhere than here only with keys")
    ] = "127.0.0.1",
    port: Annotated[int, option("--port", least=0, most=65535, help="0: any that is free")] = 8420,
    rate: Annotated[float, option("--rate", metavar="NUMBER", help="requests a second of one key")] = 1000.0,
    stop_with_stdin: Annotated[bool, option("--stop-with-stdin")] = False,
    listener_fd: Annotated[int | None, option("--listener-fd")] = None,
    app_name: options.AppName = None,
    database: options.Database = None,
) -> int:
    """Answer HTTP: everything that can be asked, under /api/v1, as /openapi.json describes it. Like a worker it also
    recovers lost jobs, fires timers and forgets what is old. TERM or Ctrl-C: answer what was asked, then end."""
    from unstuck.assembly import ServerOptions, build_server
    from unstuck.config import masked
    from unstuck.model.errors import InvalidInput

    if not 0 < rate < float("inf"):
        raise InvalidInput(f"--rate {rate:g} is not a number of requests above 0")
    settings = settings_of({"app": app_name, "database": database})
    prepare_database(settings)
    shown = masked(settings.database)
    built = build_server(ServerOptions(settings.database, host, port, rate, settings.times, shown))
    from unstuck.server.listening import address_of, listen

    # Who starts servers one after the other holds their socket: nobody who asks meanwhile is refused.
    listener = listen(host, port) if listener_fd is None else socket(fileno=listener_fd)
    output.say(f"unstuck server on {address_of(listener)}  ({shown})")
    if stop_with_stdin:
        stop_when_stdin_ends(built.stop)
    built.run(listener)
    return 0
