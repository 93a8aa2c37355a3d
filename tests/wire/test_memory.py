"""The memory of what was read."""

from __future__ import annotations

from bespeak.wire.memory import LONGEST, Memory


def test_a_text_is_read_once() -> None:
    seen: list[bytes] = []
    memory = Memory(lambda text: seen.append(text) or text.upper(), 4)
    assert [memory[b"a"], memory[b"a"], memory[b"b"]] == [b"A", b"A", b"B"]
    assert seen == [b"a", b"b"]


def test_it_never_holds_more_than_it_may() -> None:
    memory = Memory(len, 4)
    for number in range(1000):
        assert memory[str(number).encode()] == len(str(number))
        assert len(memory) <= 4


def test_a_long_text_is_not_kept() -> None:
    memory = Memory(len, 4)
    assert memory[b"x" * (LONGEST + 1)] == LONGEST + 1
    assert len(memory) == 0
    assert memory[b"x" * LONGEST] == LONGEST
    assert len(memory) == 1
