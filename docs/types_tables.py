"""Write the tables of docs/reference/types.md from the schemas that the code derives for each type."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import msgspec
from msgspec import Meta
from pydantic import Field

from bespeak.errors import ContractError
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.functions.reading import input_schema, output_schema
from bespeak.runtime.functions.signature import plan_call, read_signature

SHAPES = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[1] / "docs_src" / "types" / "shapes.py"), {}, "shapes")
)

SCALARS: dict[str, tuple[Any, Any]] = {
    "bool": (bool, True),
    "int": (int, 3),
    "float": (float, 2.5),
    "str": (str, "sea view"),
    "Literal['sea', 'garden']": (Literal["sea", "garden"], "sea"),
    "Annotated[int, Meta(ge=1, le=6)]": (Annotated[int, Meta(ge=1, le=6)], 2),
    "Annotated[str, Meta(pattern='^[0-9]{3}$')]": (Annotated[str, Meta(pattern="^[0-9]{3}$")], "102"),
    "Annotated[int, Field(ge=1, le=6)]": (Annotated[int, Field(ge=1, le=6)], 2),
    "UUID": (UUID, "5f3c2a52-6f0e-4c1b-9a44-0d4b1f0c8f11"),
    "date": (date, "2027-05-01"),
    "datetime": (datetime, "2027-05-01T14:00:00Z"),
    "time": (time, "14:00:00"),
    "timedelta": (timedelta, "PT90M"),
    "Decimal": (Decimal, "99.50"),
    "bytes": (bytes, "aGVsbG8="),
    "int | None": (int | None, None),
    "Any": (Any, {"any": "JSON"}),
}
CONTAINERS: dict[str, tuple[Any, Any]] = {
    "list[int]": (list[int], [1, 2]),
    "Sequence[int]": (Sequence[int], [1, 2]),
    "set[str]": (set[str], ["sea"]),
    "tuple[int, str]": (tuple[int, str], [1, "sea"]),
    "tuple[int, ...]": (tuple[int, ...], [1, 2]),
    "dict[str, int]": (dict[str, int], {"beds": 2}),
    "Mapping[str, int]": (Mapping[str, int], {"beds": 2}),
}
CLASSES: dict[str, tuple[Any, Any]] = {
    "Size (Enum)": (SHAPES.Size, "small"),
    "Guest (dataclass)": (SHAPES.Guest, {"name": "Ann"}),
    "Room (msgspec Struct)": (SHAPES.Room, {"room_id": "102", "beds": 2}),
    "Stay (TypedDict)": (SHAPES.Stay, {"arrival": "2027-05-01", "nights": 2}),
    "Place (NamedTuple)": (SHAPES.Place, [1, 2]),
    "Chair (attrs)": (SHAPES.Chair, {"legs": 4}),
    "Family (pydantic model)": (SHAPES.Family, {"members": ["Ann", "Bob"]}),
    "Pet (discriminated union)": (SHAPES.Pet, {"kind": "cat"}),
    "Guest | Chair": (SHAPES.Guest | SHAPES.Chair, {"legs": 4}),
}
REFUSED: dict[str, Any] = {
    "object": object,
    "complex": complex,
    "Path": Path,
}
"""Annotations that cannot be read from any JSON value."""


def input_table(kinds: Mapping[str, tuple[Any, Any]]) -> str:
    """Write annotation, schema, an example of the JSON, and what the handler receives for it."""
    lines = ["| annotation | JSON Schema | JSON | the handler receives |", "| --- | --- | --- | --- |"]
    for name, (kind, value) in kinds.items():
        cells = (name, json.dumps(_schema(kind)), json.dumps(value), _shown(_received(kind, value)))
        lines.append("| " + " | ".join(f"`{cell}`".replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def output_table() -> str:
    """List the annotations that an endpoint may return."""
    kinds = {name: kind for name, (kind, _) in (SCALARS | CONTAINERS | CLASSES).items()} | REFUSED | {"None": None}
    fitting = ", ".join(f"`{name}`" for name, kind in kinds.items() if _can_return(kind))
    return f"An endpoint may return: {fitting}."


def refused_list() -> str:
    """List the annotations that are refused, after trying them."""
    for kind in REFUSED.values():
        try:
            _schema(kind)
        except ContractError:
            continue
        raise AssertionError(f"{kind} is accepted")
    return ", ".join(f"`{name}`" for name in REFUSED)


def _function(kind: Any) -> Any:
    def handler(value: Any) -> Any:
        return value

    handler.__annotations__ = {"value": kind}
    return handler


def _schema(kind: Any) -> Any:
    schema = input_schema(read_signature(_function(kind)), {})
    definition = schema["properties"]["value"]
    return schema["$defs"][definition["$ref"].rpartition("/")[2]] if "$ref" in definition else definition


def _received(kind: Any, value: Any) -> Any:
    function = _function(kind)
    call = plan_call(function, input_schema(read_signature(function), {}))
    return call({"value": value}, cast("Context", msgspec.UNSET))


def _shown(value: Any) -> str:
    return repr(value).replace("datetime.", "").replace("shapes.", "")


def _can_return(kind: Any) -> bool:
    try:
        output_schema(kind)
    except ContractError:
        return False
    return True
