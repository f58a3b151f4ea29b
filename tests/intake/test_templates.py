"""Templates: the target and the limit key of a call, from its arguments, the same at every door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from unstuck.intake import schema
from unstuck.intake.arguments import Arguments
from unstuck.intake.templates import check, fill, parse
from unstuck.model.errors import InvalidArguments, InvalidInput


@dataclass
class Order:
    customer: str
    region: str = "north"


def ship(
    order: Order, /, weight: float, *notes: str, carrier: str = "bike", urgent: bool = False, **more: Any
) -> None: ...


def maybe(order: Order | None = None, repo: str | None = None) -> None: ...


SHIP = Arguments("ship", ship)
MAYBE = Arguments("maybe", maybe)
ORDER = Order("ada")


def by_code(template: str, *args: Any, **kwargs: Any) -> str:
    return fill("ship", "target", template, SHIP.schema(), SHIP.pack(args, kwargs))


def by_row(template: str, *args: Any, **kwargs: Any) -> str:
    """As a door does that knows only the registered row."""
    return fill("ship", "target", template, SHIP.schema(), schema.pack("ship", SHIP.schema(), args, kwargs))


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{order.customer}", "ada"),
        ("{order.region}", "north"),
        ("{carrier}/{order.customer}", "bike/ada"),
        ("{weight}", "2"),
        ("{urgent}", "false"),
        ("{colour}", "red"),
        ("{{{carrier}}}", "{bike}"),
        ("everything", "everything"),
    ],
)
def test_every_door_gives_the_same_text(template: str, text: str) -> None:
    assert by_code(template, ORDER, 2, colour="red") == text
    assert by_row(template, {"customer": "ada"}, 2, colour="red") == text
    assert by_code(template, ORDER, weight=2.0, colour="red", carrier="bike") == text
    assert by_row(template, {"customer": "ada", "region": "north"}, weight=2.0, colour="red") == text


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{colour}", "needs colour, which is not given"),
        ("{order.customer}{order.town}", "needs order.town, which is not given"),
        ("{order}", "needs text or a number, and order is an object"),
        ("{weight.customer}", "needs weight.customer, and weight is not an object"),
    ],
)
def test_a_field_that_the_call_lacks_is_refused_with_its_name(template: str, problem: str) -> None:
    for door, order in ((by_code, ORDER), (by_row, {"customer": "ada"})):
        with pytest.raises(InvalidArguments, match=problem) as caught:
            door(template, order, 2)
        assert caught.value.workflow == "ship"
        assert template in caught.value.problem


def test_null_empty_and_overlong_values_name_nothing() -> None:
    def of(template: str, **kwargs: Any) -> str:
        return fill("maybe", "limit_key", template, MAYBE.schema(), MAYBE.pack((), kwargs))

    for kwargs in ({}, {"repo": None}):
        with pytest.raises(InvalidArguments, match=r"limit_key '\{repo\}' needs repo, which is null"):
            of("{repo}", **kwargs)
    with pytest.raises(InvalidArguments, match="needs order, which is null"):
        of("{order.customer}")
    for repo in ("", " x", "x" * 201, "a\nb", "*", "a:*"):
        with pytest.raises(InvalidArguments, match="cannot be made of repo"):
            of("{repo}", repo=repo)
    assert of("{order.region}", order=Order("ada")) == "north"
    assert (
        fill("maybe", "target", "{order.region}", MAYBE.schema(), '{"args":[{"customer":"ada"}],"kwargs":{}}')
        == "north"
    )


@pytest.mark.parametrize("text", ["{", "{}", "{0}", "{a[0]}", "{a.b.c}", "{a!r}", "{a:>5}", "{a b}", "", " x", "*"])
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse(text, "target")


def test_a_field_that_no_call_can_have_is_refused_when_the_workflow_is_defined() -> None:
    with pytest.raises(InvalidInput, match="names rope, which is none of its parameters: repo, branch"):
        check("deploy", "target", "{rope}", ["repo", "branch"])
    with pytest.raises(InvalidInput, match="is not text"):
        check("deploy", "target", 5, ["repo"])
    check("deploy", "target", "{repo.name}", ["repo"])
    check("deploy", "target", "{anything}", [], is_open=True)
