"""One frame of `unstuck top`: as many lines as the terminal has, each as wide as it is. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from unstuck.cli.output import STYLES, duration
from unstuck.cli.top.rows import COLUMNS, PANES, Pane, PaneRow, rows_of, shown_cell
from unstuck.cli.top.state import Sheet, TopState
from unstuck.model.lifecycle import JobState
from unstuck.records import dataclass
from unstuck.views.top import TopView

TITLES: dict[Pane, str] = {"needs": "needs you", "queues": "queues", "jobs": "running", "workers": "workers"}
EMPTY: dict[Pane, str] = {
    "needs": "nothing: all moving",
    "queues": "none",
    "jobs": "nothing this very moment",
    "workers": "none alive: unstuck worker MODULE:APP",
}
#: From this height on panes have a line with the names of their columns.
TALL = 30
#: In which order panes get a row more, again and again, as long as there are rows; what runs comes twice.
_TURNS: tuple[Pane, ...] = ("jobs", "needs", "jobs", "queues", "workers")
_GAP = 1
_COUNTED = (JobState.QUEUED, JobState.RUNNING, JobState.WAITING, JobState.PAUSED, JobState.FAILED, JobState.DEAD)
#: Lines at the foot for what is asked or told; and a window in which wrapping makes sense.
MOST_FOOT, LEAST_WRAPPED = 6, 20
KEYS = "q quit Tab pane  w why  s stack  c cancel  a/r decide  p pause  / filter  ? keys"


@dataclass(frozen=True, slots=True)
class Seen:
    """The last look; `view` None: there was none yet. `error`: why looks have failed since, for `away` seconds."""

    where: str
    view: TopView | None = None
    error: str | None = None
    away: float = 0.0


def frame(seen: Seen, state: TopState, size: tuple[int, int]) -> list[Text]:
    """Exactly (columns, lines)."""
    width, height = size
    head = [_title(seen, state, width), _counts(seen, width)]
    foot = _foot(state, width, min(MOST_FOOT, height - len(head) - 1))
    room = max(0, height - len(head) - len(foot))
    if seen.view is None:
        middle = [_line(_waiting(seen), width, "bold red" if seen.error else "dim")]
    elif state.sheet is not None:
        middle = _sheet(state.sheet, width, room)
    else:
        middle = _panes(rows_of(seen.view, state.words), state, width, room)
    blank = [Text("")] * max(0, room - len(middle))
    return [*head, *middle[:room], *blank, *foot][:height]


def whole(seen: Seen, width: int) -> list[Text]:
    """All there is, for a pipe or a file: no row is left out."""
    assert seen.view is not None
    rows = rows_of(seen.view)
    lines = [_title(seen, TopState(), width), _counts(seen, width)]
    for pane in PANES:
        lines += [Text(""), *_pane(pane, rows[pane], TopState(), width, len(rows[pane]), tall=True, is_flat=True)]
    return lines


# --- head and foot ------------------------------------------------------------------------------------------------


def _title(seen: Seen, state: TopState, width: int) -> Text:
    if seen.error is not None:
        since = f" for {duration(round(seen.away))}" if seen.away >= 1 else ""
        return _line(f"no answer{since}, trying again: {seen.error} ({seen.where})", width, "bold red")
    if seen.view is None:
        return _line(f"unstuck top  {seen.where}", width, "bold")
    still = "  (held still: space)" if state.is_still else ""
    right = f"{seen.view.at.astimezone():%H:%M:%S}{still}"
    left = f"unstuck top  {seen.where}  tenant {seen.view.tenant}"
    room = width - cell_len(right) - 1
    line = Text.assemble((set_cell_size(shown_cell(left), max(0, room)), "bold"), " ", (right, "dim"))
    line.truncate(width, overflow="crop")
    return line


def _counts(seen: Seen, width: int) -> Text:
    view = seen.view
    if view is None:
        return Text("")
    line = Text()
    if view.healthy is not None:
        line.append("healthy  " if view.healthy else "UNHEALTHY  ", "green" if view.healthy else "bold red")
    for state in _COUNTED:
        number = view.states.get(state, 0)
        more = "+" if state in view.at_least else ""
        line.append(f"{state.value} {number:,}{more}  ", STYLES[state.value] if number else "dim")
    if view.scheduled:
        line.append(f"(later {view.scheduled:,})  ", "dim")
    line.truncate(width, overflow="ellipsis")
    return line


def _foot(state: TopState, width: int, most: int) -> list[Text]:
    """What is asked or told is told whole, in so many lines at most."""
    if state.asked is not None:
        return _wrapped(f"[y/n] {state.asked[1]}", width, most, "bold reverse")
    if state.is_writing:
        return [_line(f"/{state.words}_   Enter: keep, Esc: show all", width, "bold")]
    if state.sheet is not None:
        return [_line("↑↓ PgUp PgDn: read on, any other key: back", width, "dim")]
    if state.note:
        return _wrapped(state.note, width, most, "bold cyan")
    only = f"only “{state.words}” (Esc)  " if state.words else ""
    return [_line(f"{only}{KEYS}", width, "dim")]


def _wrapped(text: str, width: int, most: int, style: str) -> list[Text]:
    whole = shown_cell(text)
    lines = textwrap.wrap(whole, width) if most > 1 and width >= LEAST_WRAPPED else [whole]
    kept = [*lines[: most - 1], " ".join(lines[most - 1 :])] if len(lines) > most else lines
    return [_line(line, width, style) for line in kept or [""]]


def _waiting(seen: Seen) -> str:
    return "looking …" if seen.error is None else "nothing was seen yet"


# --- panes --------------------------------------------------------------------------------------------------------


def _panes(rows: Mapping[Pane, Sequence[PaneRow]], state: TopState, width: int, room: int) -> list[Text]:
    tall = room >= TALL
    titles = len(PANES) * (2 if tall else 1)
    given = shared(max(len(PANES), room - titles), {pane: len(rows[pane]) for pane in PANES})
    lines: list[Text] = []
    for pane in PANES:
        lines += _pane(pane, rows[pane], state, width, given[pane], tall=tall)
    return lines


def shared(room: int, wanted: Mapping[Pane, int]) -> dict[Pane, int]:
    """How many lines of rows each pane gets: one at least, in turns up to what it wants."""
    given: dict[Pane, int] = dict.fromkeys(PANES, 1)
    left = room - len(PANES)
    while left > 0 and any(given[pane] < wanted[pane] for pane in PANES):
        for pane in _TURNS:
            if left > 0 and given[pane] < wanted[pane]:
                given[pane] += 1
                left -= 1
    return given


def _pane(
    pane: Pane,
    rows: Sequence[PaneRow],
    state: TopState,
    width: int,
    room: int,
    *,
    tall: bool,
    is_flat: bool = False,
) -> list[Text]:
    place = state.place(pane, rows)
    first = min(max(0, place - room // 2), max(0, len(rows) - room))
    shown = rows[first : first + room]
    is_here = pane == state.pane and not is_flat
    lines = [_heading(pane, rows, first, len(shown), width, is_here)]
    if tall:
        lines.append(_columns(pane, [name for name, _ in COLUMNS[pane]], width, "dim"))
    if not rows:
        return [*lines, _line(f"  {EMPTY[pane]}", width, "green" if pane == "needs" else "dim")]
    for number, row in enumerate(shown, first):
        style = f"{row.style} reverse".strip() if is_here and number == place else row.style
        lines.append(_columns(pane, row.cells, width, style))
    return lines


def _heading(pane: Pane, rows: Sequence[PaneRow], first: int, shown: int, width: int, is_here: bool) -> Text:
    number = f" {len(rows)}" if shown == len(rows) else f" {first + 1}-{first + shown} of {len(rows)}"
    title = f"{'▶' if is_here else '─'} {TITLES[pane]}{number if rows else ''} "
    return _line(title + "─" * max(0, width - cell_len(title)), width, "bold cyan" if is_here else "cyan")


def _columns(pane: Pane, cells: Sequence[str], width: int, style: str) -> Text:
    """Fixed ones first; what is left is the last one's. In a narrow window all give way alike."""
    widths = [wide for _, wide in COLUMNS[pane]]
    fixed = sum(widths) + _GAP * (len(widths) - 1)
    if fixed > width * 3 // 4:
        widths = [max(4, wide * width * 3 // 4 // fixed) if wide else 0 for wide in widths]
        fixed = sum(widths) + _GAP * (len(widths) - 1)
    elif pane == "jobs" and width >= fixed + 40:  # an id that is whole can be pasted anywhere
        widths[1] = 36
        fixed = sum(widths) + _GAP * (len(widths) - 1)
    rest = max(0, width - fixed)
    parts = [_fitted(shown_cell(cell), wide or rest) for cell, wide in zip(cells, widths, strict=True)]
    return Text(set_cell_size((" " * _GAP).join(parts), width), style)


def _fitted(text: str, width: int) -> str:
    """Cut with a sign that it was; padded."""
    if cell_len(text) > width > 1:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    return set_cell_size(text, width)


# --- a sheet ------------------------------------------------------------------------------------------------------


def _sheet(sheet: Sheet, width: int, room: int) -> list[Text]:
    lines = [
        part
        for line in sheet.lines
        for part in (
            textwrap.wrap(shown_cell(line), max(8, width - 2), drop_whitespace=False, subsequent_indent="    ")
            or [""]
        )
    ]
    body = max(1, room - 1)
    top = min(sheet.top, max(0, len(lines) - body))
    more = f", lines {top + 1}-{min(len(lines), top + body)} of {len(lines)}" if len(lines) > body else ""
    title = f"▶ {sheet.title}{more} "
    return [
        _line(title + "─" * max(0, width - cell_len(title)), width, "bold cyan"),
        *(_line(f" {line}", width) for line in lines[top : top + body]),
    ]


def _line(text: str, width: int, style: str = "") -> Text:
    return Text(_fitted(shown_cell(text), width), style)
