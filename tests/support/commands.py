"""Commands that we tell people to type: whether the command line takes them."""

from __future__ import annotations

import re
import shlex

from unstuck.cli.commands import NAMES, load
from unstuck.cli.parser import _parser_of, _shielded


def understand(typed: str) -> None:
    """Raises Usage if the command line would not take it; a statement is for psql (tests/store/test_why_locks.py)."""
    if typed.startswith("SELECT "):
        assert re.fullmatch(r"SELECT pg_terminate_backend\(\d+\)", typed), typed
        return
    first, name, *rest = shlex.split(typed.replace("N/PERIOD", "1/s"))
    assert (first, name in NAMES) == ("unstuck", True), typed
    command = load(NAMES[name].module)
    if command.is_group:
        verb = rest.pop(0) if rest else command.default
        assert verb is not None, typed
    else:
        verb = next(iter(command.verbs))
    assert verb in command.verbs, typed
    _parser_of(command.verbs[verb], typed).parse_intermixed_args(_shielded(rest))
