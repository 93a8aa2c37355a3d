"""Types with their own schema: pydantic models, where pydantic is installed. Nothing here imports it."""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol, TypeGuard

NO_SCHEMA: Final = "has no JSON Schema; use a dataclass, Struct, TypedDict or pydantic model"
"""Message for any other class."""

Side = Literal["validation", "serialization"]
"""Direction of a schema, input or output; pydantic models may have two."""


class SelfDescribing(Protocol):
    """The three methods used of a pydantic model."""

    @classmethod
    def model_json_schema(cls, *, ref_template: str, mode: Side) -> dict[str, Any]: ...

    @classmethod
    def model_validate(cls, obj: Any) -> Any: ...

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


def describes_itself(kind: object) -> TypeGuard[type[SelfDescribing]]:
    """Return True if a type is a pydantic model or has the same methods."""
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def validate_foreign(kind: type, value: Any) -> Any:
    """Validate JSON data into a self-describing type: the `dec_hook` of msgspec."""
    if describes_itself(kind):
        return kind.model_validate(value)
    raise NotImplementedError(f"{kind.__name__} cannot be read from JSON")


def dump_foreign(value: Any) -> dict[str, Any]:
    """Dump a value of a self-describing type as JSON data: the `enc_hook` of msgspec."""
    if describes_itself(type(value)):
        dumped: dict[str, Any] = value.model_dump(mode="json")
        return dumped
    raise TypeError(f"a handler returned {type(value).__name__}, which is not a JSON value")
