"""Findings as text: readable in a pipe, and harmless in a terminal."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix
from bespeak.text.diagnostics.reporters.text import from_disk, full
from bespeak.text.source.tree import Location

WRONG = Diagnostic("D104", "error", "`a` is an integer", Location("x.toml", 2, 5), "/a", "Write a string.")


def test_full_text_shows_line_caret_and_advice_and_no_frame_without_the_line() -> None:
    assert full([WRONG], lambda _: "first\nsec ond\nthird") == (
        "x.toml:2:5: error[D104] `a` is an integer\n  2 | sec ond\n    |     ^\n  help: Write a string."
    )
    assert full([WRONG], lambda _: None) == "x.toml:2:5: error[D104] `a` is an integer\n  help: Write a string."
    assert "|" not in full([WRONG], lambda _: "one line")


def test_a_long_line_is_cut_around_the_caret() -> None:
    finding = Diagnostic("D104", "error", "wrong", Location("x", 1, 5000))
    line = "a" * 4999 + "Z" + "b" * 5000
    _, shown, caret = full([finding], lambda _: line).split("\n")
    assert len(shown) < 120
    assert shown[caret.index("^")] == "Z"


def test_file_is_read_once_if_no_source_is_given(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("k = 1\n")
    findings = [Diagnostic("D104", "error", "wrong", Location(str(file), 1, 1))] * 2
    asked: list[str] = []
    assert full(findings, lambda name: asked.append(name) or from_disk(name)) == full(findings)
    assert asked == [str(file)]
    assert full(findings).count("k = 1") == 2


def test_a_folder_or_a_missing_file_has_no_text(tmp_path: Path) -> None:
    assert from_disk(str(tmp_path)) is None
    assert from_disk(str(tmp_path / "none")) is None
    assert from_disk("a\0b") is None


def test_carets_underline_the_value_in_its_first_line_and_below_its_place() -> None:
    finding = Diagnostic("P301", "error", "wrong", Location("x", 1, 7, 1, 13))
    assert full([finding], lambda _: "path: /room/ # x").split("\n")[2] == "    |       ^^^^^^"
    finding = Diagnostic("P301", "error", "wrong", Location("x", 1, 1, 3, 4))
    assert full([finding], lambda _: "semantic:  \n  a: 1\n").split("\n")[1:] == ["  1 | semantic:", "    | ^^^^^^^^^"]
    finding = Diagnostic("P301", "error", "wrong", Location("x", 1, 3, 1, 3))
    assert full([finding], lambda _: "abc").endswith("    |   ^")
    finding = Diagnostic("D104", "error", "wrong", Location("x", 1, 3))
    _, shown, caret = full([finding], lambda _: "\t\tZ").split("\n")
    assert shown[caret.index("^")] == "Z"


def test_fix_and_link_are_shown_and_a_fix_equal_to_the_advice_once() -> None:
    wrong = Diagnostic("P301", "error", "wrong", fix=Fix("Write /room", ()))
    assert full([wrong], see="explain {}".format) == "error[P301] wrong\n  fix: Write /room\n  see: explain P301"
    guess = Diagnostic("P301", "error", "wrong", fix=Fix("Write BOOK", (), safe=False))
    assert "  unsafe fix: Write BOOK" in full([guess])
    wrong = Diagnostic("P301", "error", "wrong", help="Write /room.", fix=Fix("Write /room", ()))
    assert full([wrong]) == "error[P301] wrong\n  help: Write /room. [fix]"
    guess = Diagnostic("P301", "error", "wrong", help="Write BOOK.", fix=Fix("Write BOOK", (), safe=False))
    assert full([guess]) == "error[P301] wrong\n  help: Write BOOK. [unsafe fix]"


def test_styles_are_chosen_by_role() -> None:
    shown = full([WRONG], lambda _: "first\nsec ond", style=lambda text, role: f"<{role} {text}>")
    assert shown == (
        "<place x.toml:2:5>: <error error[D104]> `a` is an integer\n"
        "  <frame 2> <frame |> sec ond\n    <frame |>     <error ^>\n  <label help:> Write a string."
    )


@given(st.text(), st.text(), st.integers(0, 5), st.integers(0, 300))
def test_nothing_in_a_file_reaches_the_terminal_as_a_control_character(
    text: str, message: str, line: int, column: int
) -> None:
    finding = Diagnostic("D104", "error", message, Location("x\x1b[0m", line, column), help=message)
    shown = full([finding], lambda _: text)
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_only_the_shown_part_of_a_long_line_is_processed() -> None:
    line = "\t" * 1_000_000
    found = [Diagnostic("D104", "error", "wrong", Location("x", 1, column)) for column in range(1, 20_000)]
    assert full(found, lambda _: line + "Z").count("\n\n") == 19_998


@given(st.text(max_size=300), st.text(max_size=300), st.integers(20, 120))
def test_a_width_wraps_the_sentences_and_keeps_every_word(message: str, advice: str, width: int) -> None:
    finding = Diagnostic("P301", "error", message, Location("rooms.agis"), help=advice)
    assert full([finding], width=width).split() == full([finding]).split()
    most = max(width, len("rooms.agis: error[P301]"), 8 + max(map(len, full([finding]).split())))
    assert all(len(line) <= most for line in full([finding], width=width).splitlines())
