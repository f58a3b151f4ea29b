"""unstuck completion SHELL: prints a script; the shell then asks `unstuck __complete WORDS…` for candidates.

The first word comes from the table of commands, the rest from the one command module that is meant, and job ids
from the database if it answers quickly. Whatever goes wrong, a tab key must never print an error.
"""

from __future__ import annotations

from collections.abc import Callable
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
    command = words[0]
    if parameter == "after" and command in ("enqueue", "approvals"):
        parameter = "job"
    if parameter == "job" and command == "approvals":
        parameter = "asking job"
    elif parameter == "name" and command not in ("worker", "limits", "settings"):
        parameter = "workflow"
    if parameter not in _STORED:
        return _fixed(parameter, command)
    with _session(words) as session:
        return _STORED[parameter](session, prefix)


def _fixed(parameter: str, command: str) -> list[str]:
    """Values that stand in the code; what nobody knows has none."""
    from unstuck.config import PRESETS
    from unstuck.model.errors import ErrorType
    from unstuck.model.guard import SETTINGS, VERBS
    from unstuck.model.lifecycle import JobState
    from unstuck.model.news import OURS

    match parameter:
        case "after_failure":
            return ["fail", "run"]
        case "state":
            return [state.value for state in JobState]
        case "verb":
            return [*VERBS, *{verb.split(".")[0] for verb in VERBS}]
        case "kind":
            return list(OURS)
        case "error":
            return [error.value for error in ErrorType]
        case "preset":
            return list(PRESETS)
        case "name" if command == "settings":
            return list(SETTINGS)
        case "log_format":
            return ["auto", "human", "json"]
        case "shell":
            return list(SCRIPTS)
        case _:
            return []


def _asking_jobs(session: Session, prefix: str) -> list[str]:
    from unstuck.observe.flow import approvals

    return [approval.job for approval in approvals(session.store, session.tenant, limit=50)]


def _targets(session: Session, prefix: str) -> list[str]:
    # By name above the prefix; the prefix itself may be a name too.
    found = session.store.targets(session.tenant, after=prefix, limit=50)
    return [*(target.name for target in found), *_known(session.store.target(session.tenant, prefix))]


def _tenants(session: Session, prefix: str) -> list[str]:
    return [*(t.name for t in session.store.tenants(prefix, 50)), *_known(session.store.tenant(prefix))]


def _known(record: TargetRecord | TenantRecord | None) -> list[str]:
    return [] if record is None else [record.name]


def _queues(session: Session, prefix: str) -> list[str]:
    from unstuck.operations.names import queue_names

    return list(queue_names(session.caller))


def _workers(session: Session, prefix: str) -> list[str]:
    return [worker.name for worker in session.lookup.workers() if worker.state != "gone"]


def _pids(session: Session, prefix: str) -> list[str]:
    from unstuck.operations import workers

    return [str(process.pid) for worker in workers.list_(session.caller) for process in worker.processes]


#: By the name of an option or argument: what the database knows, at least those values that begin with the prefix.
_STORED: dict[str, Callable[[Session, str], list[str]]] = {
    "job": lambda session, prefix: session.store.find(session.tenant, prefix, 50),
    "asking job": _asking_jobs,
    "target": _targets,
    "who": _tenants,
    "tenant": _tenants,
    "queue": _queues,
    "worker": _workers,
    "names": _workers,
    "pid": _pids,
    "workflow": lambda session, prefix: [workflow.name for workflow in session.store.workflows(session.tenant)],
}


def _session(words: list[str]) -> AbstractContextManager[Session]:
    from unstuck.cli.session import opened

    chosen = dict(pairwise(words))
    database = chosen.get("--database") or chosen.get("-d")
    return opened(options.Common(database=database, tenant=chosen.get("--tenant")))
