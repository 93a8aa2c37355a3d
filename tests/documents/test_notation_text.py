"""Texts in any notation."""

from __future__ import annotations

from tests.cases import rows

from bespeak.documents.yaml_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic


@rows(
    "file, text, notation",
    ("a.agis", "a: 1\n", "yaml"),
    ("a.agis", '{"a": 1}', "json"),
    ("a.agis", "FIND /a { output { b } }\n", "braces"),
    ("a.agis", "a: |\n  FIND /a {\n    output { b }\n  }\n", "yaml"),
    ("a.toml", "a = 1\n", "toml"),
)
def test_notation_is_detected(file: str, text: str, notation: str) -> None:
    tree = parse_notation(text, file)
    assert not isinstance(tree, Diagnostic)
    assert tree.notation == notation


@rows(
    "file, text, name",
    ("a.agis", "a: [", "YAML"),
    ("a.agis", '{"a": tru}', "JSON"),
    ("a.toml", "a =", "TOML"),
    ("a.agis", "FIND /a {", "AGIS's"),
)
def test_a_fault_says_which_notation_was_expected(file: str, text: str, name: str) -> None:
    fault = parse_notation(text, file)
    assert isinstance(fault, Diagnostic)
    assert fault.message.startswith(f"this is not {name}")
    assert fault.location.line


def test_python_is_not_a_document() -> None:
    fault = parse_notation("from bespeak import App\n", "rooms.py")
    assert isinstance(fault, Diagnostic)
    assert (fault.rule, fault.message) == ("D114", "this is Python, not a document")
