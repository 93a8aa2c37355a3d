"""Types with their own schema: pydantic models, where pydantic is installed. Nothing here imports it."""

from __future__ import annotations

import functools
from typing import Any, Final, Literal, Protocol, TypeGuard

NO_SCHEMA: Final = "has no JSON Schema; use a dataclass, Struct, TypedDict or pydantic model"
"""Message for any other class."""

Side = Literal["validation", "serialization"]
"""Direction of a schema, input or output; pydantic models may have two."""


class SelfDescribing(Protocol):
    """The three methods used of a pydantic model."""

    @classmethod
    def model_json_schema(cls, *, ref_template: str, mode: Side, schema_generator: type) -> dict[str, Any]: ...

    @classmethod
    def model_validate(cls, obj: Any) -> Any: ...

    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, Any]: ...


def describes_itself(kind: object) -> TypeGuard[type[SelfDescribing]]:
    """Return True if a type is a pydantic model or has the same methods."""
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def describe_foreign(kind: type[SelfDescribing], side: Side, ref_template: str) -> dict[str, Any]:
    """Return the schema of a self-describing type."""
    return kind.model_json_schema(ref_template=ref_template, mode=side, schema_generator=_schema_generator())


@functools.cache
def _schema_generator() -> type:
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - installed if there is such a type

    class Schemas(GenerateJsonSchema):
        """The schemas of pydantic, except that a datetime without offset is not called a `date-time` (RFC 3339)."""

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            return {"type": "string"} if schema.get("tz_constraint") == "naive" else super().datetime_schema(schema)

    return Schemas


def validate_foreign(kind: type, value: Any) -> Any:
    """Validate JSON data into a self-describing type: the `dec_hook` of msgspec."""
    if describes_itself(kind):
        return kind.model_validate(value)
    raise NotImplementedError(f"{kind.__name__} cannot be read from JSON")


def dump_foreign(value: Any) -> dict[str, Any]:
    """Dump a value of a self-describing type as JSON data: the `enc_hook` of msgspec.

    Its fields have the names that the schema publishes.
    """
    if describes_itself(type(value)):
        dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True)
        return dumped
    raise TypeError(f"a handler returned {type(value).__name__}, which is not a JSON value")
