"""Tab completion: commands, verbs, options, ids of jobs; and never an error."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.cli.command import Command, environment
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.store.port import Store


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["wo"], ["worker", "workers", "workflows"]),
        (["jobs", "re"], ["release", "replay", "reprioritise", "resolve", "resume", "retry"]),
        (["jobs", "list", "--st"], ["--state"]),
        (["enqueue", "--pri"], ["--priority"]),
        (["jobs", "list", "--state", "C"], ["CANCELLED", "COMPLETED"]),
        (["jobs", "list", "-s", "ru"], ["RUNNING"]),
        (["worker", "--log-format", ""], ["auto", "human", "json"]),
        (["worker", "--preset", "hu"], ["human_gate"]),
        (["audit", "--verb", "approvals"], ["approvals", "approvals.approve", "approvals.reject"]),
        (["events", "list", "--kind", "time"], ["timed_out"]),
        (["jobs", "list", "--error", "bud"], ["BudgetExceeded"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["nonsense", ""], []),
        (["jobs", "show", "0"], []),
    ],
)
def test_words_are_completed(bare: Command, words: list[str], expected: list[str]) -> None:
    answer = bare("__complete", *words)
    assert (answer.code, answer.err, answer.out.split()) == (0, "", expected)


def test_ids_of_jobs_are_completed(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    assert unstuck("__complete", "jobs", "show", job[:6]).word == job
    assert unstuck("__complete", "jobs", "cancel", "--reason", "x", job[:6]).word == job


def test_names_of_workflows_are_completed(unstuck: Command, store: Store) -> None:
    store.register_workflows([WorkflowRecord(name, "1", "default", Policy(), {}) for name in ("greet", "grow")])
    assert unstuck("__complete", "enqueue", "gr").out.split() == ["greet", "grow"]
    assert unstuck("__complete", "jobs", "list", "--workflow", "gre").word == "greet"
    assert unstuck("__complete", "workflows", "gro").word == "grow"
    assert unstuck("__complete", "enqueue", "greet", "gr").word == "", "an argument is the caller's own"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(bare: Command, shell: str) -> None:
    answer = bare("completion", shell)
    assert answer.code == 0
    assert "unstuck __complete" in answer.out
    assert bare("completion", "tcsh").code == 2


def test_bash_takes_the_script_and_completes_with_it(bare: Command) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "these tests need bash"
    script = (
        f'unstuck() {{ {" ".join(bare.words())} "$@"; }}\n'
        'eval "$(unstuck completion bash 2>/dev/null)"\n'
        'COMP_WORDS=(unstuck jobs re); COMP_CWORD=2; _unstuck; echo "${COMPREPLY[@]}"'
    )
    finished = subprocess.run(
        [bash, "-c", script], env=environment(), cwd=bare.directory, capture_output=True, text=True, check=True
    )
    assert finished.stdout.split() == ["release", "replay", "reprioritise", "resolve", "resume", "retry"]
