"""Texts and numbers as YAML: plain where nothing is in the way, and never more than can be seen."""

from __future__ import annotations

import pytest

from bespeak.text.source.value_text import number_scalar, quoted, text_scalar


@pytest.mark.parametrize(
    ("text", "in_block", "in_list"),
    [
        ("agent", "agent", "agent"),
        ("/room/{id}", "/room/{id}", '"/room/{id}"'),
        ("NONE -> CONFIRMED", "NONE -> CONFIRMED", "NONE -> CONFIRMED"),
        ("a, b", "a, b", '"a, b"'),
        ("booking:room", "booking:room", '"booking:room"'),
        ("agtp://a.example:4480", "agtp://a.example:4480", '"agtp://a.example:4480"'),
        ("yes", '"yes"', '"yes"'),
        ("1.0", '"1.0"', '"1.0"'),
        ("a: b", '"a: b"', '"a: b"'),
        ("C # sharp", '"C # sharp"', '"C # sharp"'),
        ("Grüße", '"Grüße"', '"Grüße"'),
        ("", '""', '""'),
    ],
)
def test_quotes_are_used_if_necessary(text: str, in_block: str, in_list: str) -> None:
    assert (text_scalar(text), text_scalar(text, in_list=True)) == (in_block, in_list)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('say "hi"', r'"say \"hi\""'),
        ("a\\b", r'"a\\b"'),
        ("a\nb\tc", r'"a\nb\tc"'),
        ("\x1b[31m", r'"\x1B[31m"'),
        ("\u202egod", r'"\u202Egod"'),
        ("\U000e0001", r'"\U000E0001"'),
        ("می\u200cخواهم", '"می\u200cخواهم"'),
    ],
)
def test_invisible_characters_are_escaped(text: str, written: str) -> None:
    assert quoted(text) == written


@pytest.mark.requirement("AGIS-10-4")
@pytest.mark.parametrize(
    ("number", "written"),
    [(0, "0"), (-7, "-7"), (0.6, "0.6"), (-0.0, "-0.0"), (1e20, "100000000000000000000.0"), (5e-324, "5.0e-324")],
)
def test_numbers_are_decimal(number: float, written: str) -> None:
    assert number_scalar(number) == written
