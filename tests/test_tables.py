"""The tools of the tests themselves: tables, cases and growth."""

from __future__ import annotations

import logging
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cases import check_each, rows
from tests.growth import assert_linear, count_lines
from tests.stateful import Case, once_each
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


@rows(
    "test",
    plain,
    NUMBERS(with_fixture),
    NUMBERS(waiting),
    pytest.mark.process(pytest.mark.parametrize("number", [1])(lambda number: None)),
    pytest.mark.parametrize("number", [pytest.param(1, id="one")])(lambda number: None),
    pytest.mark.parametrize("number", [])(lambda number: None),
    pytest.mark.parametrize("number", iter([1]))(lambda number: None),
    pytest.mark.parametrize("number", [1], indirect=True)(lambda number: None),
)
def test_more_than_values_decide_on_such_a_test(test: object) -> None:
    assert as_loop(test) is None


def check(number: int) -> None:
    assert 12 / number == 4, "not a quarter"


def test_every_failing_case_is_named_with_its_reason() -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        check_each([3, 4, 0], check, name=lambda number: f"case {number}")
    first, *others = str(failed.value).splitlines()
    assert first == "2 of 3 cases fail:"
    assert "case 4: AssertionError: not a quarter" in others
    assert "case 0: ZeroDivisionError: division by zero" in others
    assert not any(line.startswith("case 3") for line in others)


def test_cases_that_hold_pass() -> None:
    check_each([3, 3], check)


def test_an_empty_table_fails() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        check_each([], check)


def linear(size: int) -> int:
    return sum(number for number in range(size))


def quadratic(size: int) -> int:
    return sum(inner for outer in range(size) for inner in range(outer))


def test_linear_work_passes() -> None:
    assert_linear(linear, 100)


def test_quadratic_work_fails_with_its_counts() -> None:
    with pytest.raises(AssertionError, match="lines for a size of 100, but"):
        assert_linear(quadratic, 100)


def test_every_turn_of_a_loop_counts() -> None:
    assert count_lines(lambda: linear(1000)) - count_lines(lambda: linear(500)) >= 500


FUZZ = Path(__file__).parents[1] / "tools" / "fuzz"
SHARED = {"campaign.py", "source_tree.py"}


@pytest.mark.parametrize("target", sorted({path.name for path in FUZZ.glob("*.py")} - SHARED))
def test_the_invariant_holds_on_random_input(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FUZZ)
    monkeypatch.setattr(sys, "argv", [target, "--seconds", "0.5", "--seed", "1"])
    try:
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(FUZZ / target), run_name="__main__")
    finally:
        logging.disable(logging.NOTSET)  # a target may have silenced the log
    told = capsys.readouterr().out
    assert end.value.code == 0, told
    assert "the invariant holds" in told


def test_a_case_runs_with_or_without_records_and_a_single_one_both_ways() -> None:
    def cases(test: str, *stores: str | None) -> list[Case]:
        return [
            Case(test, frozenset({("row", number)}), is_audited, store)
            for number, store in enumerate(stores)
            for is_audited in (False, True)
        ]

    assert once_each(cases("single", None), both=False) == {Case("single", frozenset({("row", 0)}), True, None)}
    kept = once_each([*cases("single", None), *cases("rows", None, None), *cases("stores", "sqlite", "postgres")])
    assert {(case.test, case.store or dict(case.others)["row"], case.is_audited) for case in kept} == {
        ("single", 0, False),
        ("single", 0, True),
        ("rows", 0, False),
        ("rows", 1, True),
        ("stores", "sqlite", False),
        ("stores", "postgres", True),
    }
