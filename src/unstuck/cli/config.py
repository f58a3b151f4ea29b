"""unstuck config …: the settings in effect."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import repeated, settings_of
from unstuck.meanings import MEANINGS

app = options.group("The settings in effect: defaults < preset < file < environment < flags.")


@app.command()
def show(
    sources: Annotated[bool, option("--sources", help="also where each value came from")] = False,
    meaning: Annotated[bool, option("--meaning", help="also what each means")] = False,
    changed: Annotated[bool, option("--changed", help="only what is not a default")] = False,
    preset: Annotated[str | None, option("--preset", metavar="NAME", help="as if this were chosen")] = None,
    app_name: options.AppName = None,
    *,
    common: options.Common,
) -> None:
    """Every setting; passwords are masked."""
    asked = {**common.flags, "app": app_name, "preset": preset}
    settings = settings_of(asked, ask_app=True)
    found = {
        name: (value, source)
        for name, (value, source) in settings.sources().items()
        if not changed or source != "default"
    }
    if common.json:
        output.emit_json(
            {
                name: {"value": value, "source": source} if sources else value
                for name, (value, source) in found.items()
            }
        )
        return
    headers = ["SETTING", "VALUE", *(["SOURCE"] if sources else []), *(["MEANING"] if meaning else [])]
    rows = [
        (name, _text(value), *([source] if sources else []), *([MEANINGS[name]] if meaning else []))
        for name, (value, source) in found.items()
    ]
    output.table(headers, rows, empty="every setting has its default")
    output.note("a worker that starts with these gives them to the jobs of its workflows; what those get now:")
    output.note(f"  unstuck workflows list NAME{repeated(settings, 'database')}")


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or None
    return f"{value:g}" if isinstance(value, float) else None if value is None else str(value)
