"""unstuck stats: how many jobs are in which state."""

from __future__ import annotations

from typing import Annotated, Any

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import InvalidInput
from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import given
from unstuck.observe.lookup import ALIVE, CEILING, Stats
from unstuck.store.port import Tally, TallyBy

app = options.single()


@app.command()
def stats(
    by_tenant: Annotated[bool, option("--by-tenant", help="a line for each tenant")] = False,
    by_queue: Annotated[bool, option("--by-queue", help="a line for each of this tenant's queues")] = False,
    by_workflow: Annotated[bool, option("--by-workflow", help="a line for each of this tenant's workflows")] = False,
    all_tenants: Annotated[bool, option("--all-tenants", help="not only this tenant's")] = False,
    limit: Annotated[int, option("--limit", "-n", help="maximum lines", least=1, most=1000)] = 20,
    after: Annotated[str, option("--after", metavar="NAME", help="go on where the last page ended")] = "",
    watch: Annotated[bool, option("--watch", "-w", help="again every second, until Ctrl-C")] = False,
    *,
    common: options.Common,
) -> None:
    """Jobs by state, and the workers that serve them."""
    options.check_whose(all_tenants, common)
    by = _grouping(by_tenant, by_queue, by_workflow, all_tenants, watch)
    with opened(common) as session:
        if by is not None:
            _print_groups(session, by, after, limit, common.json)
            return
        while True:
            _print(session, all_tenants, common.json, one_line=watch)
            if not watch:
                return
            session.pause(1.0)


def _grouping(tenant: bool, queue: bool, workflow: bool, all_tenants: bool, watch: bool) -> TallyBy | None:
    asked: list[TallyBy] = []
    asked += ["tenant"] if tenant else []
    asked += ["queue"] if queue else []
    asked += ["workflow"] if workflow else []
    if len(asked) > 1:
        raise InvalidInput("only one of --by-tenant, --by-queue and --by-workflow at a time")
    if asked and watch:
        raise InvalidInput(f"--watch shows one line a second; leave out --by-{asked[0]}")
    if all_tenants and asked and not tenant:
        raise InvalidInput(f"--by-{asked[0]} is of one tenant: name it with --tenant, or say --by-tenant")
    return asked[0] if asked else None


def _print(session: Session, all_tenants: bool, as_json: bool, *, one_line: bool) -> None:
    found = session.lookup.stats(all_tenants=all_tenants)
    alive = [w for w in session.lookup.workers() if w.state in ALIVE]
    running = sum(w.running for w in alive)
    if as_json:
        output.emit_json(
            {
                "tenant": None if all_tenants else session.tenant,
                **_numbers(found),
                "workers": {"alive": len(alive), "running": running},
                "at": output.rfc3339(session.now()),
            }
        )
    elif one_line:
        shown = "  ".join(f"{state} {count_text(found, state)}" for state in JobState if found.states[state])
        output.say(f"{shown or 'no jobs'}  · {output.count(len(alive), 'worker')}")
    else:
        output.table(["STATE", "JOBS"], [(state.value, count_text(found, state)) for state in JobState], empty="")
        output.say(f"\n{output.count(len(alive), 'worker')} alive, running {running}")
        _print_queue(session, found)


def _print_queue(session: Session, found: Stats) -> None:
    """What the number of queued jobs hides."""
    parts = []
    if found.scheduled:
        parts.append(f"{_counted(found.scheduled)} for a later time")
    if found.blocked:
        parts.append(f"{_counted(found.blocked)} behind a job that blocks their target")
    if parts:
        output.say(f"of the queued wait {', '.join(parts)}")
    if found.oldest_due_at is not None:
        waited = (session.now() - found.oldest_due_at).total_seconds()
        output.say(f"the next to run has been due for {output.duration(max(0.0, waited))}")


def _print_groups(session: Session, by: TallyBy, after: str, limit: int, as_json: bool) -> None:
    found = session.lookup.tallies(by, after=after, limit=limit)
    if as_json:
        for tally in found:
            output.emit_json({"kind": by, "name": tally.name, **_numbers(tally)})
    else:
        now = session.now()
        rows = [
            (tally.name, *(count_text(tally, state) for state in JobState), output.age(tally.oldest_due_at, now))
            for tally in found
        ]
        output.table([by.upper(), *JobState, "NEXT DUE"], rows, empty=f"no {by} has had a job so far")
    if len(found) == limit:
        output.note(f"there may be more: {given('--after', found[-1].name)}")


def _numbers(found: Stats | Tally) -> dict[str, Any]:
    return {
        "states": {state.value: found.states[state] for state in JobState},
        "at_least": [state.value for state in JobState if state in found.at_least],
        "scheduled": found.scheduled,
        "blocked": found.blocked,
        "oldest_due_at": output.rfc3339(found.oldest_due_at),
        "ceiling": CEILING,
    }


def count_text(found: Stats | Tally, state: JobState) -> str:
    """How many are in this state, as a column shows it."""
    return _counted(found.states[state], state in found.at_least)


def _counted(number: int, is_cut: bool = False) -> str:
    """10,000+ where the count stopped before its end."""
    return f"{number:,}" + ("+" if is_cut or number >= CEILING else "")
