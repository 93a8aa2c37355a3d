"""Reading a table as settings: typed values, and findings for everything else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.settings import (
    VERB,
    Setting,
    declared,
    optional_table,
    outline_of,
    read_settings,
    setting,
    table,
    tables,
    written,
)
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Location


def _parse_even(text: str) -> str | None:
    return text if len(text) % 2 == 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part."""

    name: str = setting("", "Its name.", required=True, advice="Name it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The whole."""

    wait: float = setting(30, "Seconds.", kind="seconds", bounds=(1, 60))
    mode: str = setting("a", "A mode.", choices=("a", "bee"), old="way")
    even: str = setting("", "A text.", parse=_parse_even, form="a text of even length", advice="Add a letter.")
    modes: tuple[str, ...] = setting(("a",), "Modes.", choices=("a", "bee"))
    file: Path | None = setting(None, "A file.", kind="path")
    part: Part = field(default_factory=lambda: Part(name="none"))
    inner: Part | None = setting(None, "A part.", kind="table", of=Part, known=("elsewhere",))

    def checked(self, block: Table) -> Whole:
        """Refuse an upper bound."""
        return replace(self, wait=2.0) if block.has("half") else self


def read(data: dict[str, Any], *known: str) -> tuple[Whole, list[Diagnostic]]:
    findings = Findings(lambda _: Location("f"))
    return read_settings(Whole, Table(data, "", findings), Path("d").joinpath, known), findings.found


def test_written_values_replace_the_defaults_of_an_empty_table() -> None:
    data = {"wait": 5, "mode": "bee", "even": "ab", "modes": ["bee", "bee"], "file": "x", "inner": {"name": "n"}}
    settings, findings = read(data)
    assert findings == []
    assert settings == Whole(wait=5, mode="bee", even="ab", modes=("bee",), file=Path("d/x"), inner=Part(name="n"))
    assert read({}) == (Whole(), [])
    assert read({"modes": [], "file": ""}) == (Whole(), [])


@rows(
    "data, message, advice",
    ({"wait": 61}, "`wait` must be 1 to 60 seconds; got 61", ""),
    ({"even": "abc"}, "`even` must be a text of even length; got 'abc'", "Add a letter."),
    ({"modes": ["be", "be"]}, "each value of `modes` must be one of a, bee; got 'be'", 'Did you mean "bee"?'),
    ({"inner": {}}, "`name` is missing", "Name it."),
    ({"inner": {"name": "n", "nam": 1}}, "`nam` is not a known key", "Did you mean `name`?"),
    ({"wait": 3, "wate": 3}, "`wate` is not a known key", "Did you mean `wait`?"),
)
def test_wrong_value_is_reported_and_keeps_its_default(data: dict[str, Any], message: str, advice: str) -> None:
    settings, [finding] = read(data)
    assert (finding.message, finding.help) == (message, advice)
    assert (settings.even, settings.modes) == ("", ("a",))
    assert settings.wait in (3, 30)


def test_earlier_spellings_known_keys_and_constraints_between_settings_are_judged() -> None:
    settings, [finding] = read({"way": "bee"})
    assert (settings.mode, finding.rule) == ("bee", "D107")
    assert read({"other": 1, "inner": {"name": "n", "elsewhere": 1}}, "other")[1] == []
    settings, findings = read({"half": True})
    assert (settings.wait, findings) == (2.0, [])


def test_table_of_another_type_is_reported() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Root:
        """The root."""

        whole: Whole = table(Whole)

    findings = Findings(lambda _: Location("f"))
    assert read_settings(Root, Table({"whole": 1}, "", findings)) == Root()
    assert [finding.rule for finding in findings.found] == ["D104"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """The inner table.

    More about it.
    """

    name: str = setting("", "Its name.", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """The outer table."""

    flag: bool = setting(True, "A flag.", security=True)
    count: int = setting(3, "A count.", key="how-many")
    share: float = setting(0.5, "A share.")
    names: tuple[str, ...] = setting((), "Names.")
    limits: dict[str, str] = setting({}, "Limits.", kind="map")
    inner: tuple[Inner, ...] = tables(Inner)
    absent: Inner | None = optional_table(Inner)
    plain: int = 1


def test_kind_follows_from_the_default() -> None:
    kinds = {name: found.kind for name, _, found in declared(Outer)}
    assert kinds == {
        "flag": "boolean",
        "count": "count",
        "share": "number",
        "names": "strings",
        "limits": "map",
        "inner": "tables",
        "absent": "table",
    }


def test_key_may_differ_from_its_field_and_only_a_required_setting_has_no_default() -> None:
    assert [key for _, key, _ in declared(Outer)][:2] == ["flag", "how-many"]
    assert (Outer().flag, Outer().count, Outer().inner, Outer().absent) == (True, 3, (), None)
    assert Outer().limits is not Outer().limits
    with pytest.raises(TypeError):
        Inner()


def test_first_line_of_the_docstring_is_the_meaning_of_a_table() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Root:
        outer: Outer = table(Outer)

    [(_, _, found)] = declared(Root)
    assert found.meaning == "The outer table."
    assert Root().outer == Outer()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlinePart:
    """A part."""

    verb: str = setting("", "A verb.", format=VERB)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineWhole:
    """The whole."""

    wait: float = setting(1800, "How long.", kind="seconds", bounds=(1, 3600))
    mode: str | None = setting(None, "A mode.", choices=("a", "b"), also={"way": Setting(meaning="The old mode.")})
    names: tuple[str, ...] = setting(("x",), "Names.", choices=("x", "y"))
    part: OutlinePart = table(OutlinePart)
    parts: tuple[OutlinePart, ...] = tables(OutlinePart)


def test_outline_has_types_meanings_and_choices() -> None:
    part = {"verb": {"type": "string", "description": "A verb.", "format": "verb"}}
    assert outline_of(OutlineWhole) == {
        "type": "object",
        "description": "The whole.",
        "properties": {
            "wait": {"type": "number", "description": "How long. 1 to 3,600. Default: 1800."},
            "mode": {"type": "string", "description": "A mode.", "enum": ["a", "b"]},
            "way": {"type": "string", "description": "The old mode."},
            "names": {
                "type": "array",
                "description": 'Names. Default: ["x"].',
                "items": {"type": "string", "enum": ["x", "y"]},
            },
            "part": {"type": "object", "description": "A part.", "properties": part},
            "parts": {
                "type": "array",
                "description": "A part.",
                "items": {"type": "object", "description": "A part.", "properties": part},
            },
        },
    }


def test_values_are_written_as_toml() -> None:
    assert [written(value) for value in (True, 1, 0.5, "a", ("a", "b"))] == ["true", "1", "0.5", '"a"', '["a", "b"]']
