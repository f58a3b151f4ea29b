"""What goes wrong outside of us ends as one clear sentence and a documented code, never as a traceback of ours."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import Answer, Command


def by_shell(unstuck: Command, words: str, redirection: str) -> Answer:
    """With a redirection that only a shell can make."""
    finished = subprocess.run(
        f"{shlex.join(unstuck.words())} {words} {redirection}",
        shell=True,
        cwd=unstuck.directory,
        env=unstuck.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Answer(finished.returncode, finished.stdout, finished.stderr)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".py" and path.name != "__pycache__"}


@pytest.fixture
def here(bare: Command) -> Command:
    """A directory with a small app that names no database."""
    (bare.directory / "shop.py").write_text(
        "import unstuck\napp = unstuck.App()\n\n@app.workflow\ndef add(a: int) -> int:\n    return a\n"
    )
    return bare


# --- what is handed in ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["add", "[" * 120_000], ["add", "a=" + "[" * 120_000]])
def test_brackets_without_end_are_wrong_usage(here: Command, words: list[str]) -> None:
    answer = here("enqueue", *words, "--app", "shop:app")
    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err
    assert "cannot be stored" in answer.err
    assert len(answer.err) < 1000


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "list", "--older", "nan"],
        ["jobs", "list", "--newer", "99999999999999999999"],
        ["jobs", "list", "--older", "9999999999d"],
        ["jobs", "list", "--newer", "٣s"],
        ["jobs", "list", "--older", "x" * 50_000],
        ["jobs", "list", "--after", "x" * 50_000],
        ["jobs", "wait", "0", "--timeout", "inf"],
        ["queues", "pause", "default", "--for", "nan"],
        ["queues", "pause", "default", "--until", "in 9999999999d"],
        ["queues", "pause", "default", "--until", "9999-12-31T23:59:59-14:00"],
        ["queues", "limit", "default", "--rate", "1/999999999d"],
        ["tenants", "limit", "default", "--rate", "1000000001/s"],
        ["workflows", "limit", "add", "--rate", "٣/s"],
        ["limits", "key", "host:a", "--rate", "1/999999999d"],
        ["enqueue", "add", "1", "--app", "shop:app", "--delay", "nan"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_numbers_and_times_beyond_reason_are_wrong_usage(here: Command, words: list[str]) -> None:
    assert here("enqueue", "add", "1", "--app", "shop:app", "--database", "sqlite:///jobs.db").code == 0
    answer = here(*words, "--database", "sqlite:///jobs.db")
    assert (answer.code, answer.out) == (2, "")
    assert "Traceback" not in answer.err
    assert len(answer.err) < 1500


@pytest.mark.parametrize("content", [b'tenant = "\xff\xfe"\n', b"a = " + b"[" * 20_000, b"lease = \n"])
def test_a_settings_file_that_cannot_be_read_is_named(bare: Command, content: bytes) -> None:
    (bare.directory / "unstuck.toml").write_bytes(content)
    answer = bare("stats")
    assert (answer.code, answer.out) == (2, "")
    assert "unstuck.toml cannot be read" in answer.err
    assert "Traceback" not in answer.err


# --- where answers go -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", ["stats", "stats --json", "jobs list", "--help", "jobs --help", "db current", "version"]
)
def test_a_full_disk_behind_stdout_is_told_and_is_a_failure(here: Command, words: str) -> None:
    here("enqueue", "add", "1", "--app", "shop:app")
    answer = by_shell(here, words, "> /dev/full")
    assert answer.code == 1, answer.err
    assert answer.err.splitlines() == ["unstuck: the answer could not be written to stdout: No space left on device"]


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&- <&-", "2>/dev/full"])
def test_a_command_whose_streams_are_closed_still_does_its_work(here: Command, redirection: str) -> None:
    answer = by_shell(here, "enqueue add 1 --app shop:app", redirection)
    assert answer.code == 0, answer.err
    assert answer.err == "" or "follow it" in answer.err
    assert len(here("jobs", "list", "--json").lines) == 1


def test_descriptors_that_were_closed_are_never_given_to_files(here: Command) -> None:
    """Else a stray print of any library would land in the database."""
    probe = "import os, unstuck.cli.main as m; m.main(['version']); f = os.open('x.txt', os.O_CREAT); os._exit(f)"
    finished = subprocess.run(
        f"{shlex.join([here.words()[0], '-c', probe])} >&- 2>&- <&-",
        shell=True,
        cwd=here.directory,
        env=here.environment(),
        timeout=60,
        check=False,
    )
    assert finished.returncode > 2


# --- the app ----------------------------------------------------------------------------------------------------

BROKEN = "def price():\n    return 1 / 0\n\nprice()\n"


@pytest.mark.parametrize("named", [True, False], ids=["database named", "database asked of the app"])
@pytest.mark.parametrize(
    ("app", "told", "lines"),
    [
        ("nope:app", "app nope:app cannot be imported: ModuleNotFoundError: No module named 'nope'; looked in ", 1),
        ("shop:nope", "shop has no nope; name the App as module:attribute", 1),
        ("nope.py:app", "there is no file nope.py", 1),
        ("leaves:app", "SystemExit: 3", 5),
        ("shop:add", "shop:add is not an App; its type is Workflow", 1),
        ("broken:app", "ZeroDivisionError: division by zero", 9),
    ],
)
def test_an_app_that_cannot_be_had_is_told_in_the_users_own_terms(
    here: Command, app: str, told: str, lines: int, named: bool
) -> None:
    (here.directory / "broken.py").write_text(BROKEN)
    (here.directory / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    words = ["--database", "sqlite:///x.db"] if named else []
    answer = here("enqueue", "add", "1", "--app", app, *words)
    assert (answer.code, answer.out) == (2, ""), answer.err
    assert told in answer.err
    assert len(answer.err.splitlines()) <= lines
    assert ("looked in" in answer.err) == (app == "nope:app")
    assert "unstuck/executor" not in answer.err
    assert "importlib" not in answer.err
    assert ('.py", line' in answer.err) == (app in ("broken:app", "leaves:app"))
    assert files(here.directory) == set()


# --- the database -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [["jobs", "list"], ["jobs", "show", "abc"], ["jobs", "cancel", "abc"], ["stats"], ["workers"], ["workflows"],
     ["enqueue", "add", "1"]],
)  # fmt: skip
def test_a_database_without_tables_names_the_remedy_and_no_sql(bare: Command, words: list[str]) -> None:
    (bare.directory / "empty.db").touch()
    answer = bare(*words, "--database", "sqlite:///empty.db")
    assert (answer.code, answer.out) == (6, "")
    assert answer.err == (
        "unstuck: sqlite:///empty.db has no tables yet; make them: unstuck db migrate --database sqlite:///empty.db "
        "(the first worker makes them too, and so does the first job that is enqueued with --app)\n"
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["enqueue", "nope"], 3),
        (["enqueue", "nope", "--app", "shop:app"], 3),
        (["enqueue", "add", "many", "--app", "shop:app"], 2),
        (["enqueue", "add", "1", "--app", "shop:app", "--priority", "1000000"], 2),
        (["jobs", "list"], 6),
        (["health"], 6),
        (["worker", "shop:app", "--check"], 0),
    ],
)
def test_what_ends_without_a_job_leaves_no_file(here: Command, words: list[str], code: int) -> None:
    answer = here(*words)
    assert answer.code == code, answer.err
    assert files(here.directory) == set()


def test_a_remedy_names_the_database_that_a_flag_named(here: Command) -> None:
    answer = here("jobs", "list", "--database", "my jobs.db")
    assert answer.code != 0
    assert "make this one: unstuck db migrate --database 'my jobs.db'" in answer.err
    assert here("db", "migrate", "--database", "my jobs.db").code == 0
    assert here("jobs", "list", "--database", "my jobs.db").code == 0


def test_a_remedy_leaves_out_what_the_environment_says(here: Command) -> None:
    answer = here("jobs", "list", UNSTUCK_DATABASE="jobs.db")
    assert answer.err.strip().endswith("make this one: unstuck db migrate")


@pytest.mark.parametrize(
    ("words", "variables", "flags"),
    [
        (["--app", "shop:app", "--database", "x.db"], {}, " --database x.db"),
        (["--app", "shop:app", "--tenant", "acme"], {"UNSTUCK_DATABASE": "x.db"}, " --tenant acme"),
        (["--app", "shop:app"], {"UNSTUCK_DATABASE": "x.db"}, ""),
        (["--app", "own:app"], {}, " --database sqlite:///own.db"),
        ([], {"UNSTUCK_APP": "own:app"}, ""),
    ],
)
def test_how_to_follow_a_new_job_can_be_pasted(
    here: Command, words: list[str], variables: dict[str, str], flags: str
) -> None:
    text = (here.directory / "shop.py").read_text()
    (here.directory / "own.py").write_text(text.replace("App()", "App('sqlite:///own.db')"))

    answer = here("enqueue", "add", "1", *words, **variables)
    assert answer.err.strip() == f"follow it: unstuck jobs show {answer.word}{flags}"
    assert here(*answer.err.split()[3:], **variables).code == 0


@pytest.mark.parametrize("words", [["jobs", "list"], ["enqueue", "add", "1", "--app", "shop:app"]])
def test_an_empty_name_of_a_database_is_told_as_what_it_is(here: Command, words: list[str]) -> None:
    answer = here(*words, "--database", "")
    assert answer.code == 2
    assert "database='' (flags): empty; say what it is, or leave it out" in answer.err


@pytest.mark.parametrize("url", ["postgresql://me:hunter2@localhost/x?foo=bar", "postgresql://me:hunter2%zz@[::1/x"])
@pytest.mark.parametrize("words", [["jobs", "list"], ["enqueue", "add", "1"], ["worker"]], ids=lambda words: words[0])
def test_a_url_that_no_server_can_have_is_wrong_usage(here: Command, words: list[str], url: str) -> None:
    answer = here(*words, "--database", url, UNSTUCK_APP="shop:app")
    assert (answer.code, answer.out) == (2, ""), answer.err
    assert "postgresql://me:***@" in answer.err
    assert "hunter2" not in answer.err
    assert "Traceback" not in answer.err


def test_without_app_and_database_the_refusal_says_what_is_missing(bare: Command) -> None:
    answer = bare("enqueue", "greet")
    assert answer.err == (
        "unstuck: there is no workflow greet; there is no database unstuck.db yet: name the app with "
        "--app MODULE:APP, or the database with --database\n"
    )


def test_the_first_job_of_a_known_app_makes_the_database(here: Command) -> None:
    assert here("enqueue", "add", "1", "--app", "shop:app").code == 0
    assert os.path.exists(here.directory / "unstuck.db")
    assert here("enqueue", "add", "1").code == 3, "nobody has registered it there"


def test_a_text_of_digits_that_is_taken_for_a_number_is_told_how_to_be_written(here: Command) -> None:
    """A card number, an account: they are JSON for a number."""
    (here.directory / "bank.py").write_text(
        "import unstuck\napp = unstuck.App()\n\n@app.workflow\ndef pay(cents: int, card: str) -> None: ...\n"
    )
    hint = """text that reads as JSON needs quotes of its own: '"42"'"""
    for card in ("4111", "card=true"):
        answer = here("enqueue", "pay", "5", card, "--app", "bank:app")
        assert (answer.code, "card: expected string, got " in answer.err) == (2, True), answer.err
        assert answer.err.rstrip().endswith(hint)
    assert here("enqueue", "pay", "5", '"4111"', "--app", "bank:app").code == 0
    assert "quotes" not in here("enqueue", "pay", "five", "4111a", "--app", "bank:app").err
