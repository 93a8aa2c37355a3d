"""A table of cases run as one test is as strict as its cases one by one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tables import as_loop


def run(test: object) -> None:
    loop = as_loop(test)
    assert loop is not None
    loop()


def test_every_case_of_every_table_is_run() -> None:
    seen = []

    @pytest.mark.parametrize("letter", "ab")
    @pytest.mark.parametrize(("number", "text"), [(1, "x"), (2, "y")])
    def table(letter: str, number: int, text: str) -> None:
        seen.append(f"{letter}{number}{text}")

    run(table)
    assert sorted(seen) == ["a1x", "a2y", "b1x", "b2y"]


def test_every_failure_is_reported_with_the_values_of_its_case() -> None:
    @pytest.mark.parametrize("number", range(4))
    def table(number: int) -> None:
        assert number % 2, "an even number"

    with pytest.raises(pytest.fail.Exception) as failed:
        run(table)
    assert "2 of 4 cases fail" in str(failed.value)
    assert "number=0: AssertionError: an even number" in str(failed.value)
    assert "number=2: AssertionError: an even number" in str(failed.value)


def test_a_failure_has_the_id_of_its_case() -> None:
    @pytest.mark.parametrize("text", ["x" * 100, "y"], ids=["long", "short"])
    def table(text: str) -> None:
        assert len(text) < 10

    with pytest.raises(pytest.fail.Exception, match="long: AssertionError"):
        run(table)


def test_a_missing_error_is_a_failure_too() -> None:
    @pytest.mark.parametrize("number", [1])
    def table(number: int) -> None:
        with pytest.raises(ValueError):
            int(number)

    with pytest.raises(pytest.fail.Exception, match="1 of 1 cases fail"):
        run(table)


def test_marks_of_the_test_stay() -> None:
    requirement = pytest.mark.requirement

    @requirement("X-1-1")
    @pytest.mark.parametrize("number", [1])
    def table(number: int) -> None: ...

    loop: Any = as_loop(table)
    assert [(mark.name, mark.args) for mark in loop.pytestmark] == [("requirement", ("X-1-1",))]


def with_fixture(number: int, tmp_path: object) -> None: ...


def plain(number: int) -> None: ...


async def waiting(number: int) -> None: ...


NUMBERS = pytest.mark.parametrize("number", [1, 2])


@pytest.mark.parametrize(
    "test",
    [
        plain,
        NUMBERS(with_fixture),
        NUMBERS(waiting),
        pytest.mark.process(pytest.mark.parametrize("number", [1])(lambda number: None)),
        pytest.mark.parametrize("number", [pytest.param(1, id="one")])(lambda number: None),
        pytest.mark.parametrize("number", [])(lambda number: None),
        pytest.mark.parametrize("number", iter([1]))(lambda number: None),
        pytest.mark.parametrize("number", [1], indirect=True)(lambda number: None),
    ],
)
def test_more_than_values_decide_on_such_a_test(test: object) -> None:
    assert as_loop(test) is None
