"""Declarations of settings: fields of an ordinary dataclass."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bespeak.text.reading.settings import declared, optional_table, setting, table, tables


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


def test_key_may_differ_from_the_field() -> None:
    assert [key for _, key, _ in declared(Outer)][:2] == ["flag", "how-many"]


def test_settings_have_their_defaults() -> None:
    assert (Outer().flag, Outer().count, Outer().inner, Outer().absent) == (True, 3, (), None)
    assert Outer().limits is not Outer().limits


def test_required_setting_must_be_given() -> None:
    with pytest.raises(TypeError):
        Inner()


def test_first_line_of_the_docstring_is_the_meaning_of_a_table() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Root:
        outer: Outer = table(Outer)

    [(_, _, found)] = declared(Root)
    assert found.meaning == "The outer table."
    assert Root().outer == Outer()
