"""unstuck workers …: who runs jobs, in which processes, what keeps them from it; recycle processes, drain workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated

from unstuck import clock
from unstuck.cli import exits, options, output, shapes, worker_info
from unstuck.cli.excerpt import users_part
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.cli.worker_info import Body, GoneProcess, ProcessView
from unstuck.model.errors import InvalidInput, NoAnswer, SchemaMismatch, UnstuckError
from unstuck.model.job import WorkerRecord
from unstuck.model.why.facts import FailingRole
from unstuck.observe.lookup import WORKERS_SHOWN
from unstuck.store.port import WorkerOrder

app = options.group(
    "Workers, their processes and the jobs in them; recycle a process, drain a worker.", default="list"
)

#: A worker looks for orders every second or so; one that does not answer by then is busy dying or cut off.
PATIENCE = 10.0
LOOK_EVERY = 0.5
#: So many processes that went are told to people; programs get all that the worker remembers.
GONE = 5

By = Annotated[str | None, option("--by", metavar="NAME", help="who asks, for the log; you, if not given")]
Wait = Annotated[bool, option("--wait", help="until it is gone")]


@app.command("list")
def list_(
    all_: Annotated[bool, option("--all", help="also those that left or fell silent")] = False,
    *,
    common: options.CommonPlatform,
) -> None:
    """Workers, their processes and the jobs in them. And why processes went, or cannot start."""
    with opened(common) as session:
        now = session.now()
        shown = 0
        for worker, state in session.workers(None if all_ else WORKERS_SHOWN):
            if not (all_ or is_worth_showing(worker, state, now)):
                continue
            if common.json:
                output.emit_json(shapes.worker(worker, state, now))
            else:
                _print_worker(worker, state, now, is_first=not shown)
            shown += 1
    if not shown and not common.json:
        output.note("no workers; start one: unstuck worker MODULE:APP")


def is_worth_showing(worker: WorkerRecord, state: str, now: datetime) -> bool:
    """Workers that left in order are history; one that fell silent is news for an hour."""
    return state != "gone" and now - worker.heartbeat_at < timedelta(seconds=WORKERS_SHOWN)


# --- the tree -----------------------------------------------------------------------------------------------------

_STYLES = {"active": "green", "draining": "yellow", "starting": "cyan", "spare": "dim"}
_PLACES = {"loop": "on the loop", "thread": "on a thread", "main": "on the main thread"}


def _print_worker(worker: WorkerRecord, state: str, now: datetime, *, is_first: bool) -> None:
    if not is_first:
        output.say("")
    output.say(f"{output.styled(worker.name, 'bold')}  {_state(worker, state)}  {_load(worker)}")
    version = worker.info.get("code_version") or worker.code_version
    queues = ", ".join(worker.queues) or "every queue of its workflows"
    output.say(f"  pid {worker.pid} on {worker.host}, code {version}, serves {queues}")
    output.say(f"  started {output.age(worker.started_at, now)}, last beat {output.age(worker.heartbeat_at, now)}")
    if mode := worker.info.get("mode"):
        why = worker.info.get("mode_reason")
        output.say(f"  processes start by {mode}{f': {why}' if why else ''}")
    if problem := worker_info.import_error(worker.info):
        _print_problem("its app cannot be imported", problem)
    if problem := worker_info.start_error(worker.info):
        _print_problem("its processes cannot start", problem)
    for role in worker_info.roles(worker, now):
        output.say(output.styled(f"  its {role_text(role)}", "red"))
    processes = worker_info.processes(worker, now) if state != "gone" else []
    if processes and state not in worker_info.ALIVE:
        output.say("  what it said with its last beat, and what need not be so any more:")
    for process in processes:
        _print_process(process)
    _print_recycled(worker_info.recycled(worker), now)


def _state(worker: WorkerRecord, state: str) -> str:
    """Why a worker that is alive takes no jobs: no app, no process, or a role that fails and that it cannot do
    without."""
    shown = output.styled(state, _STYLES.get(state, "red"))
    is_waiting = state == "active" and not worker_info.is_ready(worker, state)
    return f"{shown}, {output.styled('not ready', 'yellow')}" if is_waiting else shown


def _load(worker: WorkerRecord) -> str:
    slots = worker.info.get("slots")
    return f"running {worker.running}{f' of {slots}' if isinstance(slots, int) else ''}"


def _print_problem(what: str, problem: str) -> None:
    output.say(output.styled(f"  {what}; it is tried again, later each time:", "red"))
    for line in users_part(problem).splitlines():
        output.say(f"    {output.visible(line)}")


def role_text(role: FailingRole) -> str:
    """What it cannot do, since when, and why."""
    tries = "once" if role.failures == 1 else f"{role.failures:,} times"
    failing = f"{role.name} has failed for {output.duration(role.failing_for)} ({tries})"
    return output.visible(f"{failing}: {role.error}" if role.error else failing)


def _print_process(process: ProcessView) -> None:
    state = output.styled(process.state, _STYLES.get(process.state, "red"))
    output.say(f"  process {process.pid or '?'}  {state}  {process_text(process)}")
    name = max((len(body.workflow) for body in process.bodies), default=0)
    for body in process.bodies:
        output.say(f"    {body.workflow:<{name}}  {body.job}  {_body_text(body)}")
    if (unnamed := process.running - len(process.bodies)) > 0 and process.bodies:
        output.say(f"    … and {output.count(unnamed, 'job')} more")


def process_text(process: ProcessView) -> str:
    """Generation, what it has done, what it weighs, and what is the matter with it."""
    parts = [f"generation {process.generation}", f"{process.jobs_done:,} done"]
    if process.memory:
        parts.append(output.size(process.memory))
    if process.is_alone:
        parts.append("one job at a time")
    if process.silent_for >= 1:
        parts.append(f"silent for {output.duration(process.silent_for)}")
    text = ", ".join(parts)
    return f"{text}: {process.reason}" if process.reason else text


def _body_text(body: Body) -> str:
    text = f"{output.duration(body.seconds):>8}  {_PLACES.get(body.on, body.on)}"
    if not body.trouble:
        return text
    return f"{text}  {output.styled(body.trouble, 'bold red' if body.is_stuck else 'yellow')}"


def _print_recycled(gone: list[GoneProcess], now: datetime) -> None:
    if not gone:
        return
    output.say("  went lately")
    for process in list(reversed(gone))[:GONE]:
        since = f", {output.age(process.at, now)}" if process.at else ""
        done = f"generation {process.generation}, {process.jobs_done:,} done"
        output.say(f"    process {process.pid or '?'}  {done}{since}: {output.visible(process.reason)}")


# --- orders -------------------------------------------------------------------------------------------------------


@app.command()
def recycle(
    pid: Annotated[str, Argument(metavar="PID", help="of a process, as `unstuck workers` shows it")],
    worker: Annotated[
        str | None, option("--worker", metavar="NAME", help="where, if two hosts have that pid")
    ] = None,
    wait: Wait = False,
    timeout: options.Timeout = None,
    by: By = None,
    *,
    common: options.CommonPlatform,
) -> int:
    """Replace a process. It takes no more jobs, those in it finish and are stored, then it ends; a new one starts."""
    number = _pid(pid)
    from unstuck.intake import workers as doors

    with opened(common) as session:
        order = doors.recycle(session.store, number, session.who(by), worker)
        code = _print_answer(session, order, common.json)
        if wait and code == exits.OK:
            return _wait(session, order.worker, common.json, timeout, lambda w: _what_is_left_of(w, number))
        return code


@app.command()
def drain(
    names: Annotated[
        list[str] | None, Argument(metavar="NAME", help="workers, as `unstuck workers` shows them")
    ] = None,
    all_: Annotated[bool, option("--all", help="every worker there is")] = False,
    wait: Wait = False,
    timeout: options.Timeout = None,
    by: By = None,
    *,
    common: options.CommonPlatform,
) -> int:
    """Stop workers in order. As TERM does: they take nothing new, what runs may finish, then they end."""
    if all_ == bool(names):
        raise InvalidInput("say which workers to drain, or --all")
    with opened(common) as session:
        orders, code = _drain(session, None if all_ else (names or []), by)
        for order in orders:
            code = _print_answer(session, order, common.json) or code
        for order in orders if wait and code == exits.OK else ():
            code = _wait(session, order.worker, common.json, timeout, _what_is_left) or code
    return code


def _drain(session: Session, names: list[str] | None, by: str | None) -> tuple[list[WorkerOrder], int]:
    """Everybody is told before anybody is waited for; one unknown name does not spare the others."""
    from unstuck.intake import workers as doors

    who, code = session.who(by), exits.OK
    if names is None:
        return doors.drain(session.store, None, who), code
    orders: list[WorkerOrder] = []
    for name in dict.fromkeys(names):
        try:
            orders += doors.drain(session.store, name, who)
        except SchemaMismatch:
            raise
        except UnstuckError as error:
            output.note(f"unstuck: {error}")
            code = code or exits.code_of(error)
    return orders, code


def _pid(word: str) -> int:
    from unstuck.cli.gates import whole_number

    return whole_number(word, "PID")


def _print_answer(session: Session, order: WorkerOrder, as_json: bool) -> int:
    """What the worker answers. If it says nothing, that is told, and the order stands."""
    from unstuck.intake.workers import answered

    name = _named(session, order.worker)
    try:
        order = answered(session.store, order, PATIENCE)
    except NoAnswer as error:
        if as_json:
            output.emit_json(shapes.order(order, name))
        output.note(f"unstuck: worker {name}: {error}; the order stands: unstuck workers")
        return exits.code_of(error)
    if as_json:
        output.emit_json(shapes.order(order, name))
    elif order.is_refused:
        output.note(f"unstuck: worker {name}: {order.answer}")
    else:
        output.say(f"{name}: {output.visible(order.answer or '')}")
    return exits.NOT_FOUND if order.is_refused else exits.OK


def _named(session: Session, worker: int) -> str:
    return next((w.name for w in session.store.workers(worker - 1, 1) if w.number == worker), str(worker))


Left = Callable[[WorkerRecord], str | None]


def _what_is_left(worker: WorkerRecord) -> str | None:
    """Of a whole worker."""
    if not worker.running:
        return "nothing runs there any more"
    return f"{output.count(worker.running, 'job')} still {'runs' if worker.running == 1 else 'run'}"


def _what_is_left_of(worker: WorkerRecord, pid: int) -> str | None:
    """Of one of its processes; None once it is gone."""
    process = next((p for p in worker_info.processes(worker) if p.pid == pid), None)
    if process is None:
        return None
    if not process.running:
        return f"process {pid} has nothing left"
    return (
        f"{output.count(process.running, 'job')} still {'runs' if process.running == 1 else 'run'} in process {pid}"
    )


def _wait(session: Session, number: int, as_json: bool, timeout: float | None, left: Left) -> int:
    """Until it is gone, or its worker is; says what is left whenever that changes."""
    until = None if timeout is None else clock.boot() + timeout
    told: str | None = None
    while True:
        seen = next(((w, state) for w, state in session.workers() if w.number == number), None)
        if seen is None or seen[1] not in worker_info.ALIVE or (rest := left(seen[0])) is None:
            if not as_json:
                output.say("it is gone")
            return exits.OK
        if rest != told:
            output.note(f"{seen[0].name}: {rest}")
            told = rest
        if until is not None and clock.boot() >= until:
            output.note(f"unstuck: not gone after {output.duration(timeout)}; it goes on draining: unstuck workers")
            return exits.TIMED_OUT
        session.pause(LOOK_EVERY)
