"""unstuck workers …: who runs jobs, in which processes, what keeps them from it; recycle, kill and drain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Annotated

from unstuck import clock
from unstuck.cli import exits, options, output
from unstuck.cli.excerpt import users_part
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import InvalidInput, NoAnswer, SchemaMismatch, UnstuckError
from unstuck.operations import workers
from unstuck.views.workers import BodyView, GoneProcess, OrderView, ProcessView, WorkerView, processes

app = options.group(
    "Workers, their processes and the jobs in them; recycle or kill a process, drain a worker.", default="list"
)

#: A worker looks for orders every second or so; one that does not answer by then is busy dying or cut off.
PATIENCE = 10.0
LOOK_EVERY = 0.5
#: So many processes that went are told to people; programs get all that the worker remembers.
GONE = 5

Pid = Annotated[str, Argument(metavar="PID", help="of a process, as `unstuck workers` shows it")]
Where = Annotated[str | None, option("--worker", metavar="NAME", help="where, if two hosts have that pid")]
Wait = Annotated[bool, option("--wait", help="until it is gone")]


@app.command("list")
def list_(
    all_: Annotated[bool, option("--all", help="also those that left or fell silent")] = False,
    *,
    common: options.CommonPlatform,
) -> None:
    """Workers, their processes and the jobs in them. And why processes went, or cannot start."""
    shown = 0
    with opened(common) as session:
        now = session.now()
        for worker in _each(session, ended=all_):
            if common.json:
                output.emit_view(worker)
            else:
                _print_worker(worker, now, is_first=not shown)
            shown += 1
    if not shown and not common.json:
        output.note("no workers; start one: unstuck worker MODULE:APP")


def _each(session: Session, *, ended: bool = False) -> Iterator[WorkerView]:
    page = workers.list_(session.caller, ended=ended)
    yield from page
    while page.next is not None:
        page = workers.list_(session.caller, ended=ended, after=page.next)
        yield from page


# --- the tree -----------------------------------------------------------------------------------------------------

_STYLES = {"active": "green", "draining": "yellow", "starting": "cyan", "spare": "dim"}
_PLACES = {"loop": "on the loop", "thread": "on a thread", "main": "on the main thread"}


def _print_worker(worker: WorkerView, now: datetime, *, is_first: bool) -> None:
    if not is_first:
        output.say("")
    output.say(f"{output.styled(worker.name, 'bold')}  {_state(worker)}  {_load(worker)}")
    version = worker.info.get("code_version") or worker.code_version
    queues = ", ".join(worker.queues) or "every queue of its workflows"
    output.say(f"  pid {worker.pid} on {worker.host}, code {version}, serves {queues}")
    if worker.key is not None:
        through = f" through {worker.server}" if worker.server else ""
        polled = f", last poll {output.age(worker.polled_at, now)}" if worker.polled_at else ""
        output.say(f"  at a distance, by the key {worker.key} from {worker.address}{through}{polled}")
    output.say(f"  started {output.age(worker.started_at, now)}, last beat {output.age(worker.heartbeat_at, now)}")
    if mode := worker.info.get("mode"):
        why = worker.info.get("mode_reason")
        output.say(f"  processes start by {mode}{f': {why}' if why else ''}")
    if worker.import_error:
        _print_problem("its app cannot be imported", worker.import_error)
    if worker.start_error:
        _print_problem("its processes cannot start", worker.start_error)
    for role in worker.roles:
        output.say(output.styled(f"  its {output.visible(role.text)}", "red"))
    for process in worker.processes if worker.is_alive else _last_said(worker):
        _print_process(process)
    _print_recycled(worker.recycled, now)


def _last_said(worker: WorkerView) -> Iterable[ProcessView]:
    said = processes(worker.info) if worker.state != "gone" else ()
    if said:
        output.say("  what it said with its last beat, and what need not be so any more:")
    return said


def _state(worker: WorkerView) -> str:
    """Why a worker that is alive takes no jobs: no app, no process, or a role that fails and that it cannot do
    without."""
    shown = output.styled(worker.state, _STYLES.get(worker.state, "red"))
    is_waiting = worker.state == "active" and not worker.ready
    return f"{shown}, {output.styled('not ready', 'yellow')}" if is_waiting else shown


def _load(worker: WorkerView) -> str:
    return f"running {worker.running}{'' if worker.slots is None else f' of {worker.slots}'}"


def _print_problem(what: str, problem: str) -> None:
    output.say(output.styled(f"  {what}; it is tried again, later each time:", "red"))
    for line in users_part(problem).splitlines():
        output.say(f"    {output.visible(line)}")


def _print_process(process: ProcessView) -> None:
    state = output.styled(process.state, _STYLES.get(process.state, "red"))
    output.say(f"  process {process.pid or '?'}  {state}  {process_text(process)}")
    name = max((len(body.workflow) for body in process.jobs), default=0)
    for body in process.jobs:
        output.say(f"    {body.workflow:<{name}}  {body.job}  {_body_text(body)}")
    if (unnamed := process.running - len(process.jobs)) > 0 and process.jobs:
        output.say(f"    … and {output.count(unnamed, 'job')} more")


def process_text(process: ProcessView) -> str:
    """Generation, what it has done, what it weighs, and what is the matter with it."""
    parts = [f"generation {process.generation}", f"{process.jobs_done:,} done"]
    if process.memory:
        parts.append(output.size(process.memory))
    if process.alone:
        parts.append("one job at a time")
    if process.silent_ms >= 1000:
        parts.append(f"silent for {output.duration(process.silent_ms / 1000)}")
    text = ", ".join(parts)
    return f"{text}: {process.reason}" if process.reason else text


def _body_text(body: BodyView) -> str:
    text = f"{output.duration(body.elapsed_ms / 1000):>8}  {_PLACES.get(body.on, body.on)}"
    if not body.trouble:
        return text
    return f"{text}  {output.styled(body.trouble, 'bold red' if body.stuck else 'yellow')}"


def _print_recycled(gone: Iterable[GoneProcess], now: datetime) -> None:
    newest = [*gone][::-1][:GONE]
    if newest:
        output.say("  went lately")
    for process in newest:
        since = f", {output.age(process.at, now)}" if process.at else ""
        done = f"generation {process.generation}, {process.jobs_done:,} done"
        output.say(f"    process {process.pid or '?'}  {done}{since}: {output.visible(process.reason)}")


# --- orders -------------------------------------------------------------------------------------------------------


@app.command()
def recycle(
    pid: Pid,
    worker: Where = None,
    wait: Wait = False,
    timeout: options.Timeout = None,
    by: options.By = None,
    *,
    common: options.CommonPlatform,
) -> int:
    """Replace a process. It takes no more jobs, those in it finish and are stored, then it ends; a new one starts."""
    options.check_timeout(wait, timeout)
    number = _pid(pid)
    with opened(common) as session:
        order = workers.recycle(session.caller.about(by=by), number, worker=worker)
        code = _print_answer(session, order, common.json)
        if wait and code == exits.OK:
            return _wait(session, order, common.json, timeout, lambda w: _what_is_left_of(w, number))
        return code


@app.command()
def kill(pid: Pid, worker: Where = None, by: options.By = None, *, common: options.CommonPlatform) -> int:
    """End a process now. The jobs in it go back to the queue at no cost; a new one starts."""
    number = _pid(pid)
    with opened(common) as session:
        order = workers.kill(session.caller.about(by=by), number, worker=worker)
        return _print_answer(session, order, common.json)


@app.command()
def drain(
    names: Annotated[
        list[str] | None, Argument(metavar="NAME", help="workers, as `unstuck workers` shows them")
    ] = None,
    all_: Annotated[bool, option("--all", help="every worker there is")] = False,
    wait: Wait = False,
    timeout: options.Timeout = None,
    by: options.By = None,
    *,
    common: options.CommonPlatform,
) -> int:
    """Stop workers in order. As TERM does: they take nothing new, what runs may finish, then they end."""
    if all_ == bool(names):
        raise InvalidInput("say which workers to drain, or --all")
    options.check_timeout(wait, timeout)
    with opened(common) as session:
        orders, code = _drain(session, names, by)
        for order in orders:
            code = _print_answer(session, order, common.json) or code
        for order in orders if wait and code == exits.OK else ():
            code = _wait(session, order, common.json, timeout, _what_is_left) or code
    return code


def _drain(session: Session, names: list[str] | None, by: str | None) -> tuple[list[OrderView], int]:
    """Everybody is told before anybody is waited for; one unknown name does not spare the others."""
    caller, code = session.caller.about(by=by), exits.OK
    if not names:
        return [*workers.drain(caller, every=True)], code
    orders: list[OrderView] = []
    for name in dict.fromkeys(names):
        try:
            orders += workers.drain(caller, name)
        except SchemaMismatch:
            raise
        except UnstuckError as error:
            output.note(f"unstuck: {error}")
            code = code or exits.code_of(error)
    return orders, code


def _pid(word: str) -> int:
    from unstuck.cli.gates import whole_number

    return whole_number(word, "PID")


def _print_answer(session: Session, order: OrderView, as_json: bool) -> int:
    """What the worker answers. If it says nothing, that is told, and the order stands."""
    try:
        order = workers.answer(session.caller, order.number, timeout=PATIENCE)
    except NoAnswer as error:
        if as_json:
            output.emit_view(order)
        output.note(f"unstuck: worker {order.worker}: {error}; the order stands: unstuck workers")
        return exits.code_of(error)
    if as_json:
        output.emit_view(order)
    elif order.refused:
        output.note(f"unstuck: worker {order.worker}: {order.answer}")
    else:
        output.say(f"{order.worker}: {output.visible(order.answer or '')}")
    return exits.NOT_FOUND if order.refused else exits.OK


Left = Callable[[WorkerView], str | None]


def _what_is_left(worker: WorkerView) -> str | None:
    """Of a whole worker."""
    if not worker.running:
        return "nothing runs there any more"
    return f"{output.count(worker.running, 'job')} still {'runs' if worker.running == 1 else 'run'}"


def _what_is_left_of(worker: WorkerView, pid: int) -> str | None:
    """Of one of its processes; None once it is gone."""
    process = next((p for p in worker.processes if p.pid == pid), None)
    if process is None:
        return None
    if not process.running:
        return f"process {pid} has nothing left"
    return (
        f"{output.count(process.running, 'job')} still {'runs' if process.running == 1 else 'run'} in process {pid}"
    )


def _wait(session: Session, order: OrderView, as_json: bool, timeout: float | None, left: Left) -> int:
    """Until it is gone, or its worker is; says what is left whenever that changes."""
    until = None if timeout is None else clock.boot() + timeout
    told: str | None = None
    while True:
        seen = next((w for w in _each(session) if w.number == order.worker_number), None)
        if seen is None or not seen.is_alive or (rest := left(seen)) is None:
            if not as_json:
                output.say("it is gone")
            return exits.OK
        if rest != told:
            output.note(f"{seen.name}: {rest}")
            told = rest
        if until is not None and clock.boot() >= until:
            output.note(f"unstuck: not gone after {output.duration(timeout)}; it goes on draining: unstuck workers")
            return exits.TIMED_OUT
        session.pause(LOOK_EVERY)
