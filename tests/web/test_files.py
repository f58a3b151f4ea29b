"""The page's files by themselves: what they name exists, and what they know of the server is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unstuck.operations.nouns as nouns
import unstuck.web
from unstuck.cli.commands import NAMES, load
from unstuck.model.dead_letters import LISTED
from unstuck.model.news import OURS as KINDS
from unstuck.web.files import SCREENS

STATIC = Path(unstuck.web.__file__).parent / "static"
MODULES = sorted(STATIC.rglob("*.js"))
OURS = [path for path in MODULES if "vendor" not in path.parts]


def text_of(name: str) -> str:
    return (STATIC / name).read_text()


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(STATIC)))
def test_a_module_imports_files_that_are_there_and_nothing_from_elsewhere(module: Path) -> None:
    for name in re.findall(r'(?:from|import)\s*"([^"]+)"', module.read_text()):
        assert name.startswith("."), f"{name} would be asked of somebody else"
        assert (module.parent / name).resolve().is_file(), name


def test_nothing_makes_markup_of_text() -> None:
    for module in OURS:
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in module.read_text(), f"{module.name}: {word}"


def test_what_roles_may_do_on_the_page_is_what_they_may_do() -> None:
    needs = dict(re.findall(r'"([a-z_]+\.[a-z_]+)": "([a-z-]+)"', text_of("lib/session.js")))
    assert len(needs) > 40
    table = {name: str(operation.entry.role) for name, operation in nouns.OPERATIONS.items()}
    assert needs == {name: table[name] for name in needs}
    asked = {name for module in OURS for name in re.findall(r'operation: "([a-z_.]+)"', module.read_text())}
    assert asked <= set(needs), "a button whose operation is not in the table would never be shown"


def test_the_server_serves_the_page_where_it_has_a_screen() -> None:
    routes = text_of("routes.js")
    listed = routes[routes.index("export const ROUTES") : routes.index("};", routes.index("export const ROUTES"))]
    words = {quoted or plain for quoted, plain in re.findall(r'^  (?:"([a-z-]+)"|([a-z]+)): \[', listed, re.M)}
    assert words | {"platform"} == SCREENS


def test_the_page_has_words_for_every_kind_of_event() -> None:
    text = text_of("lib/events.js")
    table = text[text.index("const MEANINGS") : text.index("};", text.index("const MEANINGS"))]
    told = dict(re.findall(r'^  "?([a-z_.]+)"?: "(.+)",$', table, re.M))
    assert told.keys() == set(KINDS), "no kind without words, no words for what never happens"
    assert all(words != kind or "." not in kind for kind, words in told.items())


def test_every_reason_of_a_dead_letter_can_be_asked_for() -> None:
    text = text_of("screens/dead_letters.js")
    listed = re.findall(
        r'"([a-z_]+)"', text[text.index("const REASONS") : text.index("];", text.index("const REASONS"))]
    )
    assert set(listed) == set(LISTED)


def test_every_command_that_is_copied_names_a_verb_that_there_is() -> None:
    """In a real browser test_commands has the command line take them with all their words."""
    named = {text for module in OURS for text in re.findall(r'\bcommand\(\s*"([a-z -]+)"', module.read_text())}
    assert len(named) > 25
    for text in named:
        noun, *verb = text.split()
        command = load(NAMES[noun].module)
        assert verb[0] in command.verbs if command.is_group else not verb, text


def test_every_vendored_file_has_its_licence_and_its_version() -> None:
    versions = text_of("vendor/VERSIONS")
    licences = {path.name.removesuffix(".LICENSE") for path in (STATIC / "vendor").glob("*.LICENSE")}
    for path in (STATIC / "vendor").glob("*.*"):
        if path.suffix in (".js", ".css"):
            assert path.name in versions
            assert any(path.name.startswith(licence) for licence in licences), path.name
