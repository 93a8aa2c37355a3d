"""The published JSON Schemas of documents, for editors and other tools."""

from __future__ import annotations

import pkgutil
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec


class DocumentSchema(NamedTuple):
    file: str
    summary: str


SCHEMAS: Final = {
    "agis": DocumentSchema("agis-1.0.json", "An AGIS document (.agis), in YAML or JSON."),
    "ai": DocumentSchema("ai-1.0.json", "A discovery document (/.well-known/ai), as its publisher must write it."),
}


def schema_text(name: str) -> str:
    data = pkgutil.get_data(__name__, SCHEMAS[name].file)
    assert data is not None
    return data.decode()


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Load a schema. All callers share the result and must not change it."""
    schema: dict[str, Any] = msgspec.json.decode(schema_text(name))
    return schema
