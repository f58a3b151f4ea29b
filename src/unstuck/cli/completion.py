"""unstuck completion SHELL: prints a script; the shell then asks `unstuck __complete WORDS…` for candidates.

The first word comes from the table of commands, the rest from the one command module that is meant, and job ids
from the database if it answers quickly. Whatever goes wrong, a tab key must never print an error.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.commands import NAMES
from unstuck.cli.parser import Argument
from unstuck.model.errors import InvalidInput

app = options.single()

SCRIPTS = {
    "bash": """\
_unstuck() {
    local IFS=$'\\n'
    COMPREPLY=($(unstuck __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _unstuck unstuck
""",
    "zsh": """\
#compdef unstuck
_unstuck() {
    local -a candidates
    candidates=("${(@f)$(unstuck __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -Q -a candidates
}
compdef _unstuck unstuck
""",
    "fish": """\
function __unstuck_complete
    set -l words (commandline -opc) (commandline -ct)
    unstuck __complete $words[2..-1] 2>/dev/null
end
complete -c unstuck -f -a '(__unstuck_complete)'
""",
}

_INSTALL = {
    "bash": 'eval "$(unstuck completion bash)"            # in ~/.bashrc',
    "zsh": 'eval "$(unstuck completion zsh)"             # in ~/.zshrc, after compinit',
    "fish": "unstuck completion fish | source             # in ~/.config/fish/config.fish",
}


@app.command()
def completion(shell: Annotated[str, Argument(metavar="bash|zsh|fish")]) -> None:
    """Print the script that gives your shell tab completion, ids of jobs included."""
    if shell not in SCRIPTS:
        raise InvalidInput(f"there is no completion for {shell}; there is: {', '.join(SCRIPTS)}")
    output.say(SCRIPTS[shell].rstrip())
    output.note(f"# to keep it: {_INSTALL[shell]}")


def candidates(words: list[str]) -> list[str]:
    """What the last of these words may become."""
    *before, last = words or [""]
    try:
        return sorted(word for word in _possible(before, last) if word.startswith(last))
    except Exception:
        return []


def _possible(before: list[str], last: str) -> list[str]:
    from unstuck.cli.main import load

    if not before:
        return [*NAMES, "--help", "--version"]
    if before[0] not in NAMES:
        return []
    command = load(NAMES[before[0]].module)
    verb = before[1] if command.is_group and len(before) > 1 else None
    if command.is_group and verb not in command.verbs:
        return list(command.verbs) if verb is None else []
    flags, arguments = command.options(verb)
    if last.startswith("-"):
        return flags
    return _job_ids(last, before) if {"job", "jobs"} & set(arguments) else []


def _job_ids(prefix: str, words: list[str]) -> list[str]:
    from unstuck.cli.session import opened

    chosen = dict(pairwise(words))
    with opened(chosen.get("--database") or chosen.get("-d"), chosen.get("--tenant")) as session:
        return session.store.find(session.tenant, prefix, 50)
