"""The cache of parsed texts."""

from __future__ import annotations

from bespeak.protocol.wire.memory import Memory


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
