"""unstuck worker APP: run the jobs of an app until told to stop."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from unstuck import clock, telemetry
from unstuck.cli import options, output
from unstuck.cli.companion import heard
from unstuck.cli.excerpt import told
from unstuck.cli.log_writer import LogWriter
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import (
    is_postgres,
    prepare_database,
    sealer_of,
    settings_of,
    signing_file,
    signing_of,
    told_by,
)
from unstuck.model.errors import InvalidInput, InvalidSettings, SchemaMismatch, StoreError, StoreUnavailable
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.assembly.worker import WorkerOptions
    from unstuck.config import Settings
    from unstuck.worker.zygote_process import ZygoteProcess

app = options.single()


@dataclass(frozen=True)
class WorkerFlags:
    """Everything that the command line may say of a worker."""

    app_name: Annotated[str | None, Argument(metavar="MODULE:APP", help="where the App is  [UNSTUCK_APP]")] = None
    concurrency: Annotated[
        int | None, option("--concurrency", "-c", least=1, help="jobs at once, all processes together")
    ] = None
    processes: Annotated[int | None, option("--processes", "-p", least=1, help="executor processes")] = None
    queues: Annotated[
        list[str] | None,
        option("--queues", "-q", metavar="A,B", help="only these; else every queue of the app"),
    ] = None
    max_jobs_per_process: Annotated[
        int | None, option("--max-jobs-per-process", least=1, help="replace a process after this number of jobs")
    ] = None
    max_memory: Annotated[
        int | None,
        option("--max-memory", read=options.byte_count, metavar="SIZE", help="replace it above, e.g. 512M"),
    ] = None
    memory_limit: Annotated[
        int | None,
        option(
            "--memory-limit", read=options.byte_count, metavar="SIZE", help="kill it above: its job is OutOfMemory"
        ),
    ] = None
    name: Annotated[str | None, option("--name", help="how others see it; host and pid if not given")] = None
    drain: Annotated[
        float | None,
        option("--drain", read=options.seconds, metavar="DURATION", help="how long running jobs may finish"),
    ] = None
    ready_file: Annotated[
        str | None, option("--ready-file", metavar="PATH", help="exists exactly while it takes jobs, for probes")
    ] = None
    health_port: Annotated[
        int | None,
        option("--health-port", least=0, most=65535, help="answer /healthz, /readyz and /metrics there; 0: any free"),
    ] = None
    health_host: Annotated[
        str | None,
        option("--health-host", metavar="ADDRESS", help="where that port is; elsewhere than here only with keys"),
    ] = None
    preset: Annotated[str | None, option("--preset", metavar="NAME", help="a named set of times")] = None
    set_: Annotated[
        list[str] | None,
        option("--set", metavar="NAME=VALUE", help="any setting, e.g. --set lease=1m; may be repeated"),
    ] = None
    fork: Annotated[
        bool | None,
        option("--fork", off="--no-fork", help="start executors by fork; else it is chosen by itself"),
    ] = None
    log_format: Annotated[
        str | None, option("--log-format", metavar="auto|human|json", help="on stderr; json without a terminal")
    ] = None
    verbose: Annotated[
        bool, option("--verbose", "-v", help="a line for every job that ends, and the routine of every sweep")
    ] = False
    check: Annotated[bool, option("--check", help="say what would run, with which bounds, and stop")] = False
    stop_with_stdin: Annotated[bool, option("--stop-with-stdin")] = False
    #: As `unstuck dev` starts it: it is told what the app's code says, and tells when it has imported the app.
    for_dev: Annotated[bool, option("--for-dev")] = False
    server: Annotated[
        str | None,
        option("--server", metavar="URL", help="ask this server instead of a database: see docs/remote.md"),
    ] = None
    key: Annotated[
        str | None,
        option("--key", metavar="usk_…", help="by which it is asked; better in UNSTUCK_KEY or UNSTUCK_KEY_FILE"),
    ] = None
    ca: Annotated[str | None, option("--ca", metavar="FILE", help="trust these certificates of the server")] = None
    allow_http: Annotated[
        bool, option("--allow-http", help="send the key by http://, also to another machine; others may read it")
    ] = False
    database: options.Database = None

    def settings(self, ask: Callable[[Settings], Mapping[str, Any]] | None = None) -> Settings:
        """With what files, the environment and the app's own code say besides."""
        named = {name: getattr(self, name) for name in _SETTINGS}
        pairs = _pairs(self.set_ or [])
        flags = {"app": self.app_name, "queues": _names(self.queues), **named, **pairs}
        if self.server is not None and self.preset is None:
            flags["preset"] = "signed_remote"
        own = _told_by_dev() if self.for_dev else None
        settings = settings_of(flags, ask_app=True, insist=self.check, own=own, ask=ask)
        if not settings.app:
            raise InvalidInput("which app? unstuck worker MODULE:APP, or UNSTUCK_APP=MODULE:APP")
        return settings


#: Flags that are settings of the same name.
_SETTINGS = (
    "database", "concurrency", "processes", "max_jobs_per_process", "max_memory", "memory_limit", "ready_file",
    "health_port", "health_host", "drain", "preset", "log_format",
)  # fmt: skip


@app.command()
def worker(flags: WorkerFlags) -> int:
    """Run jobs. TERM or Ctrl-C once: finish what runs, take nothing new; twice: hand everything back now."""
    if flags.check:  # before anything is built: a look makes no database
        settings = flags.settings()
        _introduce(_chosen(settings, flags))
        _tell_policies(settings)
        return 0
    early = _Early(flags.server, _key(flags))
    settings = flags.settings(early.ask)
    return _run(flags, settings, _chosen(settings, flags, early.zygote))


def _run(flags: WorkerFlags, settings: Settings, chosen: WorkerOptions) -> int:
    from unstuck.assembly.worker import build_worker

    # Only here: what was imported before its app was asked, the start of a worker waited for.
    from unstuck.cli.eventlog import calm, human_log, json_log
    from unstuck.cli.job_lines import JobLines
    from unstuck.cli.library_log import LibraryLog

    if chosen.server is not None:
        _say_hello(chosen, as_json=wants_json(settings.log_format))
    supervisor = build_worker(chosen, prepare=False)
    as_json = wants_json(settings.log_format)
    if not as_json and not flags.for_dev:
        _introduce(chosen)
    if chosen.server is None:
        _prepare(settings, as_json=as_json)
    writer = LogWriter(sys.stderr, as_json=as_json)
    if not sys.stderr.isatty() and not flags.for_dev:
        # At a terminal there is no service manager that could cut the drain short.
        for warning in settings.warnings():
            writer.say(_json_warning(warning) if as_json else f"unstuck: {warning}")
    if chosen.server is None:
        # For handlers that enqueue: an App() without a database of its own means this one.
        os.environ["UNSTUCK_DATABASE"] = settings.database
    colour = not output.is_plain(sys.stderr)
    human = human_log(writer.say, colour=colour, verbose=flags.verbose)
    log = json_log(writer.say, writer.mention) if as_json else calm(human) if flags.for_dev else human
    telemetry.subscribe(log, every_job=flags.verbose)
    LibraryLog.install(writer.say, as_json=as_json)
    if flags.for_dev:
        telemetry.subscribe(_tell_imports)
    only_failed = not flags.for_dev and (as_json or not sys.stderr.isatty())
    lines = JobLines(writer.mention, colour=colour, as_json=as_json, only_failed=only_failed)
    if not flags.verbose:  # then the log has a line of every job
        telemetry.watch_jobs(lines)
    if flags.stop_with_stdin:
        stop_when_stdin_ends(supervisor.stop)
    try:
        return supervisor.run()
    finally:
        lines.finish()
        writer.finish()


class _Early:
    """The process that imports the app, started before the worker knows its settings and asked for those that the
    app's own code names; meanwhile we import what we are made of. It ends with us, whatever we come to refuse."""

    def __init__(self, server: str | None, key: str | None) -> None:
        self._server, self._key = server, key
        self.zygote: ZygoteProcess | None = None

    def ask(self, settings: Settings) -> Mapping[str, Any]:
        from unstuck.assembly.worker import import_parts, start_zygote

        environ = dict(os.environ)
        if "database" in settings.origins and self._server is None:
            environ["UNSTUCK_DATABASE"] = settings.database
        app = settings.app or ""
        zygote = start_zygote(app, environ, self._server, self._key)
        from unstuck.worker.zygote_process import NotImported

        try:
            said = zygote.ask(settings.times.import_limit, import_parts)
        except NotImported as problem:
            raise InvalidInput(told(f"app {app} cannot be imported", str(problem))) from None
        self.zygote = zygote
        return said


def _chosen(settings: Settings, flags: WorkerFlags, zygote: ZygoteProcess | None = None) -> WorkerOptions:
    from unstuck.assembly.worker import WorkerOptions

    return WorkerOptions(
        app=settings.app or "",
        database=settings.database,
        queues=tuple(settings.queues),
        concurrency=settings.concurrency,
        processes=settings.processes,
        max_jobs_per_process=settings.max_jobs_per_process,
        max_memory=settings.max_memory,
        memory_limit=settings.memory_limit,
        ready_file=settings.ready_file,
        health_port=settings.health_port,
        health_host=settings.health_host,
        name=flags.name,
        times=settings.times,
        fork=flags.fork,
        policy=settings.policy,
        log_json=wants_json(settings.log_format),
        signing=signing_of(settings),
        signing_file=signing_file(settings),
        sealer=sealer_of(settings),
        server=flags.server,
        key=_key(flags),
        ca=flags.ca,
        allow_http=flags.allow_http,
        zygote=zygote,
    )


def _key(flags: WorkerFlags) -> str | None:
    """The secret for the server; what only a server needs is refused without one."""
    if flags.server is None:
        if flags.key or flags.ca or flags.allow_http:
            raise InvalidInput("--key, --ca and --allow-http are about a server: name it with --server URL")
        return None
    if flags.database is not None:
        raise InvalidInput("--server and --database: a worker asks one of them")
    from unstuck.client.address import ApiKey

    found = ApiKey.found(flags.key)
    return None if found is None else found.secret


def _say_hello(chosen: WorkerOptions, *, as_json: bool) -> None:
    """A key that is refused, and a server of another time, are told at once; one that is away is waited for."""
    from unstuck.assembly.worker import server_port

    port = server_port(chosen)
    try:
        port.hello()
    except StoreError as error:
        told = f"{error}; waiting for it"
        output.note(_json_warning(told) if as_json else f"unstuck: {told}")
    finally:
        port.close()


def _prepare(settings: Any, *, as_json: bool) -> None:
    """A server that restarts, or comes up after us, is waited for; a file that cannot be used is told at once."""
    try:
        prepare_database(settings)
    except SchemaMismatch:
        raise
    except StoreError as error:
        if isinstance(error, StoreUnavailable) and not is_postgres(settings.database):
            raise
        told = f"{error}; waiting for it"
        output.note(_json_warning(told) if as_json else f"unstuck: {told}")


def _told_by_dev() -> dict[str, Any]:
    """It starts us while it looks at the app's code; until then we import what we are made of."""
    from unstuck.assembly.worker import import_parts

    import_parts()
    own = heard()
    if own is None:
        raise SystemExit(0)  # it needs us no more
    return dict(own)


def _tell_imports(name: str, facts: dict[str, object]) -> None:
    """On stdout, for the process that started us: people read stderr."""
    if name in ("imported", "import_failed"):
        output.emit_json({"event": name, **facts})


def _json_warning(message: str) -> str:
    from unstuck.cli.job_lines import json_line

    return json_line(clock.wall(), "log", {"level": "warning", "message": message})


def wants_json(choice: str) -> bool:
    return choice == "json" or (choice == "auto" and not sys.stderr.isatty())


def _names(given: list[str] | None) -> tuple[str, ...] | None:
    names = [name.strip() for text in given or [] for name in text.split(",") if name.strip()]
    return tuple(names) or None


def _pairs(given: list[str]) -> dict[str, Any]:
    pairs = [text.partition("=") for text in given]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise InvalidInput(f"--set {wrong[0]} says no value; write --set {wrong[0]}=VALUE")
    return {name.strip().replace("-", "_"): value for name, _, value in pairs}


def _introduce(chosen: Any) -> None:
    """What it serves and what it promises, before anything happens."""
    processes = output.count(chosen.processes, "process")
    queues = ", ".join(chosen.queues) or "every queue its workflows name"
    output.note(f"unstuck worker of {chosen.app}: {chosen.concurrency} at once in {processes}")
    output.note(f"  serves    {queues}")
    output.note("  promises  (while the database can be written)")
    for what, seconds in chosen.times.bounds().items():
        output.note(f"    {output.duration(seconds):>7}  {what}")
    output.note("  Ctrl-C finishes what runs and ends; twice hands everything back at once")


def _tell_policies(settings: Any) -> None:
    """The policies that jobs get, whichever program enqueues them, once this worker has registered their
    workflows."""
    from unstuck.cli.workflows import fact_text, policy_facts

    workflows = told_by(settings.app, settings.times.import_limit)["workflows"]
    wrong = []
    for name, said in workflows.items():
        policy = settings.policy.with_(f"workflow {name}", said)
        wrong += [f"workflow {name}: {problem}" for problem in policy.problems(settings.times.max_timeout)]
    if wrong:
        raise InvalidSettings(wrong)
    output.note("  jobs get  (unless their decorator or using() says otherwise)")
    for name, value in policy_facts(settings.policy, settings.times.max_timeout):
        output.note(f"    {name:<18} {value}{_origin(settings, name)}")
    for name, said in workflows.items():
        if own := [f"{what}={fact_text(value)}" for what, value in said.items() if value is not None]:
            output.note(f"  {name} says  {', '.join(own)}")


def _origin(settings: Any, name: str) -> str:
    origin = settings.origins.get("token_limit" if name == "budget" and settings.token_limit else name)
    return f"  ({origin})" if origin else ""


def stop_when_stdin_ends(stop: Callable[[], object]) -> None:
    """The process that started us holds the other end of the pipe: when it dies, however it dies, we drain."""

    def watch() -> None:
        # Not through sys.stdin: its buffer's lock would be held for ever, and the interpreter could not end.
        while os.read(0, 4096):
            pass
        stop()

    threading.Thread(target=watch, name="stdin", daemon=True).start()
