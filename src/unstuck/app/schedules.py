"""Schedules in code: `@app.workflow(schedule="0 3 * * *")` and `app.schedules.declare(…)`.

What is declared is collected, and checked once all code is imported; workers hand it to the store, which goes by the
newest version that has live workers (`store/life/declared.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from unstuck.app.workflow import Workflow
from unstuck.clock import wall
from unstuck.intake.schedules import check_schedule_name, job_of, spec_of
from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_name
from unstuck.model.schedules import ALIASES, CatchUp, DeclaredSchedule, Overlap, ScheduleRules, checked
from unstuck.model.times import seconds
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.app.code import AppCode
    from unstuck.app.nouns import SchedulesNoun
    from unstuck.model.workflow import Registry
else:
    SchedulesNoun = object


@dataclass(frozen=True, slots=True)
class ScheduleDraft:
    """A schedule as somebody wrote it, until all code is imported."""

    name: str
    workflow: str
    tenant: str | None
    said: Mapping[str, Any]


def of_decorator(workflow: str, given: Any) -> list[ScheduleDraft]:
    """`schedule=` of a workflow: a line, an interval, a mapping of options, or several of these."""
    several = given if isinstance(given, list | tuple) else [given]
    drafts = []
    for place, each in enumerate(several):
        said = dict(each) if isinstance(each, Mapping) else {_kind_of(workflow, each): each}
        name = said.pop("name", None) or (workflow if place == 0 else f"{workflow}-{place + 1}")
        drafts.append(draft_of(name, workflow, said.pop("tenant", None), said))
    return drafts


def _kind_of(workflow: str, given: Any) -> str:
    is_line = isinstance(given, str) and (given.strip().lower() in ALIASES or len(given.split()) > 1)
    if not is_line and (isinstance(given, bool) or not isinstance(given, str | int | float)):
        raise InvalidInput(
            f"workflow {workflow}: schedule={quoted(given)} is neither a cron line like '0 3 * * *', an interval "
            "like '5m', nor a mapping of options like {'cron': '0 3 * * *', 'zone': 'Europe/Berlin'}"
        )
    return "cron" if is_line else "every"


def draft_of(name: Any, workflow: str, tenant: Any, said: Mapping[str, Any]) -> ScheduleDraft:
    named = check_schedule_name(name)
    facts = {option: value for option, value in said.items() if value is not None}
    for option in ("every", "jitter"):
        if option in facts:
            try:
                facts[option] = seconds(facts[option])
            except (ValueError, TypeError):
                problem = f"{option}={quoted(facts[option])} is neither a number of seconds nor a text like '5m'"
                raise InvalidInput(f"schedule {named}: {problem}") from None
    return ScheduleDraft(named, workflow, None if tenant is None else check_name(tenant, "tenant"), facts)


def declared(drafts: Sequence[ScheduleDraft], registry: Registry, tenant: str) -> list[DeclaredSchedule]:
    """All of them, checked against the code that they call."""
    found: dict[tuple[str, str], DeclaredSchedule] = {}
    for draft in drafts:
        place = (draft.tenant or tenant, draft.name)
        if place in found:
            raise InvalidInput(f"there are two schedules named {draft.name}; give one of them another name")
        found[place] = _declared(draft, registry, place[0])
    return list(found.values())


def _declared(draft: ScheduleDraft, registry: Registry, tenant: str) -> DeclaredSchedule:
    handler = registry.handler(draft.workflow)
    try:
        now = wall()
        spec = checked(spec_of(workflow=draft.workflow, **draft.said), now, ScheduleRules())
        job_of(None, tenant, draft.name, spec, now, known=handler)  # type: ignore[arg-type]
    except InvalidInput as error:
        raise InvalidInput(f"schedule {draft.name}: {error}") from None
    return DeclaredSchedule(tenant, draft.name, spec.to_json())


class AppSchedules(SchedulesNoun):
    """`app.schedules`: all that can be asked of schedules, and `declare`. What asks is imported when it is first
    used: every executor imports the code that declares."""

    __slots__ = ("_code", "_engine")

    def __init__(self, code: AppCode) -> None:
        self._code = code
        self._engine = code.engine

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from unstuck.app.nouns import SchedulesNoun

            return getattr(SchedulesNoun(self._engine), name)

    def declare(
        self,
        name: str,
        workflow: Workflow[Any, Any] | str,
        *,
        cron: str | None = None,
        every: float | str | None = None,
        zone: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        tick_as: str | None = None,
        queue: str | None = None,
        priority: int = 0,
        target: str | None = None,
        tags: Sequence[str] = (),
        policy: Mapping[str, Any] | None = None,
        overlap: Overlap = "allow",
        catch_up: CatchUp = "last",
        catch_up_most: int = 100,
        jitter: float | str = 0,
        begin_at: datetime | None = None,
        end_at: datetime | None = None,
        tenant: str | None = None,
    ) -> None:
        """Part of this app's code: it runs by the clock as long as the newest version that has live workers says so.
        It is stored by a worker, not here."""
        called = workflow.name if isinstance(workflow, Workflow) else workflow
        said = {
            "cron": cron,
            "every": every,
            "zone": zone,
            "args": list(args),
            "kwargs": kwargs,
            "tick_as": tick_as,
            "queue": queue,
            "priority": priority,
            "target": target,
            "tags": list(tags),
            "policy": policy,
            "overlap": overlap,
            "catch_up": catch_up,
            "catch_up_most": catch_up_most,
            "jitter": jitter,
            "begin_at": begin_at,
            "end_at": end_at,
        }
        self._code.schedules.append(draft_of(name, called, tenant, said))
