"""unstuck settings …: what is kept in the database and holds for every worker from the moment it changes."""

from __future__ import annotations

from typing import Annotated, Any

from unstuck.cli import options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput
from unstuck.operations import settings

app = options.group(
    "Runtime settings: kept in the database, in force everywhere at once. Those of files and environment: config.",
    default="list",
)

Name = Annotated[str, Argument(metavar="NAME", help="the setting's name, as the list shows it")]


@app.command("list")
def list_(common: options.CommonPlatform) -> None:
    """All of them, with what they mean and who changed them."""
    with opened(common) as session:
        page, now = settings.list_(session.caller), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["SETTING", "VALUE", "DEFAULT", "SET", "MEANING"],
        [
            (
                r.name,
                shown(r.value),
                shown(r.default),
                f"{output.age(r.set_at, now)} by {r.set_by}" if r.set_at else None,
                r.meaning,
            )
            for r in page
        ],
        empty="there are none",
    )


@app.command()
def get(name: Name, *, common: options.CommonPlatform) -> None:
    """One value, for scripts."""
    with opened(common) as session:
        found = settings.get(session.caller, name)
    if common.json:
        output.emit_view(found)
    else:
        output.say(shown(found.value))


@app.command("set")
def set_(
    name: Name,
    value: Annotated[
        str | None, Argument(metavar="VALUE", help="a number, true or false, a list with commas, or none")
    ] = None,
    default: Annotated[bool, option("--default", help="the default again")] = False,
    by: options.By = None,
    *,
    common: options.CommonPlatform,
) -> None:
    """Change one. Every worker goes by it from its next stuck job on."""
    if default == (value is not None):
        raise InvalidInput("say the value, or --default")
    with opened(common) as session:
        caller = session.caller.about(by=by)
        found = settings.reset(caller, name) if default else settings.set_(caller, name, value)
    if common.json:
        output.emit_view(found)
    else:
        output.say(f"{found.name} is {shown(found.value)}{' (the default)' if default else ''}")


def shown(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
