"""unstuck workflows: what can be run, as its workers registered it."""

from __future__ import annotations

from typing import Annotated, Any

from unstuck.cli import options, output, shapes
from unstuck.cli.parser import Argument
from unstuck.cli.session import opened
from unstuck.model.errors import UnknownWorkflowName

app = options.single()


@app.command()
def workflows(
    name: Annotated[str | None, Argument(metavar="NAME", help="only this one, with its arguments")] = None,
    json_: options.Json = False,
    database: options.Database = None,
) -> None:
    """The registered workflows: queue, limits, arguments."""
    with opened(database, None) as session:
        found = session.store.workflows()
        now = session.now()
    if name is not None:
        known = [w.name for w in found]
        found = [w for w in found if w.name == name]
        if not found:
            raise UnknownWorkflowName(name, known)
    if json_:
        for workflow in found:
            output.emit_json(shapes.workflow(workflow))
        return
    output.table(
        ["WORKFLOW", "QUEUE", "TIMEOUT", "RETRIES", "CODE", "REGISTERED", "SUMMARY"],
        [
            (
                w.name,
                w.queue,
                w.policy.timeout if w.policy.timeout == "unlimited" else output.duration(float(w.policy.timeout)),
                w.policy.retries,
                w.code_version,
                output.age(w.registered_at, now),
                (w.doc or "").strip().split("\n")[0],
            )
            for w in found
        ],
        empty="no workflows yet: they are registered when a worker starts: unstuck worker MODULE:APP",
    )
    if name is not None:
        output.say("\nArguments")
        for line in parameters(found[0].schema):
            output.say(f"  {line}")


def parameters(schema: dict[str, Any]) -> list[str]:
    """A JSON schema's properties, one line each."""
    required = set(schema.get("required", []))
    lines = [
        f"{name}: {_type(facts)}{'' if name in required else ' (optional)'}"
        for name, facts in (schema.get("properties") or {}).items()
        if isinstance(facts, dict)
    ]
    return lines or ["none, or not described"]


def _type(facts: dict[str, Any]) -> str:
    kind = facts.get("type") or facts.get("enum") or facts.get("$ref") or "any"
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
