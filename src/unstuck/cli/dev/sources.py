"""Which files are an app's code: where it is looked for, and what is passed over on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from unstuck.cli.dev.changes import Stamp
from unstuck.config import FILE

#: Files without code that say how it runs.
_SETTINGS = frozenset({FILE, "pyproject.toml"})
_PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})
#: What makes a folder a virtual environment, whatever it is called.
_VENV = "pyvenv.cfg"


def roots_of(app: str, folder: Path, more: Sequence[Path] = ()) -> list[Path]:
    """This folder, the app's own package if it is elsewhere, and what the person named; none within another."""
    found: list[Path] = []
    for root in sorted({path.resolve() for path in (folder, *more, *_own_places(app, folder))}):
        if not any(root.is_relative_to(other) for other in found):
            found.append(root)
    return found


def _own_places(app: str, folder: Path) -> list[Path]:
    """Without importing anything: a module at the top can be found so."""
    name = app.rpartition(":")[0] or app
    if name.endswith(".py"):
        return [(folder / name).parent]
    top = name.partition(".")[0]
    # As Python in this folder would look; what is looked for here is imported by another process.
    sys.path.insert(0, str(folder))
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return []
    finally:
        sys.path.remove(str(folder))
    if spec is None:
        return []
    if spec.submodule_search_locations:
        return [Path(place) for place in spec.submodule_search_locations]
    origin = Path(spec.origin or "")
    if not origin.is_file():
        return []
    return [origin if origin.parent.name in _PASSED_OVER else origin.parent]


def is_passed_over(name: str) -> bool:
    """Of a folder, or of a file: hidden ones, what Python and others write, what was installed."""
    return name.startswith(".") or name in _PASSED_OVER


def is_code(name: str) -> bool:
    return (name.endswith(".py") or name in _SETTINGS) and not is_passed_over(name)


def files_in(roots: Sequence[Path]) -> dict[str, Stamp]:
    """Every file of code below, with its stamp. Links are followed, each folder is read once."""
    found: dict[str, Stamp] = {}
    left = [str(root) for root in roots]
    seen: set[tuple[int, int]] = set()
    while left:
        path = left.pop()
        try:
            about = os.stat(path)
            if not os.path.isdir(path):
                found[path] = _stamp(about)
                continue
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            entries = list(os.scandir(path))
        except OSError:  # it went away meanwhile, or may not be read
            continue
        if not any(entry.name == _VENV for entry in entries):
            left += _folders(entries)
            found.update(_code(entries))
    return found


def _folders(entries: Sequence[os.DirEntry[str]]) -> Iterator[str]:
    for entry in entries:
        try:
            if not is_passed_over(entry.name) and entry.is_dir():
                yield entry.path
        except OSError:
            continue


def _code(entries: Sequence[os.DirEntry[str]]) -> Iterator[tuple[str, Stamp]]:
    for entry in entries:
        try:
            if is_code(entry.name) and entry.is_file():
                yield entry.path, _stamp(entry.stat())
        except OSError:
            continue


def _stamp(about: os.stat_result) -> Stamp:
    return about.st_mtime_ns, about.st_size, about.st_ino
