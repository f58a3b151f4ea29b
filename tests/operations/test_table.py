"""The table of operations is whole: each has a command, methods, a role and errors, and its faces say the same."""

from __future__ import annotations

import importlib.util
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import unstuck
from tests.operations.conftest import Ask
from unstuck import App
from unstuck.app.draft import OWN
from unstuck.cli.commands import NAMES, load
from unstuck.intake.submit import ALIASES, JOB_OPTIONS
from unstuck.model.errors import InvalidInput, NotPermitted, UnstuckError
from unstuck.model.guard import VERBS
from unstuck.model.policy import Policy
from unstuck.observe.stream import Source
from unstuck.operations import pauses, queues, targets, tenants
from unstuck.operations.nouns import OPERATIONS
from unstuck.operations.table import INCLUDED, Operation, Role
from unstuck.views import View

EACH = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))


def arguments(operation: Operation[Any, Any]) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(operation.function).parameters)
    assert next(iter(found)) == "caller"
    del found["caller"]
    return found


@EACH
def test_an_operation_says_what_it_does_and_answers_with_a_view(operation: Operation[Any, Any]) -> None:
    assert operation.__doc__, "one sentence for the reference"
    answer = get_type_hints(operation.function)["return"]
    origin = getattr(answer, "__origin__", answer)
    if operation.entry.effect != "stream":
        assert isinstance(origin, type), f"{operation.name} answers with {answer}"
        assert issubclass(origin, View), f"{operation.name} answers with {answer}"
    assert all(issubclass(error, UnstuckError) for error in operation.entry.errors)


@EACH
def test_what_changes_is_audited_and_says_how_a_repeat_is_safe(operation: Operation[Any, Any]) -> None:
    entry = operation.entry
    assert (entry.repeat == "read") == (entry.effect != "change")
    if entry.audited is not None:
        assert entry.audited in VERBS
        assert entry.effect == "change"


@EACH
def test_what_is_paged_takes_its_cursor_and_a_limit(operation: Operation[Any, Any]) -> None:
    taken = arguments(operation)
    if operation.entry.paged is not None:
        assert operation.entry.paged in taken
        assert "limit" in taken


@EACH
def test_an_operation_has_a_command(operation: Operation[Any, Any]) -> None:
    command, _, verb = operation.command.partition(" ")
    assert command in NAMES, f"{operation.name}: there is no `unstuck {command}`"
    if verb:
        assert verb in load(NAMES[command].module).verbs, f"{operation.name}: no `unstuck {operation.command}`"


@EACH
def test_an_operation_has_a_method_and_its_twin(operation: Operation[Any, Any]) -> None:
    noun = getattr(App("sqlite:///nowhere.db"), operation.noun)
    method, twin = getattr(noun, operation.verb), getattr(noun, operation.twin)
    assert inspect.signature(method).parameters == inspect.signature(twin).parameters
    own = {"tenant"} if operation.entry.whose != "platform" else set()
    own |= {"by"} if operation.entry.effect == "change" else set()
    assert set(inspect.signature(method).parameters) == {*arguments(operation), *own}


@EACH
def test_what_an_operation_answers_with_can_be_imported_from_the_package(operation: Operation[Any, Any]) -> None:
    for kind in kinds_in(get_type_hints(operation.function)["return"]):
        if kind is not Source:  # Python's face makes a Stream of it
            assert getattr(unstuck, kind.__name__) is kind


def kinds_in(annotation: Any) -> set[type]:
    """The classes of ours that an answer is made of."""
    found = {kind for part in get_args(annotation) for kind in kinds_in(part)}
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type) or not kind.__module__.startswith("unstuck."):
        return found
    inside = get_type_hints(kind).values() if issubclass(kind, View) else ()
    known = {kind} | found
    return known.union(*(kinds_in(part) for part in inside if part is not annotation and not _is_of(part, kind)))


def _is_of(annotation: Any, kind: type) -> bool:
    """A tree is made of trees."""
    return kind in get_args(annotation)


def test_pythons_face_is_as_the_table_says() -> None:
    for face, text in script("draw_faces").draw().items():
        assert face.read_text() == text, f"{face.name} is old: run python docs/draw_faces.py"


def test_the_reference_is_as_the_code_says() -> None:
    drawn = script("draw_reference")
    assert drawn.PAGE.read_text() == drawn.draw(), "it is old: run python docs/draw_reference.py"
    assert drawn.SCHEMA.read_text() == drawn.draw_schema(), "it is old: run python docs/draw_reference.py"
    assert drawn.KEYS.read_text() == drawn.draw_keys(), "it is old: run python docs/draw_reference.py"


def test_the_reference_has_every_option_that_a_workflow_takes_and_no_other() -> None:
    others = {name for name, ours in ALIASES.items() if ours not in JOB_OPTIONS}
    taken = {*OWN, *(field.name for field in fields(Policy)), *others, "token_limit"}
    page = script("draw_reference").draw()
    told = re.findall(r"^\| `(\w+)` \|", page.partition("## Options of a workflow")[2].partition("## ")[0], re.M)

    assert sorted(told) == sorted(taken)


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "docs" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- who may ask ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_role_that_does_not_include_what_is_needed_is_refused(ask: Ask) -> None:
    for operation in OPERATIONS.values():
        for role in Role:
            caller = ask(role=role)
            if operation.entry.role in INCLUDED[role]:
                assert operation.admitted(caller).role is role
            else:
                with pytest.raises(NotPermitted, match=f"{operation.name} needs the role {operation.entry.role}"):
                    operation.admitted(caller)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_caller_of_one_tenant_sees_no_other(ask: Ask) -> None:
    tenants.weigh(ask(), "acme", 2)
    bound = ask(role=Role.OPERATOR, bound="acme")
    queues.pause(bound, "io")
    assert [pause.tenant for pause in pauses.list_(bound)] == ["acme"]
    assert [*pauses.list_(ask())] == []
    for other in ("default", "*"):
        with pytest.raises(NotPermitted, match="acme alone"):
            queues.pause(bound.about(other), "io")


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_every_tenant_is_refused_where_one_is_meant(ask: Ask) -> None:
    with pytest.raises(InvalidInput, match="name it instead"):
        targets.list_(ask(tenant="*"))
