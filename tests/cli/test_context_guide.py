"""docs/context.md: everything that a handler's ctx has, and nothing else."""

from __future__ import annotations

import builtins
import inspect
import re
from pathlib import Path

import unstuck
from unstuck.executor.context import AsyncContext, AttemptContext, Context
from unstuck.model.errors import ErrorType

GUIDE = Path(__file__).parents[2] / "docs" / "context.md"
ROW = re.compile(r"^\| `ctx\.(\w+)(\(.*?\))?` \| (.+?) \| (at once|await) \| (.*?) ?\| (.*?) ?\|$", re.MULTILINE)


def rows() -> dict[str, re.Match[str]]:
    found = {row[1]: row for row in ROW.finditer(GUIDE.read_text())}
    assert len(found) == GUIDE.read_text().count("\n| `ctx."), "a row that is not shaped like the others, or twice"
    return found


def public() -> set[str]:
    return {name for name in (*AttemptContext.__slots__, *vars(AttemptContext)) if not name.startswith("_")}


def test_every_public_member_is_in_the_guide_and_nothing_else() -> None:
    assert rows().keys() == public()


def test_the_guide_tells_calls_from_values_and_names_every_parameter() -> None:
    for name, row in rows().items():
        member = inspect.getattr_static(Context, name)
        assert inspect.isfunction(member) == (row[2] is not None), name
        if inspect.isfunction(member):
            shown = set(re.findall(r"\w+", re.sub(r'"\w+"', "", row[2])))
            assert shown == set(inspect.signature(member).parameters) - {"self"}, name


def test_what_must_be_awaited_in_a_coroutine_says_so() -> None:
    """What gives an awaitable there is annotated with Any, and by each of the two for type checkers."""
    for name, row in rows().items():
        member = inspect.getattr_static(AttemptContext, name)
        gives = inspect.signature(member).return_annotation if inspect.isfunction(member) else None
        assert (row[4] == "await") == (gives == "Any"), name
    for kind, gives in ((Context, "Coroutine"), (AsyncContext, "-> Coroutine[Any, Any, ")):
        source = inspect.getsource(kind)
        told = set(re.findall(r"def (\w+)\(", source)) | ({"wait_for"} if kind is Context else set())
        assert told == {name for name, row in rows().items() if row[4] == "await"}, kind
        assert (gives in source) == (kind is AsyncContext)


def test_every_error_and_page_that_it_names_exists() -> None:
    text = GUIDE.read_text()
    for name in set(re.findall(r"`([A-Z][A-Za-z]+)`", text)):
        assert hasattr(unstuck, name) or hasattr(builtins, name) or name in set(ErrorType), name
    pages = set(re.findall(r"\]\(([\w.]+)\)", text))
    assert [page for page in pages if not (GUIDE.parent / page).is_file()] == []
    assert "docs/context.md" in (GUIDE.parents[1] / "README.md").read_text()
    assert "(context.md)" in (GUIDE.parent / "flow.md").read_text()
