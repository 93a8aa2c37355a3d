"""Expressions are evaluated in processes with limits; whatever they do, the next one works."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows

from bespeak.runtime.expressions.pool import LONGEST, ExpressionFault, Expressions

pytestmark = [pytest.mark.anyio, pytest.mark.process]

DOUBLING = "['0123456789']" + ".map(v, v + v)" * 25
MAPS = "x.map(a, x.map(b, x.map(c, x.map(d, 1))))"


@pytest.fixture
def expressions() -> Iterator[Expressions]:
    made = Expressions(deadline=60.0)  # on a busy machine, memory runs out after the second of a server
    yield made
    made.close()


def processes(expressions: Expressions) -> list[int]:
    return [one.process.pid for one in expressions._idle]


async def code_of(expressions: Expressions, text: str, variables: dict[str, Any]) -> str | None:
    found = await expressions.evaluate(text, variables)
    return found.code if isinstance(found, ExpressionFault) else None


async def test_values_come_from_variables_and_only_known_names_are_accepted(expressions: Expressions) -> None:
    variables = {"steps.search": {"items": [{"price": 1.5}]}, "steps.other": object}
    assert await expressions.evaluate("steps.search.items[0].price * 2.0", variables) == 3.0
    assert await expressions.evaluate("steps.search == null", {"steps.search": None}) is True
    assert await expressions.check("steps.search.items[0] > 1", ["steps.search"]) is None
    fault = await expressions.check("steps.later.x", ["steps.search"])
    assert fault is not None
    assert "undeclared reference to 'steps.later" in fault


@rows(
    "text, variables, code",
    ("(" * 3000 + "1" + ")" * 900, {}, "invalid-expression"),
    ("[" * 1000 + "]" * 1000, {}, "invalid-expression"),
    ("1" * (LONGEST + 1), {}, "invalid-expression"),
    ("+".join("1" * 1900), {}, "invalid-expression"),
    (MAPS, {"x": list(range(100))}, "expression-failed"),
    ("x.matches('(a{1000}){1000}')", {"x": "a"}, "expression-failed"),
    ("('a' + x).matches('^(a+)+$')", {"x": "a" * 1000 + "!"}, None),
    ("x.__class__", {"x": 1}, "expression-failed"),
    ("9223372036854775807 + x", {"x": 1}, "expression-failed"),
    ("x", {"x": 2**70}, "expression-failed"),
    ("x", {"x": "a" * (9 * 1024 * 1024)}, "expression-failed"),
    (DOUBLING, {}, "expression-memory"),
)
async def test_hostile_expressions_end_with_a_code(
    expressions: Expressions, text: str, variables: dict[str, Any], code: str | None
) -> None:
    assert await code_of(expressions, text, variables) == code
    assert await expressions.evaluate("1 + 1", {}) == 2


async def test_an_expression_that_takes_too_long_is_killed() -> None:
    expressions = Expressions(deadline=0.001)
    try:
        assert await code_of(expressions, MAPS, {"x": list(range(100))}) == "expression-timeout"
        assert processes(expressions) == []
    finally:
        expressions.close()


async def test_nothing_starts_before_the_first_expression_and_processes_are_reused(expressions: Expressions) -> None:
    assert processes(expressions) == []
    await expressions.evaluate("1", {})
    first = processes(expressions)
    await expressions.evaluate("2", {})
    assert processes(expressions) == first
    assert len(first) == 1


async def test_the_next_expression_works_after_the_process_was_killed(expressions: Expressions) -> None:
    await expressions.evaluate("1", {})
    (process,) = processes(expressions)
    os.kill(process, signal.SIGKILL)
    assert await expressions.evaluate("1 + 1", {}) == 2
    assert process not in processes(expressions)


async def test_more_expressions_than_may_wait_are_refused() -> None:
    expressions = Expressions(most_waiting=2)
    try:
        found = await asyncio.gather(*(expressions.evaluate("1", {}) for _ in range(5)))
        assert found.count(1) == 4  # two of them did not wait
        assert {one.code for one in found if isinstance(one, ExpressionFault)} == {"expressions-busy"}
    finally:
        expressions.close()


async def test_a_cancelled_evaluation_leaves_nothing_behind(expressions: Expressions) -> None:
    task = asyncio.ensure_future(expressions.evaluate(DOUBLING, {}))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert processes(expressions) == []
    assert await expressions.evaluate("1 + 1", {}) == 2


async def test_a_server_without_the_library_says_so(expressions: Expressions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert await code_of(expressions, "1", {}) == "expressions-unavailable"
    assert "bespeak[expressions]" in (await expressions.check("1", ()) or "")


async def test_the_process_ends_when_the_server_dies() -> None:
    program = """
import asyncio, os, signal, sys
from bespeak.runtime.expressions.pool import Expressions
async def main():
    expressions = Expressions()
    await expressions.evaluate("1", {})
    print(*(one.process.pid for one in expressions._idle), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    child = int(done.stdout)
    for _ in range(1000):
        if not is_running(child):
            break
        await asyncio.sleep(0.01)
    assert not is_running(child)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
