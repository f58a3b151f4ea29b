"""unstuck stats: how many jobs are in which state."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import InvalidInput
from unstuck.model.lifecycle import JobState
from unstuck.operations import stats as operations
from unstuck.store.port import EVERY, TallyBy
from unstuck.views.stats import StatsView, TallyView

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


def _print(session: Session, all_tenants: bool, in_json: bool, *, one_line: bool) -> None:
    found = operations.get(session.caller.about(EVERY if all_tenants else None))
    alive = output.count(found.workers.alive, "worker")
    if in_json:
        output.emit_view(found)
    elif one_line:
        shown = "  ".join(f"{state} {count_text(found, state)}" for state in JobState if found.states[state])
        output.say(f"{shown or 'no jobs'}  · {alive}")
    else:
        output.table(["STATE", "JOBS"], [(state.value, count_text(found, state)) for state in JobState], empty="")
        output.say(f"\n{alive} alive, running {found.workers.running}")
        _print_queue(found)


def _print_queue(found: StatsView) -> None:
    """What the number of queued jobs hides."""
    parts = []
    if found.scheduled:
        parts.append(f"{_counted(found, found.scheduled)} for a later time")
    if found.blocked:
        parts.append(f"{_counted(found, found.blocked)} behind a job that blocks their target")
    if parts:
        output.say(f"of the queued wait {', '.join(parts)}")
    if found.oldest_due_at is not None:
        waited = (found.at - found.oldest_due_at).total_seconds()
        output.say(f"the next to run has been due for {output.duration(max(0.0, waited))}")


#: Each question about groups, by what they are.
_GROUPED = {"tenant": operations.by_tenant, "queue": operations.by_queue, "workflow": operations.by_workflow}


def _print_groups(session: Session, by: TallyBy, after: str, limit: int, in_json: bool) -> None:
    page = _GROUPED[by](session.caller, after=after, limit=limit)
    if in_json:
        output.emit_page(page)
    else:
        now = session.now()
        rows = [
            (tally.name, *(count_text(tally, state) for state in JobState), output.age(tally.oldest_due_at, now))
            for tally in page
        ]
        output.table([by.upper(), *JobState, "NEXT DUE"], rows, empty=f"no {by} has had a job so far")
        output.tell_next(page)


def count_text(found: StatsView | TallyView, state: JobState) -> str:
    """How many are in this state, as a column shows it."""
    return _counted(found, found.states[state], state in found.at_least)


def _counted(found: StatsView | TallyView, number: int, is_cut: bool = False) -> str:
    """10,000+ where the count stopped before its end."""
    return f"{number:,}" + ("+" if is_cut or number >= found.ceiling else "")
