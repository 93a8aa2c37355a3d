"""Index of a service: which operations yield what, and which of them deal with what."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.runtime.negotiation.planner.field import Field
from bespeak.runtime.negotiation.planner.operation import Operation, Rows, make_operation
from bespeak.runtime.negotiation.planner.slot import slots_of
from bespeak.runtime.negotiation.planner.vocabulary import Reading, Vocabulary

_FIELDS: Final = 160
_LEVELS: Final = 5
"""Most fields and levels of an output that are looked at."""

Usable = Callable[[Endpoint], bool]


class Index:
    """Everything about the endpoints of a service that does not depend on a proposal. It never changes."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        rough = []
        for endpoint in sorted(endpoints, key=lambda one: one.key):
            takes = slots_of(endpoint.input_schema, most=_FIELDS, levels=_LEVELS)
            yields = slots_of(endpoint.output_schema, most=_FIELDS, levels=_LEVELS)
            rough.append((endpoint, takes, yields))
        self.vocabulary = Vocabulary((endpoint.path, takes, yields) for endpoint, takes, yields in rough)
        self.operations = tuple(
            make_operation(number, endpoint, takes, yields, self.vocabulary)
            for number, (endpoint, takes, yields) in enumerate(rough)
        )
        self._fields: dict[Reading, list[tuple[Operation, Field]]] = {}
        self._rows: dict[str, list[tuple[Operation, Rows]]] = {}
        self._attributes: dict[str, list[Operation]] = {}
        for operation in self.operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        for field in operation.outputs:
            for reading in field.readings:
                role = self.vocabulary.is_role(reading.noun)
                for noun in {reading.noun, role or reading.noun}:
                    self._fields.setdefault(Reading(noun, reading.attribute), []).append((operation, field))
        for attribute in operation.attributes if not operation.impact else ():
            self._attributes.setdefault(attribute, []).append(operation)
        for rows in operation.lists:
            for noun in rows.nouns:
                self._rows.setdefault(noun, []).append((operation, rows))

    def yielding(self, reading: Reading) -> list[tuple[Operation, Field]]:
        """Return the operations that yield an attribute of a noun, each with the field."""
        return self._fields.get(reading, [])

    def listing(self, noun: str) -> list[tuple[Operation, Rows]]:
        """Return the operations whose output has a list of a noun, each with the list."""
        return self._rows.get(noun, [])

    def near(self, attribute: str) -> list[Operation]:
        """Return the operations that read an attribute of whatever noun."""
        return self._attributes.get(attribute, [])
