"""Outline of settings as JSON Schema, for editors and reference pages."""

from __future__ import annotations

from typing import Any, Final

from bespeak.text.reading.setting import Kind, Setting, declared, meaning_of

Outline = dict[str, Any]

_TYPES: Final[dict[Kind, str]] = {
    "string": "string",
    "path": "string",
    "boolean": "boolean",
    "number": "number",
    "seconds": "number",
    "count": "number",
    "map": "object",
}


def outline_of(of: type) -> Outline:
    """Describe the keys of a settings type."""
    return {"type": "object", "description": meaning_of(of), "properties": properties_of(of)}


def properties_of(of: type) -> dict[str, Outline]:
    """Return the outline of each key."""
    found: dict[str, Outline] = {}
    for _, key, setting in declared(of):
        found[key] = _outline(setting)
        found |= {other: _outline(more) for other, more in setting.also.items()}
    return found


def describe(setting: Setting) -> str:
    """Write the meaning of a setting with its bounds and its default."""
    parts = [setting.meaning]
    if setting.bounds is not None:
        parts.append(f"{setting.bounds[0]:,.10g} to {setting.bounds[1]:,.10g}.")
    if setting.default not in (None, "", ()) and setting.kind not in ("map", "table", "tables"):
        parts.append(f"Default: {written(setting.default)}.")
    return " ".join(parts)


def written(value: Any) -> str:
    """Write a value as TOML does."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _outline(setting: Setting) -> Outline:
    about = describe(setting)
    offered = setting.choices or setting.suggested
    strings = ({"enum": list(offered)} if offered else {}) | ({"format": setting.format} if setting.format else {})
    if setting.kind == "table":
        return outline_of(setting.of) | {"description": about}
    if setting.kind == "tables":
        return {
            "type": "array",
            "description": about,
            "items": outline_of(setting.of) if setting.of else {"type": "object"},
        }
    if setting.kind == "strings":
        return {"type": "array", "description": about, "items": {"type": "string", **strings}}
    if setting.values is not None:
        return {"type": "object", "description": about, "additionalProperties": _outline(setting.values)}
    return {"type": _TYPES[setting.kind], "description": about, **strings}
