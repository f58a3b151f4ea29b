"""Our `dataclass` beside the standard library's: the same answers, whatever is asked of a class."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import partial
from typing import Any

import pytest

from unstuck import records

#: Every way in which the tree uses it.
WAYS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True},
]
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way) or "plain")


def pair(way: dict[str, bool], make: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The same class, made by ours and by the standard library's."""
    return make(records.dataclass(**way)), make(dataclasses.dataclass(**way))


def whole(decorate: Any) -> Any:
    @decorate
    class Record:
        """Something of everything."""

        name: str
        number: int = 7
        parts: list[str] = field(default_factory=list)
        secret: str = field(default="s", repr=False)
        noted: str = field(default="", compare=False)
        total: int = field(default=0, init=False)

        @property
        def length(self) -> int:
            return len(self.name)

    return Record


def answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return type(error), str(error)


@each_way
def test_it_answers_as_the_standard_library_does(way: dict[str, bool]) -> None:
    asked: list[Callable[[Any], Any]] = [
        lambda cls: repr(cls(name="a", parts=["b"])),
        lambda cls: asdict(cls(name="a", number=1)),
        lambda cls: [(each.name, each.type, each.default) for each in fields(cls) if each.name != "parts"],
        lambda cls: cls(name="a") == cls(name="a"),
        lambda cls: cls(name="a") == cls(name="a", noted="x"),
        lambda cls: cls(name="a") == cls(name="b"),
        lambda cls: cls(name="a").__eq__("a"),
        lambda cls: cls.__match_args__,
        lambda cls: getattr(cls, "__slots__", None),
        lambda cls: list(inspect.signature(cls).parameters),
        lambda cls: [each.annotation for each in inspect.signature(cls).parameters.values()],
        lambda cls: [each.kind for each in inspect.signature(cls).parameters.values()],
        lambda cls: inspect.signature(cls).parameters["number"].default,
        lambda cls: replace(cls(name="a"), number=3).number,
        lambda cls: asdict(copy.deepcopy(cls(name="a", parts=["x"]))),
        lambda cls: asdict(copy.copy(cls(name="a", parts=["x"]))),
        lambda cls: cls(name="a").length,
        lambda cls: (cls.__doc__, cls.__qualname__, cls.__module__),
        lambda cls: cls(name="a").parts is cls(name="a").parts,
        lambda cls: setattr(cls(name="a"), "name", "b"),
        lambda cls: delattr(cls(name="a"), "name"),
        # With slots, the standard library's says something about super() instead.
        lambda cls: None if way.get("slots") else setattr(cls(name="a"), "other", "b"),
        lambda cls: isinstance(hash(cls(name="a", parts=())), int),
    ]
    ours, standard = pair(way, whole)
    for number, ask in enumerate(asked):
        got, wanted = answer(partial(ask, ours)), answer(partial(ask, standard))
        assert got == wanted, number


@each_way
def test_what_is_missing_or_too_much_is_a_type_error(way: dict[str, bool]) -> None:
    ours, standard = pair(way, whole)
    wrong: list[dict[str, Any]] = [{}, {"name": "a", "nonsense": 1}, {"name": "a", "total": 1}]
    for asked in wrong:
        got, wanted = answer(partial(ours, **asked)), answer(partial(standard, **asked))
        assert got == wanted
        assert got[0] is TypeError


def test_equal_records_have_one_hash_and_what_is_not_compared_has_no_part_in_it() -> None:
    ours, _ = pair({"frozen": True, "slots": True}, whole)
    assert hash(ours("a", parts=())) == hash(ours("a", parts=(), noted="x"))
    assert len({ours("a", parts=()), ours("a", parts=(), noted="x"), ours("b", parts=())}) == 2


def own_methods(decorate: Any) -> Any:
    @decorate
    class Record:
        """With methods of its own where the decorator has some."""

        name: str

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, str)

        def __hash__(self) -> int:
            return 5

    return Record


@each_way
def test_methods_of_the_class_itself_stay(way: dict[str, bool]) -> None:
    ours, standard = pair(way, own_methods)
    for cls in (ours, standard):
        record = cls(name="a")
        assert (repr(record), record == "a", hash(record)) == ("mine", True, 5)


def checked(decorate: Any) -> Any:
    @decorate
    class Base:
        """Checks itself."""

        low: int
        high: int = 9

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low")

    @decorate
    class Wider(Base):
        """With one more."""

        high: int = 99
        step: int = 1

    return Wider


@each_way
def test_a_subclass_has_the_fields_of_its_base_and_is_checked_like_it(way: dict[str, bool]) -> None:
    for cls in pair(way, checked):
        assert asdict(cls(low=50)) == {"low": 50, "high": 99, "step": 1}
        with pytest.raises(ValueError, match="low"):
            cls(low=100)


def test_init_is_compiled_for_the_first_record_and_then_stays() -> None:
    ours, _ = pair({"frozen": True, "slots": True}, whole)
    assert not inspect.isfunction(vars(ours)["__init__"])
    assert ours("a").name == "a"
    assert inspect.isfunction(vars(ours)["__init__"])


@records.dataclass(frozen=True, slots=True)
class Pickled:
    """At the top of a module, where pickle finds it."""

    name: str
    more: Pickled | None = None


def test_a_frozen_record_with_slots_goes_through_pickle() -> None:
    record = Pickled("a", Pickled("b"))
    assert pickle.loads(pickle.dumps(record)) == record


def test_a_record_without_fields_equals_another_of_its_class() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Empty:
        """Nothing."""

    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    with pytest.raises(FrozenInstanceError):
        Empty().name = "a"  # type: ignore[attr-defined]


@records.dataclass(slots=True)
class Ring:
    """That can hold itself."""

    next: Ring | None = None


def test_a_record_that_holds_itself_can_be_shown() -> None:
    ring = Ring()
    ring.next = ring
    assert repr(ring) == "Ring(next=...)"
