"""`[handlers]` of a bespeak.toml: the handlers of an AGIS document's endpoints, which the document cannot name."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak.contract.handler import HandlerBinding
from bespeak.documents.deployment.handler_shape import read_handler
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.table import Table
from bespeak.text.source.span import Location

_FORM = 'Write [handlers."BOOK /reservation"]: the method, a space, the path.'


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerEntry:
    """One handler and the endpoint it is for."""

    method: str
    path: str
    handler: HandlerBinding
    pointer: str
    location: Location


def read_handlers(root: Table, key: str) -> tuple[HandlerEntry, ...]:
    """Read every valid entry. Whether the document has that endpoint is checked later."""
    block = root.table(key)
    entries: list[HandlerEntry] = []
    for name in block.data if block else ():
        assert block is not None
        inner = block.table(name)
        if inner is None:
            continue
        method, _, path = name.partition(" ")
        path = path.strip()
        if not path.startswith("/"):
            block.findings.error(WRONG_VALUE, f"{brief(name)} does not name an endpoint", inner.at, _FORM)
            continue
        handler = read_handler(inner)
        if handler is not None:
            place = block.findings.locate(inner.at)
            entries.append(
                HandlerEntry(method=method.upper(), path=path, handler=handler, pointer=inner.at, location=place)
            )
    return tuple(entries)
