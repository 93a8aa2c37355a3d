from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bespeak.contract import handler
from bespeak.contract.handler import Refusal
from bespeak.contract.handler import Refusal as No
from bespeak.runtime.functions.reading import refused_names


def direct() -> None:
    raise Refusal("taken", "It is taken.")


def several(name: str) -> None:
    if name:
        raise No("renamed")
    raise handler.Refusal("qualified")


def inner() -> None:
    def later() -> None:
        raise Refusal("inside")

    later()


def made_at_run_time(name: str) -> None:
    raise Refusal(name)


def harmless() -> str:
    return "Refusal('nothing')"


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


def names(function: Callable[..., Any]) -> set[str]:
    return {name for name, _ in refused_names(function)}


def test_a_name_is_found_with_its_line() -> None:
    assert list(refused_names(direct)) == [("taken", direct.__code__.co_firstlineno + 1)]


def test_a_name_is_found_however_the_class_is_called() -> None:
    assert names(several) == {"renamed", "qualified"}
    assert names(inner) == {"inside"}
    assert names(logged(direct)) == {"taken"}


def test_computed_names_are_left_to_the_dispatcher() -> None:
    assert names(made_at_run_time) == set()
    assert names(harmless) == set()
    assert names(len) == set()
    space: dict[str, Any] = {"Refusal": Refusal}
    exec("def handler():\n    raise Refusal('no source')", space)
    assert names(space["handler"]) == set()
