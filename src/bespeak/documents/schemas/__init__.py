"""The JSON Schemas of documents, which editors and other tools can use as they are."""

from __future__ import annotations

import pkgutil
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec


class DocumentSchema(NamedTuple):
    """A schema this package has."""

    file: str
    summary: str


SCHEMAS: Final = {
    "agis": DocumentSchema("agis-1.0.json", "An AGIS document (.agis), in YAML or JSON."),
    "ai": DocumentSchema(
        "ai-1.0.json", "A discovery document (/.well-known/ai), as whoever publishes one has to write it."
    ),
}
"""Every schema by the name commands know it by."""


def schema_text(name: str) -> str:
    """The text of a schema as it is published."""
    data = pkgutil.get_data(__name__, SCHEMAS[name].file)
    assert data is not None
    return data.decode()


@cache
def load_schema(name: str) -> dict[str, Any]:
    """A schema as data. Everybody gets the same one, so nobody changes it."""
    schema: dict[str, Any] = msgspec.json.decode(schema_text(name))
    return schema
