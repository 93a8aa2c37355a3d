"""Which notation a text is in, by its look."""

from __future__ import annotations

import time

import pytest

from bespeak.text.source.tree import detect_notation


@pytest.mark.parametrize(
    ("text", "notation"),
    [
        ('{"agis": "1.0"}', "json"),
        ("\ufeff\n  [1]", "json"),
        ("", "yaml"),
        ("agis: '1.0'\nendpoints: []\n", "yaml"),
        ("endpoints:\n  - method: BOOK\n    path: /account/{id}\n", "yaml"),
        ("output: { a, b }\n", "yaml"),
        ("input:\n  required: [size (integer, minimum: 1)]\n", "yaml"),
        ("input:\n  required:\n    - size (integer)\n", "yaml"),
        ("   BOOK /room {\n", "braces"),
        ("agis: '1.0'\nendpoints:\n\n  BOOK /room/{id} {\n", "braces"),
        ("vocabulary {\n", "braces"),
        ("input:\n  required:\n    - size  (integer, minimum: 1)\n", "braces"),
        ("output:\n  status   (string)\n", "braces"),
    ],
)
def test_notation_is_detected(text: str, notation: str) -> None:
    assert detect_notation(text) == notation


@pytest.mark.parametrize("part", ["a ", "input:\n", "- a(:", "\n", "A /{", "- a (x:", " "])
def test_only_the_start_of_a_long_text_is_examined(part: str) -> None:
    text = part * 1_000_000
    start = time.process_time()
    detect_notation(text)
    assert time.process_time() - start < 1
