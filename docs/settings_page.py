"""Write docs/reference/settings.md: every key of bespeak.toml, from the declarations that its reader uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bespeak.checks.lint.config import Config
from bespeak.documents.deployment.server_toml import ServerDocument, declared_tables
from bespeak.text.reading.settings import Setting, declared, describe, nested_tables, written

GUIDES = {
    "server": "endpoint-files.md",
    "agents": "agents.md",
    "auth": "authentication.md",
    "audit": "audit.md",
    "store": "state.md",
    "idempotency": "idempotency.md",
    "sessions": "sessions.md",
    "cases": "confirmation.md",
    "negotiation": "negotiation.md",
    "people": "people.md",
    "listen": "operating.md",
    "http": "http.md",
    "limits.rate": "rate-limits.md",
    "vocabulary": "serving-agis.md",
}
"""The guide that shows the settings of a table at work."""

TYPES = {"count": "integer", "strings": "array of strings", "map": "table", "tables": "array of tables"}

Row = tuple[str, str, str]


def settings_tables() -> Iterator[tuple[str, str, list[Row]]]:
    """Yield the heading, the meaning and the rows of each table of the file."""
    yield "Top of the file", "Keys before the first table.", _rows(ServerDocument)
    for name, setting in nested_tables(declared_tables()):
        guide = f" See [the guide](../guides/{GUIDES[name]})." if name in GUIDES else ""
        yield f"[[{name}]]" if setting.kind == "tables" else f"[{name}]", setting.meaning + guide, _rows(setting.of)
    for name, setting in declared_tables():
        if setting.values is not None and setting.values.of is not None:
            guide = f" See [the guide](../guides/{GUIDES[name]})." if name in GUIDES else ""
            yield f"[{name}.NAME]", setting.meaning + guide, _rows(setting.values.of)
    meaning = "What `bespeak lint` looks for; also `[tool.bespeak.lint]` in `pyproject.toml`."
    yield "[lint]", f"{meaning} See [the reference](lint.md#settings).", _rows(Config)


def _rows(of: Any) -> list[Row]:
    found = []
    for _, key, setting in declared(of):
        found += [_row(key, setting)] if setting.of is None else []
        found += [_row(other, more) for other, more in setting.also.items()]
    return found


def _row(key: str, setting: Setting) -> Row:
    parts = [describe(setting)]
    if setting.choices:
        options = ", ".join(f"`{written(choice)}`" for choice in setting.choices)
        parts.append(f"{'Any' if setting.kind == 'strings' else 'One'} of {options}.")
    if setting.security:
        parts.append("[Security](../../SECURITY.md).")
    return f"`{key}`", TYPES.get(setting.kind, setting.kind), " ".join(parts)
