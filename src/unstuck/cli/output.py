"""Where words go: data to stdout, remarks to stderr, colour only where somebody sees it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from unstuck.cli.columns import CUT, GAP, IDS, fitted
from unstuck.cli.streams import tell
from unstuck.model.spelling import given
from unstuck.model.wording import age as age
from unstuck.model.wording import count as count
from unstuck.model.wording import duration as duration
from unstuck.model.wording import size as size
from unstuck.views import Page, View, plain
from unstuck.views import rfc3339 as rfc3339

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    "PENDING": "dim",
    "QUEUED": "cyan",
    "SCHEDULED": "cyan",
    "RETRYING": "yellow",
    "BLOCKED": "yellow",
    "RUNNING": "bold blue",
    "CANCELLING": "yellow",
    "WAITING": "magenta",
    "PAUSED": "yellow",
    "COMPLETED": "green",
    "FAILED": "red",
    "STUCK": "bold red",
    "LOST": "bold red",
    "TIMEOUT": "red",
    "CANCELLED": "dim",
    "DEAD": "bold red",
    "BLACKLISTED": "bold red",
    "LIFTED": "green",
}


def is_plain(stream: IO[str]) -> bool:
    """No colour and no cursor play: not a terminal, or the person said so (FORCE_COLOR says the opposite)."""
    if os.environ.get("NO_COLOR"):
        return True
    if os.environ.get("FORCE_COLOR"):
        return False
    return os.environ.get("TERM") == "dumb" or not stream.isatty()


def console(stream: IO[str] | None = None) -> Console:
    from rich.console import Console

    stream = stream or sys.stdout
    plain = is_plain(stream)
    return Console(
        file=stream,
        no_color=plain,
        force_terminal=not plain,
        # A pipe has no width: nothing may be cut or wrapped there.
        width=None if stream.isatty() else 10_000,
        highlight=False,
        emoji=False,
        soft_wrap=not stream.isatty(),
    )


def note(text: str) -> None:
    """A remark for the person at the keyboard; programs read stdout. One that cannot be written changes nothing."""
    tell(visible(text))


def say(text: str) -> None:
    print(text, flush=True)


def visible(text: str) -> str:
    """Text that a job chose, with what a terminal would obey (escape codes, reversed writing) spelt out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _spelt(c) for c in text)


def _spelt(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def indented(text: str, by: int) -> str:
    """Text of several lines, so that those after the first stand below it and cannot be taken for something else."""
    return text.replace("\n", "\n" + " " * by)


def folded(text: str, by: int) -> str:
    """The same of a sentence, at the width of the terminal; a command stays in one piece, to be pasted."""
    import shutil
    import textwrap

    if not sys.stdout.isatty() or text.startswith("unstuck "):
        return indented(text, by)
    room = max(20, shutil.get_terminal_size().columns - by)
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return indented("\n".join(lines), by)


def emit_json(value: Mapping[str, Any]) -> None:
    """One object on one line; a list is one line per element."""
    print(json.dumps(value, ensure_ascii=False, default=_plain_value), flush=True)


def emit_view(view: View) -> None:
    emit_json(plain(view))


def emit_page(page: Page[Any]) -> None:
    """A line for each; the cursor of what follows is a remark."""
    emit_each(map(plain, page.items))
    tell_next(page)


def tell_next(page: Page[Any], remark: str = "there may be more") -> None:
    """Where a list goes on, for the person at the keyboard."""
    if page.next is not None:
        note(f"{remark}: {given('--after', page.next)}")


def emit_each(shapes: Iterable[Any]) -> None:
    """A line each."""
    for shape in shapes:
        emit_json(shape)


def _plain_value(value: object) -> object:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return str(value)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Columns for people; with nothing to show, a sentence that says what to do. A pipe gets every cell whole."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        note(empty)
    elif (widths := _widths(headers, cells)) is None:
        _print_stacked(headers, cells)
    else:
        _print_grid(headers, cells, widths)


def _widths(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int] | None:
    natural = [max(map(_width, column)) for column in zip(headers, *cells, strict=True)]
    return fitted(headers, natural, console().width) if sys.stdout.isatty() else natural


def _width(text: str) -> int:
    """In columns of a terminal, where some letters take two."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _print_grid(headers: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    is_whole = all(text.isprintable() for row in cells for text in row)  # a tab takes as much as its place asks for
    if is_whole and is_plain(sys.stdout) and not sys.stdout.isatty():
        _print_for_a_pipe([headers, *cells], widths)
    else:
        _print_for_a_screen(headers, cells, widths)


def _print_for_a_pipe(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    """As for a screen that has room for everything and no colours; loading `rich` takes longer than the question."""
    gap = " " * GAP
    for row in rows:
        padded = (text + " " * (width - _width(text)) for text, width in zip(row, widths, strict=True))
        print(gap.join(padded).rstrip())
    sys.stdout.flush()


def _print_for_a_screen(headers: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for header, width in zip(headers, widths, strict=True):
        # One line per job: what is cut here, other commands show whole. An id without its tail can still be pasted.
        how: Any = "ellipsis" if header in CUT else "crop" if header in IDS else "fold"
        grid.add_column(header, width=width, overflow=how, no_wrap=how != "fold")
    for row in cells:
        grid.add_row(*(Text(text, style=STYLES.get(text, "")) for text in row))
    _print_without_trailing_blanks(grid)


def _print_stacked(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Too many columns for this window: a line for each thing that a row says."""
    wide = max(map(len, headers))
    for place, row in enumerate(cells):
        if place:
            say("")
        for header, text in zip(headers, row, strict=True):
            if text not in ("-", "0"):
                say(f"{styled(header.ljust(wide), 'bold')}  {state(text)}")


def _cell(value: object) -> str:
    return "-" if value is None or value == "" else visible(str(value)).replace("\n", " ")


def _print_without_trailing_blanks(renderable: Any) -> None:
    screen = console()
    with screen.capture() as captured:
        screen.print(renderable)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()), flush=True)


def styled(text: str, style: str) -> str:
    """The text in its colour, if stdout shows colours."""
    if is_plain(sys.stdout):
        return text
    from rich.style import Style

    return Style.parse(style).render(text)


def state(name: str) -> str:
    return styled(name, STYLES.get(name, ""))
