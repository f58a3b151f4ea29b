"""Every command, option and Python name in the docs exists. Some guides are run by tests of their own besides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import unstuck
from unstuck.cli.commands import NAMES, load
from unstuck.executor.context import AttemptContext

ROOT = Path(__file__).parents[2]
#: The requirements also name what is not built.
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem != "requirements")]
EACH = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])

_SHELL = re.compile(r"^```(?:sh|console|text|ini|yaml)\n(.*?)^```", re.M | re.S)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
_FENCED = re.compile(r"^```.*?^```", re.M | re.S)
_INLINE = re.compile(r"`([^`]+)`")
#: As a line of a shell has it: behind a prompt, in $(…), behind `until` or in front of a pipe.
_COMMAND = re.compile(r"(?:^|[\s(/])unstuck ([a-z][a-z-]*[^|;&)#\n]*)")


def inline(text: str) -> list[str]:
    """What stands between backticks, on one line each."""
    return [" ".join(span.split()) for span in _INLINE.findall(_FENCED.sub("", text))]


def commands(text: str) -> set[str]:
    """Without what is quoted: an argument may be anything."""
    blocks = [block.replace("\\\n", " ") for block in _SHELL.findall(text)]
    lines = [line for block in blocks for line in block.replace("$(", "\n").splitlines()]
    lines += [span for span in inline(text) if span.startswith("unstuck ")]
    bare = [re.sub(r"'[^']*'|\"[^\"]*\"", "X", line) for line in lines]
    return {found.strip() for line in bare for found in _COMMAND.findall(line)}


def problem(words: list[str]) -> str | None:
    """What of this command line does not exist."""
    if words[0] not in NAMES:
        return f"there is no command {words[0]}"
    command, rest, verb = load(NAMES[words[0]].module), words[1:], None
    if command.is_group:
        verb = rest[0] if rest and rest[0] in command.verbs else command.default
        if verb is None or (rest and re.fullmatch(r"[a-z][a-z-]+", rest[0]) and not _is_word_of(command, rest[0])):
            return f"{words[0]} has no verb {rest[:1]}"
    known = {*command.options(verb)[0], "--help"}
    strange = [word for word in rest if word.startswith("--") and len(word) > 2 and word not in known]
    return f"{words[0]} {verb or ''} has no option {strange[0]}" if strange else None


def _is_word_of(command: Any, word: str) -> bool:
    """A verb, or a word that the default verb takes in its place."""
    return word in command.verbs or bool(command.default and command.options(command.default)[1])


@EACH
def test_every_command_in_the_docs_exists(page: Path) -> None:
    wrong = {line: found for line in commands(page.read_text()) if (found := problem(line.rstrip(".,:").split()))}

    assert wrong == {}


def dead_names(text: str) -> list[str]:
    """Of app, job, ctx and unstuck: what they do not have."""
    code = "\n".join([*_PYTHON.findall(text), *inline(text)])
    app = unstuck.App()
    places: dict[str, Any] = {"job": unstuck.Job, "ctx": AttemptContext, "unstuck": unstuck, "app": app}
    wrong = [
        f"{owner}.{name}"
        for owner, name in re.findall(r"\b(job|ctx|unstuck|app)\.([a-zA-Z]\w*)", code)
        if not hasattr(places[owner], name) and name not in ("db", "toml", "clock")  # files, and a module
    ]
    wrong += [
        f"app.{noun}.{verb}"
        for noun, verb in re.findall(r"\bapp\.([a-z]\w*)\.([a-z]\w*)\(", code)
        if noun != "config" and not hasattr(getattr(app, noun, None), verb)
    ]
    return wrong


@EACH
def test_every_name_of_python_in_the_docs_exists(page: Path) -> None:
    assert dead_names(page.read_text()) == []


def test_what_is_dead_is_noticed() -> None:
    assert problem(["jobs", "explode", "X"]) is not None
    assert problem(["jobs", "cancel", "X", "--gently"]) is not None
    assert problem(["jobs", "cancel", "X", "--by", "ada"]) is None
    assert problem(["sing"]) is not None
    assert commands("```sh\nJOB=$(unstuck enqueue greet 'a b' --wait)\n```\n`unstuck jobs\nrelease JOB`") == {
        "enqueue greet X --wait",
        "jobs release JOB",
    }
    text = "```sh\nunstuck.db\n```\n`job.shout()` `app.sing` `job.wait()`\n```python\napp.queues.burn(1)\n```\n"
    assert dead_names(text) == ["job.shout", "app.sing", "app.queues.burn"]
