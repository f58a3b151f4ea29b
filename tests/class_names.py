"""`make check` runs this: a class name means one thing, so that `grep 'class Order'` finds one."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def defined_twice(source: Path) -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(source)}:{node.lineno}")
    return {name: where for name, where in places.items() if len(where) > 1}


if __name__ == "__main__":
    found = defined_twice(SOURCE)
    for name, where in sorted(found.items()):
        print(f"class {name} is defined {len(where)} times: {', '.join(where)}; one of them wants another name")
    sys.exit(1 if found else 0)
