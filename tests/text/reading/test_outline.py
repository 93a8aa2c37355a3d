"""Settings as an editor sees them."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak.text.reading.settings import VERB, Setting, outline_of, setting, table, tables, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part."""

    verb: str = setting("", "A verb.", format=VERB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The whole."""

    wait: float = setting(1800, "How long.", kind="seconds", bounds=(1, 3600))
    mode: str | None = setting(None, "A mode.", choices=("a", "b"), also={"way": Setting(meaning="The old mode.")})
    names: tuple[str, ...] = setting(("x",), "Names.", choices=("x", "y"))
    part: Part = table(Part)
    parts: tuple[Part, ...] = tables(Part)


def test_outline_has_types_meanings_and_choices() -> None:
    part = {"verb": {"type": "string", "description": "A verb.", "format": "verb"}}
    assert outline_of(Whole) == {
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
