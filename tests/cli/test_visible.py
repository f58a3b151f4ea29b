"""What a job chose to be called reaches no terminal as a command to it."""

from __future__ import annotations

import pytest

from unstuck.cli import output


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('File "/tmp/путь.py", in évil\n\tx = 1', 'File "/tmp/путь.py", in évil\n\tx = 1'),
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("a\rb\x00\x7f\x9b1m", "a\\x0db\\x00\\x7f\\x9b1m"),
        ("ab\u202ecd\U000e0001", "ab\\u202ecd\\U000e0001"),
    ],
)
def test_what_a_terminal_would_obey_is_spelt_out(text: str, shown: str) -> None:
    assert output.visible(text) == shown


def test_tables_spell_it_out_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["ERROR"], [["\x1b[31mred\nline"]], empty="")
    assert "\\x1b[31mred line" in capsys.readouterr().out
