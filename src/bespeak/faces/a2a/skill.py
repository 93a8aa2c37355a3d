"""Endpoints as skills, by the ids that the agent card has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.capability_id import capability_ids
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_index import EndpointIndex
from bespeak.contract.schema.closing import closed
from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.tool_description import describe_tool
from bespeak.contract.tool_error import check_arguments
from bespeak.faces.a2a.exact_numbers import restore_integers, restore_large
from bespeak.protocol.exchange.outcome import Outcome

_SUGGESTED: Final = 5
_LONGEST_SCHEMA: Final = 16 * 1024
"""Bytes of a schema that an answer repeats; the published documents have all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Skill:
    """One endpoint that a message can call."""

    name: str
    endpoint: Endpoint
    description: str
    input: Validator | None
    """Validator of the arguments, which refuses undeclared ones; None if the schema is not usable."""

    def check(self, arguments: dict[str, Any]) -> Outcome | dict[str, Any]:
        """Return the arguments with exact numbers, or the refusal of arguments that break the contract."""
        declared = self.endpoint.input_schema.get("properties", {})
        # A2A loses the order of members, and people read them in the order of the contract.
        ordered = {name: arguments[name] for name in (*declared, *arguments) if name in arguments}
        restored: dict[str, Any] = restore_integers(ordered)
        refusal = check_arguments(self.endpoint, self.input, restored)
        if refusal is not None and self.input is not None and "violations" in refusal.error:
            restore_large(restored, self.input)
            refusal = check_arguments(self.endpoint, self.input, restored)
        return restored if refusal is None else refusal

    @property
    def entry(self) -> dict[str, Any]:
        """Description for a client that does not know how to call it."""
        entry: dict[str, Any] = {"id": self.name, "description": self.description}
        if len(msgspec.json.encode(self.endpoint.input_schema)) <= _LONGEST_SCHEMA:
            entry["inputSchema"] = dict(self.endpoint.input_schema)
        if self.endpoint.required_scopes:
            entry["scopes"] = list(self.endpoint.required_scopes)
        return entry


class Skills(dict[str, Skill]):
    """The skills of one route table, by id. Internal endpoints have none."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
        ids = capability_ids(listed)
        super().__init__({ids[endpoint.key]: _make_skill(endpoint, ids) for endpoint in listed})

    @cached_property
    def _index(self) -> EndpointIndex:
        return EndpointIndex([skill.endpoint for skill in self.values()], list(self))

    def suggest(self, text: str) -> list[Skill]:
        """Return the skills that fit a text best; the first ones if none does."""
        skills = list(self.values())
        ranked = [skills[index] for _, index in self._index.rank(text)] or skills
        return ranked[:_SUGGESTED]


def _make_skill(endpoint: Endpoint, ids: dict[tuple[str, str], str]) -> Skill:
    compiled = compile_schema(closed(endpoint.input_schema))
    validator = compiled if isinstance(compiled, Validator) else None
    return Skill(ids[endpoint.key], endpoint, describe_tool(endpoint, ids), validator)
