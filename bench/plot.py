"""Bars as SVG, without a library: a panel per figure, a bar per contender, ours in another colour.

A bar of more than four times the median is cut, and says so: it would leave nothing to see of the others.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

COLUMNS = 2
WIDTH, NAMES, VALUES = 520, 150, 70
ROW, HEAD, GAP = 18, 34, 20
CUT = 4.0
OURS, THEIRS = "#d1495b", "#8d99ae"
SHARES = ("#30638e", "#d1495b", "#edae49")


@dataclass(frozen=True)
class Panel:
    title: str
    #: Contender -> one value, or as many as there are parts, which are stacked.
    bars: dict[str, list[float]]
    shown: str
    parts: Sequence[str] = ()

    def height(self) -> int:
        return HEAD + ROW * len(self.bars) + (ROW if self.parts else 0) + GAP


def draw(panels: Sequence[Panel], caption: str) -> str:
    pieces, top = [], 40
    for start in range(0, len(panels), COLUMNS):
        line = panels[start : start + COLUMNS]
        for column, panel in enumerate(line):
            pieces += [f'<g transform="translate({GAP + column * (WIDTH + GAP)} {top})">', *_panel(panel), "</g>"]
        top += max(panel.height() for panel in line)
    width = COLUMNS * (WIDTH + GAP) + GAP
    frame = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}"'
        ' font-family="sans-serif" font-size="12">'
    )
    paper = f'<rect width="{width}" height="{top}" fill="white"/>'
    return "\n".join([frame, paper, _text(GAP, 24, caption), *pieces, "</svg>\n"])


def _panel(panel: Panel) -> Iterator[str]:
    yield _text(0, 14, panel.title, 'font-weight="bold"')
    room = WIDTH - NAMES - VALUES
    sums = [sum(values) for values in panel.bars.values()] or [0.0]
    longest = min(max(sums), CUT * statistics.median(sums)) or 1.0
    for number, (name, values) in enumerate(panel.bars.items()):
        top, left = HEAD - 10 + ROW * number, float(NAMES)
        yield _text(NAMES - 8, top + 12, name, 'text-anchor="end"')
        for part, value in enumerate(values):
            colour = SHARES[part] if panel.parts else OURS if name.startswith("unstuck") else THEIRS
            length = min(max(0.0, value) / longest * room, NAMES + room - left)
            yield f'<rect x="{left:.1f}" y="{top}" width="{length:.1f}" height="{ROW - 4}" fill="{colour}"/>'
            left += length
        cut = "… " if sum(values) > longest else ""
        yield _text(left + 6, top + 12, cut + format(sum(values), panel.shown))
    for number, label in enumerate(panel.parts):
        top = HEAD - 6 + ROW * len(panel.bars)
        yield f'<rect x="{NAMES + 110 * number}" y="{top}" width="12" height="12" fill="{SHARES[number]}"/>'
        yield _text(NAMES + 110 * number + 17, top + 11, label)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}" {more}>{escape(text)}</text>'
