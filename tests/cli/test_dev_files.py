"""What `unstuck dev` watches, and what of it counts as one change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unstuck.cli.dev.changes import LONGEST, REST, Burst, FileChanges, Stamp
from unstuck.cli.dev.sources import files_in, is_code, roots_of


def written(at: int) -> Stamp:
    return at, 10, 1


A, B, C = "/shop/a.py", "/shop/b.py", "/shop/c.py"


def test_what_changed_is_what_was_written_what_came_and_what_went() -> None:
    found = FileChanges.between({A: written(1), B: written(1)}, {A: written(2), C: written(1)})
    assert [*map(set, (found.written, found.new, found.gone))] == [{A}, {C}, {B}]
    assert found.paths == [A, B, C]
    assert found.text(Path("/shop")) == "a.py changed, c.py is new, b.py is gone"
    assert not FileChanges.between({A: written(1)}, {A: written(1)})


@pytest.mark.parametrize("after", [(2, 10, 1), (1, 11, 1), (1, 10, 2)])
def test_a_file_changed_when_its_time_its_length_or_the_file_itself_is_another(after: Stamp) -> None:
    assert FileChanges.between({A: (1, 10, 1)}, {A: after}).written == {A}


def test_changes_one_after_the_other_name_each_file_once_as_it_is_now() -> None:
    came = FileChanges(new=frozenset({A}))
    assert came.then(FileChanges(written=frozenset({A}))) == came
    assert came.then(FileChanges(gone=frozenset({A}))) == FileChanges(gone=frozenset({A}))
    went = FileChanges(gone=frozenset({A}))
    assert went.then(FileChanges(new=frozenset({A}))).gone == frozenset()
    assert went.then(FileChanges(new=frozenset({A}))).paths == [A]
    assert went.then(FileChanges(new=frozenset({B}))).paths == [A, B]


def test_a_line_names_some_files_and_counts_the_others() -> None:
    many = FileChanges(written=frozenset(f"/shop/{number}.py" for number in range(9)))
    assert many.text(Path("/shop")) == "0.py, 1.py and 7 more changed"
    assert FileChanges(new=frozenset({A, B})).text(Path("/shop")) == "a.py and b.py are new"
    assert FileChanges(written=frozenset({A})).text(Path("/elsewhere")) == "/shop/a.py changed"


def test_a_burst_of_saves_is_told_once_and_when_it_is_over() -> None:
    burst = Burst({A: written(1)})
    assert not burst.look({A: written(1)}, 0.0)
    assert not burst.look({A: written(2)}, 1.0)
    assert burst.is_growing
    assert not burst.look({A: written(2), B: written(2)}, 1.0 + REST / 2)
    assert not burst.look({A: written(2), B: written(2)}, 1.0 + REST)
    found = burst.look({A: written(2), B: written(2)}, 1.1 + 2 * REST)
    assert [*map(set, (found.written, found.new))] == [{A}, {B}]
    assert not burst.is_growing
    assert not burst.look({A: written(2), B: written(2)}, 9.0)


def test_a_file_that_is_written_without_end_is_told_all_the_same() -> None:
    burst = Burst({A: written(0)})
    told = [at for at in range(100) if burst.look({A: written(at)}, at * REST / 2)]
    assert told
    assert told[0] * REST / 2 <= LONGEST + REST


def test_what_comes_and_goes_within_a_burst_is_no_change() -> None:
    burst = Burst({A: written(1)})
    burst.look({A: written(1), B: written(1)}, 0.0)
    assert not burst.look({A: written(1)}, REST / 2)
    assert not burst.look({A: written(1)}, 9.0)
    assert not burst.is_growing


@pytest.mark.parametrize("name", ["shop.py", "unstuck.toml", "pyproject.toml", "__init__.py"])
def test_code_and_settings_count(name: str) -> None:
    assert is_code(name)


@pytest.mark.parametrize(
    "name",
    ["unstuck.db", "unstuck.db-wal", "shop.pyc", "shop.py~", ".#shop.py", ".shop.py.swp", "4913", "notes.txt"],
)
def test_databases_and_what_editors_leave_do_not(name: str) -> None:
    assert not is_code(name)


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def seen(*roots: Path) -> set[str]:
    return {os.path.relpath(path, roots[0]) for path in files_in(roots)}


def test_installed_hidden_and_compiled_files_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "shop.py", "jobs/mail.py", "jobs/deep/down.py", "unstuck.db", "unstuck.db-wal")
    put(tmp_path, ".venv/lib/a.py", ".git/hook.py", "__pycache__/shop.py", "node_modules/x/y.py")
    put(tmp_path, "my-env/pyvenv.cfg", "my-env/lib/python3.11/site-packages/a.py", "vendor/site-packages/b.py")
    assert seen(tmp_path) == {"shop.py", "jobs/mail.py", "jobs/deep/down.py"}


def test_links_are_followed_and_circles_end(tmp_path: Path) -> None:
    shop, shared = tmp_path / "shop", tmp_path / "shared"
    put(shop, "shop.py")
    put(shared, "common.py")
    (shop / "common").symlink_to(shared)
    (shop / "round").symlink_to(shop)
    (shop / "nowhere.py").symlink_to(tmp_path / "gone.py")
    assert seen(shop) == {"shop.py", "common/common.py"}
    before = files_in([shop])
    (shared / "common.py").write_text("x = 1")
    assert FileChanges.between(before, files_in([shop])).paths == [str(shop / "common" / "common.py")]


def test_the_apps_own_package_is_watched_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there, more = tmp_path / "here", tmp_path / "there", tmp_path / "more"
    for folder in (here, more):
        folder.mkdir()
    put(there, "bakery/__init__.py", "bakery/jobs.py", "kiosk.py")
    put(there / "site-packages", "stall.py", "other.py")
    monkeypatch.syspath_prepend(str(there))
    monkeypatch.syspath_prepend(str(there / "site-packages"))
    assert roots_of("bakery.jobs:app", here) == [here, there / "bakery"]
    assert roots_of("kiosk:app", here, [more]) == [here, more, there]
    assert roots_of("stall:app", here) == [here, there / "site-packages" / "stall.py"]
    assert seen(there / "site-packages" / "stall.py") == {"."}
    assert roots_of("../there/kiosk.py:app", here) == [here, there]
    assert roots_of("nowhere.at.all:app", here) == [here]
    assert roots_of("tests.cli.shop:app", Path.cwd()) == [Path.cwd()], "a folder within another is watched once"
