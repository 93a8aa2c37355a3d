"""Places of declarations in Python source."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.python_tree import PythonSource, PythonTree

SOURCE = '''\
@other
@app.endpoint("BOOK", "/room", impact="irreversible",
              scopes=["é:b"], errors={"taken": "x"})
async def book(größe: str, nights: int = 1) -> Room:
    r"""Book a room
    for a guest.

    Outcome: A reservation
        exists.

    Errors:
        taken: The room is taken.
    """


def plain(): pass
'''


def shown(line: int, method: str, path: str) -> dict[str, str]:
    return {at: SOURCE[span.start : span.end] for at, span in PythonSource(SOURCE).spans(line, method, path).items()}


def test_each_part_of_a_declaration_has_its_place() -> None:
    found = shown(1, "BOOK", "/room")
    assert found[""].startswith('app.endpoint("BOOK"')
    assert {at: text for at, text in found.items() if at != "" and not at.startswith("/semantic")} == {
        "/handler": "book",
        "/method": '"BOOK"',
        "/path": '"/room"',
        "/description": "Book a room\n    for a guest.",
        "/required_scopes": '["é:b"]',
        "/errors": '{"taken": "x"}',
        "/input_schema": "größe: str, nights: int = 1"[:-4],
        "/input_schema/properties/größe": "größe: str",
        "/input_schema/properties/nights": "nights: int",
        "/output_schema": "Room",
    }
    assert found["/semantic/intent"] == "Book a room\n    for a guest."
    assert found["/semantic/outcome"] == "A reservation\n        exists."
    assert found["/semantic/impact"] == '"irreversible"'


def test_declaration_is_at_its_decorator_its_function_or_its_line() -> None:
    assert shown(16, "FIND", "/x")[""] == "plain"
    assert shown(1, "BOOK", "/other")[""] == "book"
    assert shown(8, "BOOK", "/room") == {"": "Outcome: A reservation"}
    spans = {f"/endpoints/0{at}": span for at, span in PythonSource(SOURCE).spans(1, "BOOK", "/room").items()}
    tree = PythonTree(SOURCE, "app.py", {}, spans)
    assert [line for line in range(1, 17) if tree.scope_of(line)] == [2, 3, 4]
    assert tree.scope_of(3) == "/endpoints/0"


@given(st.text(max_size=200), st.integers(1, 300))
def test_any_text_has_places(text: str, line: int) -> None:
    for span in PythonSource(text).spans(line, "BOOK", "/room").values():
        assert 0 <= span.start <= span.end <= len(text) + 1
