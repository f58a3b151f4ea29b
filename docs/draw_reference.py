"""Draws docs/reference.md, and the table of docs/keys.md, from the table of operations, the views, the settings and
the errors.

`python docs/draw_reference.py` after changing one of them; a test compares the two.
"""

from __future__ import annotations

import inspect
import json
import sys
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

from unstuck import App, Job, config
from unstuck.app.workflow import PolicyOptions, WorkflowOptions
from unstuck.cli import exits
from unstuck.config import PRESETS, Settings
from unstuck.meanings import MEANINGS, WORKFLOW_OPTIONS
from unstuck.model import errors
from unstuck.model.errors import UnstuckError
from unstuck.model.lifecycle import EventKind
from unstuck.model.news import NewsKind
from unstuck.model.policy import CHOICES, LONGEST, RANGES, Policy
from unstuck.model.series import SERIES_KEPT
from unstuck.model.times import Times
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.table import INCLUDED, Operation, Role
from unstuck.views import Page, View
from unstuck.views.events import DATA, EndData, schema

PAGE = Path(__file__).with_name("reference.md")
SCHEMA = Path(__file__).with_name("events.schema.json")
KEYS = Path(__file__).with_name("keys.md")

HEAD = """\
# Reference

Drawn from the code by `docs/draw_reference.py`; a test compares the two. The guides tell how things are used:
[enqueue](enqueue.md), [context](context.md), [flow](flow.md), [order](order.md), [guard](guard.md),
[dead letters](dead-letters.md), [ladder](ladder.md), [feed](feed.md), [keys](keys.md), [trouble](trouble.md). Reasons
that keep a job waiting: [why](why.md). States and moves: [lifecycle](lifecycle.md).
"""

APP_HEAD = """\
## The app

`app = unstuck.App()` opens nothing before its first use. Its arguments: `database` (where the jobs live), `tenant`
(whose they are), `name` (who asks, for histories and the audit), `version` (of the code; left out: a digest of it),
`preset`, and every setting below by its name. `with unstuck.App() as app:` closes it at the end.
"""

JOB_HEAD = """\
## A job

What `workflow.enqueue(…)` and `app.job(id)` give: a handle, which asks the database with every call. `job.id`
is its id; `job.is_new` is False when a key led to an earlier job. In coroutines put an `a` in front (`await
job.aresult()`); of `wait`, whose twin would be a word of Python, it is `await job.await_()`.
"""

OPERATIONS_HEAD = """\
## What can be asked

Each of these is one operation: a method of `app`, and the command that asks the same. In coroutines every method
has a twin with an `a` in front (`await app.queues.apause("io")`). What is about a tenant's things takes `tenant=`
(left out: the app's own); where it says *or all*, `tenant="*"` means all of them, and of what takes the id of a
job: that job, whoever's it is; elsewhere `"*"` is refused. On the command line that is `--all-tenants`. A list of
all tenants' jobs is as bounded as any: a page may be short and have a `next`. What changes something takes `by=`,
who asks. Lists answer a `Page`: iterate it; `page.next` is the cursor that `after=` takes to go on. Durations are
seconds, or texts like `"5m"`.

Who has the database's password is a platform-admin.
"""

VIEWS_HEAD = """\
## What is answered

The views, as Python returns them and `--json` prints them. Instants are UTC; in JSON they are RFC 3339 with
milliseconds. Additions may come, changes do not.
"""

OPTIONS_HEAD = """\
## Options of a workflow

`@app.workflow(timeout=60, queue="mail")`. Durations are numbers of seconds here. What is left out comes from the
settings of the worker that registers the workflow. `greet.using(…)` takes the options of the policy for single jobs,
and those of a job: see [enqueue](enqueue.md). A value that is not accepted is an error where it stands, with all
that is wrong.
"""

SETTINGS_HEAD = """\
## Settings

The same names in `unstuck.toml`, as `UNSTUCK_NAME` in the environment, as a flag of the commands that use them and
in `App(…)`; those of a job's policy also in `@app.workflow(…)`. Durations are seconds, or texts like `"5m"`.
Defaults < preset < file < environment < code < flags. `unstuck config show --sources` says what holds and why.
Values that cannot keep the engine's promises together are refused at the start, with the reason.
"""

EVENTS_HEAD = """\
## Events

The kinds of events in a job's history and in the feed, and what the `data` of each may hold; a field that has
nothing to say is left out. The same as JSON Schema: [events.schema.json](events.schema.json).
"""

WHOSE = {"one": "one tenant's", "any": "one tenant's or all", "own": "all, or the app's tenant's"}

EVENTS = {
    EventKind.SUBMITTED: "it was accepted",
    EventKind.RELEASED: "it no longer waits for others, or for a person",
    EventKind.CLAIMED: "a worker took it: an attempt began",
    EventKind.GIVEN_BACK: "a worker gave it back before it began",
    EventKind.COMPLETED: "its result is stored",
    EventKind.RETRIED: "an attempt failed, and another one follows",
    EventKind.LOST: "its worker or process was lost, and it runs again",
    EventKind.FAILED: "it failed for good",
    EventKind.STUCK: "it ignored its request to stop for the whole grace",
    EventKind.TIMED_OUT: "it was stopped after its time limit, or expired",
    EventKind.CANCELLED: "it was cancelled",
    EventKind.INTERRUPTED: "it was paused",
    EventKind.PARKED: "it waits for an event, a decision, its children or a time",
    EventKind.WOKEN: "what it waited for came, or its time was over",
    EventKind.HELD: "it waits for a person, for other jobs, or because its workflow is blacklisted",
    EventKind.BURIED: "it became a dead letter: no handler code ever ran",
    EventKind.RESUMED: "a person let it go on, in a new run",
    EventKind.RESOLVED: "a person supplied its result",
    EventKind.REDRIVEN: "a dead letter was let go on",
    EventKind.REQUESTED: "somebody asked it to stop, or its time was over; it runs until it obeys",
    EventKind.HURRIED: "a person made it due now",
    EventKind.REPRIORITISED: "a person gave it another priority",
    EventKind.SKIPPED: "a person let its target move on past it",
    EventKind.UNHELD: "a person released it, and it still waits for other jobs",
    NewsKind.WORKER_JOINED: "a worker began (the platform's news, as all of workers)",
    NewsKind.WORKER_LEFT: "a worker left in order",
    NewsKind.WORKER_LOST: "a worker fell silent: its lease is over",
    NewsKind.TARGET_BLOCKED: "a job ended badly, or paused, and nothing runs on its target before it",
    NewsKind.TARGET_FREED: "a person resumed, resolved or skipped the job that blocked it",
    NewsKind.PAUSE_BEGUN: "a queue, workflow, tenant or target was paused, or its pause changed",
    NewsKind.PAUSE_ENDED: "a person, or `time`, ended it",
    NewsKind.BLACKLIST_ADDED: "a workflow went on the blacklist",
    NewsKind.BLACKLIST_REMOVED: "a workflow left the blacklist",
    NewsKind.APPROVAL_ASKED: "a job waits for a person's decision",
    NewsKind.APPROVAL_DECIDED: "a person decided, or its time was over",
    NewsKind.NOTIFICATION: "something that operators should take note of",
    NewsKind.SIGNATURE_REFUSED: "a job was refused for its signature, at the door or at its claim",
    NewsKind.DEAD_LETTER: "a job never ran, or ran out of tries, and is set before people",
    NewsKind.ALERT_OPENED: "something is wrong: an alert of a rule",
    NewsKind.ALERT_CLOSED: "it was not found for a while: the alert is over",
    NewsKind.SCHEDULE_FIRED: "a tick of a schedule, or a person, made this job",
    NewsKind.SCHEDULE_NOT_FIRED: "a tick made no job: it was skipped, refused or missed",
    NewsKind.SCHEDULE_SILENT: "several ticks in a row made no job",
    NewsKind.SCHEDULE_PAUSED: "a person paused a schedule",
    NewsKind.SCHEDULE_RESUMED: "a person let it go on",
}


def draw() -> str:
    """The whole page."""
    parts = [
        HEAD,
        _app(),
        _job(),
        _operations(),
        _views(),
        _options(),
        _settings(),
        _presets(),
        _errors(),
        _events(),
        _exits(),
        _retention(),
    ]
    return "\n".join(parts)


def _app() -> str:
    own = {name: value for name, value in vars(App).items() if not name.startswith("_")}
    lines = [APP_HEAD, "| | |", "| --- | --- |"]
    lines += [f"| `app.{name}` | {_cell(' '.join((value.__doc__ or '').split()))} |" for name, value in own.items()]
    return "\n".join([*lines, ""])


def _job() -> str:
    own = {name: value for name, value in vars(Job).items() if inspect.isfunction(value) and not name.startswith("_")}
    twins = {f"a{name}" for name in own} | {"await_"}
    lines = [JOB_HEAD, "| | |", "| --- | --- |"]
    for name, value in own.items():
        if name not in twins:
            takes = ", ".join(f"{each}=" for each in [*inspect.signature(value).parameters][1:])
            lines.append(f"| `job.{name}({takes})` | {_cell(' '.join((value.__doc__ or '').split()))} |")
    return "\n".join([*lines, ""])


def draw_schema() -> str:
    """The JSON Schema of what events hold."""
    return json.dumps(schema(), indent=2) + "\n"


def _operations() -> str:
    roles = "; ".join(
        f"**{role}** includes {', '.join(sorted(INCLUDED[role] - {role})) or 'no other'}" for role in reversed(Role)
    )
    lines = [*_wrapped(OPERATIONS_HEAD), *_wrapped(f"A *role* includes others: {roles}."), ""]
    found = sorted(OPERATIONS.values(), key=lambda operation: operation.noun)
    for noun, operations in groupby(found, lambda operation: operation.noun):
        of_noun = [*operations]
        module = sys.modules[of_noun[0].function.__module__]
        lines += [f"### {noun}", "", *_wrapped((module.__doc__ or "").strip().split("\n\n")[0]), ""]
        for operation in of_noun:
            lines += [*_told_of(operation), ""]
    return "\n".join(lines)


def _told_of(operation: Operation[Any, Any]) -> list[str]:
    entry = operation.entry
    answers = inspect.signature(operation.function).return_annotation.replace("Source[", "Stream[")
    whose = {"one": "one tenant's", "any": "one tenant's or all", "own": "all, or the app's tenant's"}.get(
        entry.whose
    )
    facts = [f"`unstuck {operation.command}`", f"role {entry.role}", *([whose] if whose else [])]
    facts += ["also over a filter"] if entry.over_filter and operation.noun == "jobs" else []
    facts += [f"audited as `{entry.audited}`"] if entry.audited else []
    raised = ["raises " + ", ".join(f"`{error.__name__}`" for error in entry.errors)] if entry.errors else []
    return [
        *_wrapped(f"**`app.{operation.noun}.{operation.verb}({_arguments(operation)})`** → `{answers}`"),
        *_wrapped(f"{' '.join((operation.__doc__ or '').split())} ({'; '.join([*facts, *raised])})"),
    ]


def _wrapped(text: str) -> list[str]:
    return [line for part in text.strip().split("\n\n") for line in [*wrap(part, 116, break_long_words=False), ""]][
        :-1
    ]


def _arguments(operation: Operation[Any, Any]) -> str:
    parameters = [*inspect.signature(operation.function).parameters.values()][1:]
    words = [p.name if p.default is p.empty else f"{p.name}=" for p in parameters]
    return ", ".join(words)


def _views() -> str:
    lines = [VIEWS_HEAD]
    for view in sorted(_all_views(), key=lambda each: each.__name__):
        text = " ".join(inspect.cleandoc(view.__doc__ or "").split())
        lines += [*_wrapped(f"**{view.__name__}**{f': {text}' if _own_doc(view) else ''}"), ""]
        lines += [*_wrapped(", ".join(f"`{name}: {_type(view, name)}`" for name in view.__struct_fields__)), ""]
    return "\n".join(lines)


def _all_views() -> list[type[View]]:
    """Those of views/: what the server alone answers with is in its OpenAPI document."""
    found, todo = [], [View]
    while todo:
        for child in todo.pop().__subclasses__():
            todo.append(child)
            if child is not Page and child.__module__.startswith(View.__module__):
                found.append(child)
    return found


def _own_doc(view: type[View]) -> bool:
    return "__doc__" in vars(view) and bool(view.__doc__)


def _type(view: type[View], name: str) -> str:
    return next(
        vars(kind)["__annotations__"][name] for kind in view.__mro__ if name in vars(kind).get("__annotations__", {})
    )


def _settings() -> str:
    defaults = Settings()
    lines = [SETTINGS_HEAD, "| setting | default | | meaning |", "| --- | --- | --- | --- |"]
    for name in sorted(config.NAMES, key=lambda each: list(MEANINGS).index(each)):
        kind = "of a job" if hasattr(Policy(), name) else "of the engine" if hasattr(Times(), name) else ""
        lines.append(f"| `{name}` | {_value(name, defaults.value(name))} | {kind} | {MEANINGS[name]} |")
    lines += ["", *_wrapped(f"What is refused: {'; '.join(_inequalities())}."), ""]
    return "\n".join(lines)


def _inequalities() -> list[str]:
    return [
        "`lease` < 2·`beat` + `store_call` + `margin` + `slack`",
        "`margin` < `kill_grace` + `pulse` + `slack`",
        "`store_call` ≥ `beat`",
        "`sweep` > `lease`/2",
        "`poll` > `sweep`",
        "`unresponsive` < 5·`pulse`",
        "`frozen` < `unresponsive`",
        "`offer_ack` ≥ `lease`/2",
        "`timeout` > `max_timeout`",
        "`drain` > `stop_time` − `kill_grace`",
    ]


def _value(name: str, value: Any) -> str:
    if name == "processes":
        return "one per core"
    if value is None or value == ():
        return "none"
    return f"{value:g}" if isinstance(value, float) else f"`{value}`"


def _options() -> str:
    lines = [OPTIONS_HEAD, "| option | default | accepted | meaning |", "| --- | --- | --- | --- |"]
    for name in WorkflowOptions.__annotations__ | PolicyOptions.__annotations__:
        default, bound, meaning = WORKFLOW_OPTIONS.get(name) or _of_policy(name)
        lines.append(f"| `{name}` | {default} | {_cell(bound)} | {_cell(meaning)} |")
    return "\n".join([*lines, ""])


def _of_policy(name: str) -> tuple[str, str, str]:
    return _value(name, getattr(Policy(), name)), _bound(name), MEANINGS[name]


def _bound(name: str) -> str:
    """What `Policy.problems` accepts."""
    ranges = {each: (low, high) for each, low, high in RANGES}
    if name in ranges:
        low, high = ranges[name]
        return f"{low:g} to {_most(high)}"
    if name in CHOICES:
        return ", ".join(f"`{choice}`" for choice in CHOICES[name])
    return {
        "timeout": 'seconds, 0.001 to `max_timeout`, or `"unlimited"`',
        "expires_after": f"seconds, 0.001 to {_most(LONGEST)}",
        "max_retries": "0 to 1,000,000",
        "retry_on_timeout": "true or false",
        "budget": "up to 2^53 of each unit",
    }[name]


def _most(high: float) -> str:
    return "ten years" if high == LONGEST else f"{high:,.0f}"


def _presets() -> str:
    lines = ["## Presets", "", "| preset | sets |", "| --- | --- |"]
    for name, values in PRESETS.items():
        lines.append(f"| `{name}` | {', '.join(f'`{key}={value}`' for key, value in values.items())} |")
    return "\n".join([*lines, ""])


def _errors() -> str:
    lines = ["## Errors", "", "All are importable from `unstuck`. The message says what to do.", ""]
    lines += ["| error | is a | exit code | |", "| --- | --- | --- | --- |"]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, UnstuckError)]
    told = _told()
    for kind in kinds:
        parent = kind.__bases__[0].__name__
        code = exits.code_of(kind.__new__(kind))
        lines.append(f"| `{kind.__name__}` | `{parent}` | {code} | {_cell(told.get(kind.__name__, ''))} |")
    return "\n".join([*lines, ""])


def _told() -> dict[str, str]:
    """What the tree at the head of `model/errors.py` says about each."""
    found = {}
    for line in (errors.__doc__ or "").splitlines():
        name, _, text = line.strip(" │├└─").partition("  ")
        if text:
            found[name] = text.strip()
    return found


def _events() -> str:
    ends = EndData.__struct_fields__
    common = f"*Those of an end* are {', '.join(f'`{name}`' for name in ends)}."
    lines = [EVENTS_HEAD, *_wrapped(common), "", "| kind | meaning | data |", "| --- | --- | --- |"]
    for kind in (*EventKind, *NewsKind):
        is_end = issubclass(DATA[kind], EndData)
        own = [f"`{name}`" for name in DATA[kind].__struct_fields__ if not is_end or name not in ends]
        lines.append(f"| `{kind}` | {EVENTS[kind]} | {', '.join([*['those of an end'] * is_end, *own])} |")
    lines += ["", "| field | type | meaning |", "| --- | --- | --- |"]
    told: dict[tuple[str, str], None] = {}
    for defined in schema()["$defs"].values():
        for name, facts in defined.get("properties", {}).items():
            if "description" in facts:
                told[f"| `{name}` | {_json_type(facts)} |", facts["description"]] = None
    lines += [f"{start} {_cell(text)} |" for start, text in sorted(told)]
    return "\n".join([*lines, ""])


def _json_type(facts: dict[str, Any]) -> str:
    """As JSON calls it; of a choice all that may stand there."""
    if "$ref" in facts:
        facts = schema()["$defs"][facts["$ref"].rpartition("/")[2]]
    if "enum" in facts:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in facts["enum"])
    if "anyOf" in facts:
        return " or ".join(_json_type(choice) for choice in facts["anyOf"])
    return str(facts.get("format") or facts["type"])


def _exits() -> str:
    source = inspect.getsource(exits).splitlines()
    found = [line.partition("  # ") for line in source if line[:1].isupper() and "  # " in line]
    rows = [f"| {assigned.split(' = ')[1]} | {_cell(text)} |" for assigned, _, text in found if " = " in assigned]
    return "\n".join(["## Exit codes", "", "| code | meaning |", "| --- | --- |", *rows, ""])


def _retention() -> str:
    times = Times()
    rows = [
        ("an ended job, with its history, attempts, output, steps, waits, partial results", "retention"),
        ("an idempotency key", "key_retention"),
        ("a place in the feed", "feed_retention"),
        ("a dead letter (its job stays as long as others)", "dead_letter_retention"),
        ("an event that was sent and that nobody waits for", 24),
        ("a minute, and an hour, of the series", SERIES_KEPT / 3600),
    ]
    lines = ["## How long things are kept", "", "| what | how long |", "| --- | --- |"]
    for what, name in rows:
        kept = f"`{name}`: {getattr(times, name) / 3600:g} h" if isinstance(name, str) else f"{name:g} h"
        lines.append(f"| {what} | {kept} |")
    return "\n".join([*lines, ""])


#: Of the roles that one includes, the largest.
_NEXT = {
    Role.SUBMITTER: (Role.READER,),
    Role.OPERATOR: (Role.SUBMITTER,),
    Role.TENANT_ADMIN: (Role.OPERATOR,),
    Role.PLATFORM_ADMIN: (Role.TENANT_ADMIN, Role.WORKER),
}


def draw_keys() -> str:
    """The guide about keys, with its table of roles."""
    begin, _, rest = KEYS.read_text().partition("<!-- roles -->")
    end = rest.partition("<!-- end of roles -->")[2]
    return f"{begin}<!-- roles -->\n{_roles()}<!-- end of roles -->{end}"


def _roles() -> str:
    """What each role adds to those it includes; in italics what a key that names queues or workflows may not ask."""
    lines: list[str] = []
    for role in Role:
        asked = sorted((o for o in OPERATIONS.values() if o.entry.role is role), key=lambda o: o.name)
        told = [f"{noun} {', '.join(map(_verb, each))}" for noun, each in groupby(asked, lambda o: o.noun)]
        above = [f"what {each} may" for each in _NEXT.get(role, ())]
        text = f"- **{role}**: {'; '.join([*above, *told]) or 'what a worker asks over HTTP, and nothing else'}."
        lines += wrap(text, 116, subsequent_indent="  ", break_long_words=False)
    return "\n".join([*lines, ""])


def _verb(operation: Operation[Any, Any]) -> str:
    return f"*{operation.verb}*" if operation.entry.limited == "refused" else operation.verb


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(draw())
    SCHEMA.write_text(draw_schema())
    KEYS.write_text(draw_keys())
