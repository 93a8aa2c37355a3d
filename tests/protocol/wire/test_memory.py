"""The cache of parsed texts."""

from __future__ import annotations

import ast
from pathlib import Path

import bespeak
from bespeak.protocol.wire.head import Memory

SOURCE = Path(bespeak.__file__).parent
OF_OUR_OWN = {"_declared", "load_bundled", "load_schema"}
"""Functions with a cache without bound whose arguments are types or bundled names, never what callers send."""


def test_a_text_is_read_once() -> None:
    seen: list[bytes] = []
    memory = Memory(lambda text: seen.append(text) or text.upper(), most=4, longest=9)
    assert [memory[b"a"], memory[b"a"], memory[b"b"]] == [b"A", b"A", b"B"]
    assert seen == [b"a", b"b"]


def test_it_never_holds_more_than_it_may() -> None:
    memory = Memory(len, most=4, longest=9)
    for number in range(1000):
        assert memory[str(number).encode()] == len(str(number))
        assert len(memory) <= 4


def test_a_long_text_is_not_kept() -> None:
    memory = Memory(len, most=4, longest=9)
    assert memory[b"x" * (9 + 1)] == 9 + 1
    assert len(memory) == 0
    assert memory[b"x" * 9] == 9
    assert len(memory) == 1


def test_no_cache_of_arguments_is_without_bound() -> None:
    unbounded = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(each) in ("cache", "functools.cache", "lru_cache(None)", "lru_cache(maxsize=None)")
                for each in node.decorator_list
            ):
                unbounded |= {node.name} if node.args.args else set()
    assert unbounded == OF_OUR_OWN
