"""unstuck settings …: what is kept in the database and holds for every worker from the moment it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from unstuck.cli import options, output, shapes
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput
from unstuck.model.guard import SettingRecord

app = options.group(
    "Runtime settings: kept in the database, in force everywhere at once. Those of files and environment: config.",
    default="list",
)

Name = Annotated[str, Argument(metavar="NAME", help="the setting's name, as the list shows it")]


@app.command("list")
def list_(common: options.CommonPlatform) -> None:
    """All of them, with what they mean and who changed them."""
    with opened(common) as session:
        found, now = session.guard.settings(), session.now()
    if common.json:
        _print_json(found)
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
            for r in found
        ],
        empty="there are none",
    )


@app.command()
def get(name: Name, *, common: options.CommonPlatform) -> None:
    """One value, for scripts."""
    with opened(common) as session:
        found = session.guard.get(name)
    if common.json:
        _print_json([found])
    else:
        output.say(shown(found.value))


@app.command("set")
def set_(
    name: Name,
    value: Annotated[str | None, Argument(metavar="VALUE", help="a number, true or false, or none")] = None,
    default: Annotated[bool, option("--default", help="the default again")] = False,
    *,
    common: options.CommonPlatform,
) -> None:
    """Change one. Every worker goes by it from its next stuck job on."""
    if default == (value is not None):
        raise InvalidInput("say the value, or --default")
    with opened(common) as session:
        found = session.guard.reset(name) if default else session.guard.set(name, value)
    if common.json:
        _print_json([found])
    else:
        output.say(f"{found.name} is {shown(found.value)}{' (the default)' if default else ''}")


def _print_json(found: Iterable[SettingRecord]) -> None:
    output.emit_each(map(shapes.setting, found))


def shown(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
