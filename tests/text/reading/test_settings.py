"""Reading a table as settings: typed values, and findings for everything else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.settings import read_settings, setting, table
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


def test_written_values_replace_the_defaults() -> None:
    data = {"wait": 5, "mode": "bee", "even": "ab", "modes": ["bee", "bee"], "file": "x", "inner": {"name": "n"}}
    settings, findings = read(data)
    assert findings == []
    assert settings == Whole(wait=5, mode="bee", even="ab", modes=("bee",), file=Path("d/x"), inner=Part(name="n"))


def test_empty_table_has_the_defaults() -> None:
    assert read({}) == (Whole(), [])
    assert read({"modes": [], "file": ""}) == (Whole(), [])


@pytest.mark.parametrize(
    ("data", "message", "advice"),
    [
        ({"wait": 61}, "`wait` must be 1 to 60 seconds; got 61", ""),
        ({"even": "abc"}, "`even` must be a text of even length; got 'abc'", "Add a letter."),
        ({"modes": ["be", "be"]}, "each value of `modes` must be one of a, bee; got 'be'", 'Did you mean "bee"?'),
        ({"inner": {}}, "`name` is missing", "Name it."),
        ({"inner": {"name": "n", "nam": 1}}, "`nam` is not a known key", "Did you mean `name`?"),
        ({"wait": 3, "wate": 3}, "`wate` is not a known key", "Did you mean `wait`?"),
    ],
)
def test_wrong_value_is_reported_and_keeps_its_default(data: dict[str, Any], message: str, advice: str) -> None:
    settings, [finding] = read(data)
    assert (finding.message, finding.help) == (message, advice)
    assert (settings.even, settings.modes) == ("", ("a",))
    assert settings.wait in (3, 30)


def test_earlier_spelling_is_read_and_reported() -> None:
    settings, [finding] = read({"way": "bee"})
    assert (settings.mode, finding.rule) == ("bee", "D107")


def test_keys_that_are_read_elsewhere_are_known() -> None:
    assert read({"other": 1, "inner": {"name": "n", "elsewhere": 1}}, "other")[1] == []


def test_settings_that_constrain_each_other_are_checked() -> None:
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
