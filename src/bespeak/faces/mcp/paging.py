"""Parameters with which an endpoint gives a long list page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bespeak.contract.endpoint import Endpoint
from bespeak.runtime.negotiation.planner.operation import CURSORS, LIMITS, OFFSETS, PAGES
from bespeak.runtime.negotiation.planner.term import join, stems


@dataclass(frozen=True, slots=True)
class Paging:
    """Names of the parameters; empty for one that there is not."""

    limit: str = ""
    offset: str = ""
    onward: str = ""
    """Parameter that names the next page: a cursor, or the number of the page."""
    first: int = 0
    """Offset of the first element."""

    def advise(self, arguments: Mapping[str, Any], kept: int) -> str | None:
        """Say how to get the rest of a list of which some elements were kept; None if there is no way."""
        if not kept:
            return None
        given = arguments.get(self.offset, self.first)
        if self.offset and isinstance(given, int):
            return f"Call again with {self.offset}={given + kept} for the elements that follow."
        if not self.limit:
            return None
        then = f", and then page on with {self.onward}" if self.onward else ""
        return f"Call again with {self.limit}={kept} or less{then}."


def paging_of(endpoint: Endpoint) -> Paging:
    """Find the paging parameters of an endpoint by their names."""
    named: dict[str, Any] = {}
    for name, schema in endpoint.input_schema.get("properties", {}).items():
        term = join(stems(name))
        is_count = isinstance(schema, dict) and schema.get("type") == "integer"
        for kind, terms in (("limit", LIMITS), ("offset", OFFSETS), ("onward", CURSORS | PAGES)):
            if term in terms and kind not in named and (is_count or kind == "onward"):
                named[kind] = name
                first = schema.get("default") if kind == "offset" else None
                named |= {"first": first} if isinstance(first, int) else {}
    return Paging(**named)
