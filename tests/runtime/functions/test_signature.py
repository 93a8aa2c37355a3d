from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from bespeak.errors import ContractError
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.functions.signature import MISSING, Parameter, _list_parameters, function_name, read_signature

if TYPE_CHECKING:
    from decimal import Decimal


def plain(a: int, b: str = "x", *, c: float) -> None: ...


def with_context(a: int, call: Context, b: int) -> None: ...


def by_name(a: int, ctx) -> None: ...  # type: ignore[no-untyped-def]


def optional_context(a: int, call: Context | None = None) -> None: ...


def text_called_context(context: str) -> None: ...


def unresolved(price: Decimal) -> None: ...


def no_type(a: "1 +") -> None: ...  # type: ignore[valid-type]  # noqa: F722


class Handler:
    def __call__(self, a: int) -> None: ...

    def method(self, a: int) -> None: ...


def test_a_parameter_has_its_annotation_default_and_kind() -> None:
    assert read_signature(plain).parameters == (
        Parameter("a", int, MISSING, False),
        Parameter("b", str, "x", False),
        Parameter("c", float, MISSING, True),
    )


def test_the_context_is_known_by_its_annotation_and_by_its_place() -> None:
    signature = read_signature(with_context)
    assert signature.context is not None
    assert signature.context.name == "call"
    assert signature.context_at == 1
    assert [parameter.name for parameter in signature.parameters] == ["a", "b"]
    assert read_signature(optional_context).context is not None


def test_the_context_is_known_by_its_name_when_there_is_no_annotation() -> None:
    assert read_signature(by_name).context is not None
    assert read_signature(text_called_context).context is None
    assert read_signature(by_name, {"ctx"}).context is None


def test_two_contexts_are_one_too_many() -> None:
    def handler(context: Context, other: Context) -> None: ...

    with pytest.raises(ContractError, match="one is enough"):
        read_signature(handler)


def test_positions_without_names_cannot_be_filled() -> None:
    def handler(*values: int) -> None: ...

    with pytest.raises(ContractError, match=r"\*values"):
        read_signature(handler)


def test_a_type_that_exists_only_for_the_type_checker_is_explained() -> None:
    with pytest.raises(ContractError, match="'Decimal' is not defined"):
        read_signature(unresolved)


def test_an_annotation_that_is_not_a_type_is_explained() -> None:
    with pytest.raises(ContractError, match="not a type"):
        read_signature(no_type)


@pytest.mark.parametrize("function", [Handler(), Handler().method, functools.partial(plain, b="y", c=1.0)])
def test_every_callable_can_be_read(function: Any) -> None:
    assert read_signature(function).parameters[0].annotation is int


def test_a_callable_without_a_name_has_that_of_its_class() -> None:
    assert function_name(Handler()) == "Handler"
    assert function_name(plain) == "plain"


def test_a_function_is_read_once() -> None:
    assert read_signature(plain) is read_signature(plain, {"a"})
    assert read_signature(by_name) is not read_signature(by_name, {"ctx"})


def test_a_callable_object_need_not_be_hashable() -> None:
    @dataclass
    class Handler:
        tries: list[int]

        def __call__(self, room: int) -> None: ...

    assert [parameter.name for parameter in read_signature(Handler([])).parameters] == ["room"]


def everything(a, /, b: int, c=1, *rest, d, e=2, **more) -> None: ...  # type: ignore[no-untyped-def]


def wrapped(a: int, b: int = 1, *, c: str = "x") -> None: ...


@functools.wraps(wrapped)
def wrapper(*arguments: Any, **named: Any) -> None: ...


@pytest.mark.parametrize("function", [everything, plain, wrapper, lambda: None, lambda *a: a, lambda *, a: a])
def test_a_function_is_read_as_inspect_reads_it(function: Callable[..., Any]) -> None:
    raw = inspect.signature(function).parameters.values()
    listed = list(_list_parameters(function))
    assert sorted((name, repr(default)) for name, _, default in listed) == sorted(
        (p.name, repr(p.default)) for p in raw
    )
    for kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        assert [name for name, its, _ in listed if its is kind] == [p.name for p in raw if p.kind is kind]
