"""What `unstuck top` shows of what it knows, and what a key does to that. Pure: `press` answers with the next state
and with what is to be asked of the engine, if anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from unstuck.cli.top.rows import PANES, Pane, PaneRow
from unstuck.records import dataclass

Verb = Literal["quit", "cancel", "stack", "why", "approve", "reject", "pause", "unpause"]
Rows = Mapping[Pane, Sequence[PaneRow]]

HELP = (
    "Tab, ← →    another pane           ↑ ↓, j k    another row; PgUp PgDn, Home End",
    "Enter, w    why the chosen job is where it is",
    "s           the stack of the chosen job, live",
    "c           cancel the chosen job (asks first)",
    "a, r        approve, reject what a job asks (in `needs you`; asks first)",
    "p           pause the chosen queue, or lift its pause (in `queues`; asks first)",
    "/           show only what has these words; Esc shows all again",
    "space       hold still, and go on",
    "?           this text                q, Ctrl-C   leave",
)


@dataclass(frozen=True, slots=True)
class TopAction:
    """What is to be asked. `subject`: a job's id or a queue's name; `key`: which question of the job."""

    verb: Verb
    subject: str = ""
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A text that is laid over the panes, from this line on."""

    title: str
    lines: tuple[str, ...]
    top: int = 0


@dataclass(frozen=True, slots=True)
class TopState:
    pane: Pane = "jobs"
    #: Of each pane the name of the chosen row; one that is gone is the first.
    chosen: Mapping[Pane, str] = field(default_factory=dict)
    words: str = ""
    #: The filter is being written.
    is_writing: bool = False
    is_still: bool = False
    #: What is about to be done, and waits for a yes.
    asked: tuple[TopAction, str] | None = None
    sheet: Sheet | None = None
    #: What happened last, or what was wrong with the last key.
    note: str = ""

    def place(self, pane: Pane, rows: Sequence[PaneRow]) -> int:
        """Where the chosen row is by now."""
        wanted = self.chosen.get(pane)
        return next((place for place, row in enumerate(rows) if row.name == wanted), 0)

    def row(self, rows: Rows) -> PaneRow | None:
        found = rows[self.pane]
        return found[self.place(self.pane, found)] if found else None


def press(state: TopState, key: str, rows: Rows, page: int = 10) -> tuple[TopState, TopAction | None]:
    """`page`: how many rows PgUp and PgDn go."""
    if key == "ctrl-c":
        return state, TopAction("quit")
    if state.asked is not None:
        return _answered(state, state.asked[0], key)
    if state.is_writing:
        return _written(state, key), None
    state = replace(state, note="")
    if state.sheet is not None:
        return _read(state, state.sheet, key, page), None
    if key == "q":
        return state, TopAction("quit")
    if key in _MOVES:
        return _moved(state, rows, _MOVES[key] * (page if key.startswith("page") else 1)), None
    match key:
        case "tab" | "right":
            return replace(state, pane=_next(state.pane, 1)), None
        case "back-tab" | "left":
            return replace(state, pane=_next(state.pane, -1)), None
        case "/":
            return replace(state, is_writing=True), None
        case "esc":
            return replace(state, words=""), None
        case " ":
            return replace(state, is_still=not state.is_still), None
        case "?" | "h":
            return replace(state, sheet=Sheet("keys", HELP)), None
        case _:
            return _about_row(state, key, state.row(rows))


_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -1, "page-down": 1, "home": -(10**6), "end": 10**6}


def _next(pane: Pane, by: int) -> Pane:
    return PANES[(PANES.index(pane) + by) % len(PANES)]


def _moved(state: TopState, rows: Rows, by: int) -> TopState:
    found = rows[state.pane]
    if not found:
        return state
    place = min(max(0, state.place(state.pane, found) + by), len(found) - 1)
    return replace(state, chosen={**state.chosen, state.pane: found[place].name})


def _about_row(state: TopState, key: str, row: PaneRow | None) -> tuple[TopState, TopAction | None]:
    """What a key does to the chosen row; what it cannot do is said."""
    job = row.job if row is not None else None
    match key:
        case "enter" | "w" if job is not None:
            return replace(state, note=f"asking why {job} …"), TopAction("why", job)
        case "s" if job is not None:
            return replace(state, note=f"asking for the stack of {job} …"), TopAction("stack", job)
        case "enter" | "w" | "s":
            return replace(state, note="choose a job first (Tab, ↑ ↓)"), None
        case "c" if state.pane == "jobs" and job is not None and row is not None:
            return _ask(state, TopAction("cancel", job), f"cancel {row.cells[0]} {job}?")
        case "c":
            return replace(state, note="choose a running job first (Tab, ↑ ↓)"), None
        case "a" | "r" if (
            row is not None and row.need is not None and row.need.kind == "approval" and job is not None
        ):
            verb: Verb = "approve" if key == "a" else "reject"
            return _ask(
                state, TopAction(verb, job, row.need.key), f"{verb} “{row.need.text}” of {row.need.about} {job}?"
            )
        case "a" | "r":
            return replace(state, note="choose a question first: in `needs you`"), None
        case "p" if row is not None and row.queue is not None:
            lifts = bool(row.queue.pauses)
            said = f"lift the pause of queue {row.name}?" if lifts else f"pause queue {row.name}?"
            return _ask(state, TopAction("unpause" if lifts else "pause", row.name), said)
        case "p":
            return replace(state, note="choose a queue first: in `queues`"), None
        case _:
            return replace(state, note="? tells the keys"), None


def _ask(state: TopState, action: TopAction, question: str) -> tuple[TopState, None]:
    return replace(state, asked=(action, question)), None


def _answered(state: TopState, action: TopAction, key: str) -> tuple[TopState, TopAction | None]:
    """Only a y is a yes."""
    state = replace(state, asked=None)
    if key in ("y", "Y"):
        return replace(state, note=f"{action.verb} {action.subject} …"), action
    return replace(state, note="left as it is"), None


def _written(state: TopState, key: str) -> TopState:
    match key:
        case "enter":
            return replace(state, is_writing=False)
        case "esc":
            return replace(state, is_writing=False, words="")
        case "backspace":
            return replace(state, words=state.words[:-1])
        case _ if len(key) == 1 and key.isprintable() and len(state.words) < 200:
            return replace(state, words=state.words + key)
        case _:
            return state


def _read(state: TopState, sheet: Sheet, key: str, page: int) -> TopState:
    if key in _MOVES:
        by = _MOVES[key] * (page if key.startswith("page") else 1)
        return replace(state, sheet=replace(sheet, top=min(max(0, sheet.top + by), max(0, len(sheet.lines) - 1))))
    return replace(state, sheet=None)


#: What terminals send for keys that are no letters.
SEQUENCES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left",
    "\x1b[5~": "page-up", "\x1b[6~": "page-down", "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home",
    "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end", "\x1b[Z": "back-tab",
    "\t": "tab", "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "esc",
    "\x03": "ctrl-c",
}  # fmt: skip
_LONGEST_FIRST = sorted(SEQUENCES, key=len, reverse=True)


def keys_in(text: str) -> list[str]:
    """What was typed, by name. What a terminal says beside (a paste's marks, a mouse) is left out."""
    found: list[str] = []
    while text:
        known = next((each for each in _LONGEST_FIRST if text.startswith(each)), None)
        if known == "\x1b" and len(text) > 1 and text[1] in "[O":  # a sequence that we do not know
            end = next((place for place in range(2, len(text)) if "@" <= text[place] <= "~"), len(text) - 1)
            text = text[end + 1 :]
            continue
        if known is not None:
            found.append(SEQUENCES[known])
            text = text[len(known) :]
            continue
        if text[0].isprintable():
            found.append(text[0])
        text = text[1:]
    return found
