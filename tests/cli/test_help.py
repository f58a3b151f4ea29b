"""Help: complete, instant, and honest about what it does not know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Command, environment
from tests.tiers import slow
from unstuck.cli.commands import COMMANDS, overview

HELP_RATIO = 3.5


def seconds(words: list[str], directory: Path) -> float:
    """Of processor time: the wall clock would measure the neighbours."""
    process = subprocess.Popen(words, cwd=directory, env=environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


@slow
def test_help_costs_at_most_three_and_a_half_times_a_bare_python(tmp_path: Path) -> None:
    """Interleaved, best of many: the load of the machine hits both alike."""
    bare, helped = [], []
    for _ in range(15):
        bare.append(seconds([sys.executable, "-c", "pass"], tmp_path))
        helped.append(seconds([sys.executable, "-m", "unstuck", "--help"], tmp_path))
    assert min(helped) <= HELP_RATIO * min(bare), f"{min(helped) / min(bare):.2f} times a bare python"


def test_help_imports_nothing_that_costs_time(tmp_path: Path) -> None:
    script = (
        "import sys; from unstuck.cli.main import main; main(['--help']);"
        "sys.exit(sorted({'typer', 'rich', 'sqlite3', 'msgspec', 'typing'} & sys.modules.keys()) or 0)"
    )
    subprocess.run([sys.executable, "-c", script], env=environment(), stdout=subprocess.DEVNULL, check=True)


def test_no_words_show_the_overview(bare: Command) -> None:
    answer = bare()
    assert (answer.code, answer.out) == (0, overview() + "\n")
    assert bare("--help") == answer


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_command_of_the_table_has_help(bare: Command, name: str) -> None:
    answer = bare(name, "--help")
    assert answer.code == 0, answer.err
    assert f"unstuck {name}" in answer.out
    assert answer.out == bare("help", name).out


def test_an_unknown_command_is_usage_and_names_the_nearest(bare: Command) -> None:
    answer = bare("worker5")
    assert answer.code == 2
    assert "did you mean `unstuck worker" in answer.err
    assert answer.out == ""


@pytest.mark.parametrize("words", [["jobs", "show"], ["jobs", "list", "--limit", "many"], ["stats", "--nonsense"]])
def test_wrong_usage_says_what_and_how_on_stderr(bare: Command, words: list[str]) -> None:
    answer = bare(*words)
    assert (answer.code, answer.out) == (2, "")
    assert "Usage: unstuck" in answer.err
    assert "--help" in answer.err
    assert "Traceback" not in answer.err


def test_a_group_without_a_verb_shows_its_verbs(bare: Command) -> None:
    """One that has no verb for that."""
    answer = bare("db")
    assert (answer.code, answer.out) == (2, "")
    for verb in ("migrate", "current", "check"):
        assert f"\n  {verb} " in answer.err


def test_version_is_one_line_or_one_object(bare: Command) -> None:
    from unstuck.version import __version__

    assert bare("version").word == bare("--version").word == f"unstuck {__version__}"
    assert bare("version", "--json").object["unstuck"] == __version__


def test_a_bug_of_ours_shows_its_traceback_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    from unstuck.cli.main import report

    assert report(RuntimeError("unthought of")) == 70
    told = capsys.readouterr()
    assert "RuntimeError: unthought of" in told.err
    assert "this is a bug in unstuck" in told.err
    assert told.out == ""
