"""unstuck completion SHELL: prints a script; the shell then asks `unstuck __complete WORDS…` for candidates.

The first word comes from the table of commands, the rest from the one command module that is meant, and job ids
from the database if it answers quickly. Whatever goes wrong, a tab key must never print an error.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from unstuck.cli import options, output
from unstuck.cli.commands import NAMES, load
from unstuck.cli.parser import Argument
from unstuck.model.errors import InvalidInput

if TYPE_CHECKING:
    from unstuck.cli.parser import Command
    from unstuck.cli.session import Session
    from unstuck.store.port import TargetRecord, TenantRecord

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
        return sorted(word for word in _possible(before, last) if word.upper().startswith(last.upper()))
    except Exception:
        return []


def _possible(before: list[str], last: str) -> list[str]:
    if not before:
        return [*NAMES, "--help", "--version"]
    if before[0] not in NAMES:
        return []
    command = load(NAMES[before[0]].module)
    verb = before[1] if command.is_group and len(before) > 1 else None
    if command.is_group and verb not in command.verbs:
        return _without_verb(command, before, last)
    words = before[1 if verb is None else 2 :]
    if words and (parameter := command.takes_value(verb, words[-1])):
        return _values(parameter, last, before)
    flags, arguments = command.options(verb)
    if last.startswith("-"):
        return flags
    if {"job", "jobs"} & set(arguments):
        return _values("job", last, before)
    # What follows the first argument of `enqueue` is the caller's own.
    return _values(arguments[0], last, before) if arguments and not words else []


def _without_verb(command: Command, before: list[str], last: str) -> list[str]:
    """A verb, or what the group's default verb takes."""
    verbs = list(command.verbs) if len(before) == 1 else []
    if command.default is None:
        return verbs
    if len(before) > 1 and (parameter := command.takes_value(command.default, before[-1])):
        return _values(parameter, last, before)
    flags, arguments = command.options(command.default)
    if last.startswith("-"):
        return flags
    return verbs + (_values(arguments[0], last, before) if arguments and verbs else [])


def _values(parameter: str, prefix: str, words: list[str]) -> list[str]:
    """What an option or argument of this name may be given, as far as that is known and cheap."""
    match parameter:
        case "job" if words[0] == "approvals":
            from unstuck.observe.flow import approvals

            with _session(words) as session:
                return [approval.job for approval in approvals(session.store, session.tenant, limit=50)]
        case "job":
            with _session(words) as session:
                return session.store.find(session.tenant, prefix, 50)
        case "target":
            with _session(words) as session:
                # By name above the prefix; the prefix itself may be a name too.
                found = session.store.targets(session.tenant, after=prefix, limit=50)
                return [*(target.name for target in found), *_known(session.store.target(session.tenant, prefix))]
        case "who" | "tenant":
            with _session(words) as session:
                return [*(t.name for t in session.store.tenants(prefix, 50)), *_known(session.store.tenant(prefix))]
        case "queue":
            from unstuck.cli.gates import queue_names

            with _session(words) as session:
                return list(queue_names(session))
        case "worker" | "names":
            with _session(words) as session:
                return [worker.name for worker, state in session.workers() if state != "gone"]
        case "pid":
            with _session(words) as session:
                return _pids(session)
        case "after_failure":
            return ["fail", "run"]
        case "after" if words[0] in ("enqueue", "approvals"):
            return _values("job", prefix, words)
        case "workflow" | "name" if words[0] not in ("worker", "limits", "settings"):
            with _session(words) as session:
                return [workflow.name for workflow in session.store.workflows()]
        case "state":
            from unstuck.model.lifecycle import JobState

            return [state.value for state in JobState]
        case "verb":
            from unstuck.model.guard import VERBS

            return [*VERBS, *{verb.split(".")[0] for verb in VERBS}]
        case "kind":
            from unstuck.model.lifecycle import EventKind

            return [kind.value for kind in EventKind]
        case "error":
            from unstuck.model.errors import ErrorType

            return [error.value for error in ErrorType]
        case "preset":
            from unstuck.config import PRESETS

            return list(PRESETS)
        case "name" if words[0] == "settings":
            from unstuck.model.guard import SETTINGS

            return list(SETTINGS)
        case "log_format":
            return ["auto", "human", "json"]
        case "shell":
            return list(SCRIPTS)
        case _:
            return []


def _known(record: TargetRecord | TenantRecord | None) -> list[str]:
    return [] if record is None else [record.name]


def _pids(session: Session) -> list[str]:
    from unstuck.cli import worker_info

    living = [worker for worker, state in session.workers() if state in worker_info.ALIVE]
    return [str(process.pid) for worker in living for process in worker_info.processes(worker)]


def _session(words: list[str]) -> AbstractContextManager[Session]:
    from unstuck.cli.session import opened

    chosen = dict(pairwise(words))
    return opened(chosen.get("--database") or chosen.get("-d"), chosen.get("--tenant"))
