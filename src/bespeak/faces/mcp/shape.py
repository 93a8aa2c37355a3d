"""The shape of a result that a caller asks for: some members only, or no empty ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from bespeak.contract.mcp_tool import META, Tool
from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.protocol import status
from bespeak.protocol.exchange.outcome import Outcome, refused
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.token_hints import COMPACT, FIELDS, TokenHints
from bespeak.protocol.fault import Fault
from bespeak.runtime.shaping import Shaping

FIELDS_MEMBER: Final = f"{META}{FIELDS} in the _meta of the call"


@dataclass(frozen=True, slots=True)
class Shape:
    """What is wanted of an output."""

    hints: TokenHints
    fields: str

    def apply(self, tool: Tool, output: Any) -> Any:
        """Return what is wanted of an output."""
        return shaping_of(tool).apply(self.hints, output)


@lru_cache(maxsize=1024)
def shaping_of(tool: Tool) -> Shaping:
    """Return what can be selected or left out of the output of a tool."""
    output = compile_schema(tool.endpoint.output_schema)
    return Shaping(tool.endpoint, Validator(b"{}") if isinstance(output, Fault) else output)


def read_shape(tool: Tool, asked: Mapping[str, Any]) -> Shape | Outcome | None:
    """Read `fields` and `compact`; return None without them, or a refusal."""
    fields, compact = asked.get(FIELDS), asked.get(COMPACT)
    if fields is None and compact is None:
        return None
    if isinstance(fields, list) and all(isinstance(one, str) for one in fields):
        fields = ",".join(fields)
    wrong = FIELDS if not isinstance(fields, str | None) else COMPACT if not isinstance(compact, bool | None) else None
    if wrong is not None:
        wanted = "a list of names" if wrong == FIELDS else "true or false"
        return refused(
            Refused(status.BAD_REQUEST, "invalid-token-hint", f"{wrong} must be {wanted}.", {"parameter": wrong})
        )
    given = {} if fields is None else {FIELDS: fields}
    hints = shaping_of(tool).read({**given, COMPACT: "true" if compact else "false"})
    return refused(hints) if isinstance(hints, Refused) else Shape(hints, fields or "")


def shape_in(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a call's `_meta` that ask for a shape."""
    return {name: meta[f"{META}{name}"] for name in (FIELDS, COMPACT) if f"{META}{name}" in meta}
