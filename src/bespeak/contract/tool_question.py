"""The question that a person answers before a call that cannot be undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.protocol import status
from bespeak.protocol.exchange.outcome import Outcome, refused
from bespeak.protocol.exchange.refusal import Refused
from bespeak.text.diagnostics.printable import printable

_MOST_ARGUMENTS: Final = 40
_LONGEST_VALUE: Final = 200


class Named(Protocol):
    """An endpoint under the name that its callers use: a tool, a skill."""

    @property
    def name(self) -> str:
        """Name of the endpoint."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint."""
        ...


def declined(tool: Named) -> Outcome:
    """Refuse a call that the user does not want."""
    message = f"The user did not agree to {tool.name}; it was not called."
    details = {"remedy": "Do not call it again unless the user asks for it."}
    return refused(Refused(status.FORBIDDEN, "confirmation-declined", message, details))


def question(tool: Named, arguments: Mapping[str, Any]) -> str:
    """Say in words what will happen. The text depends on the call alone, so that it is the same when it is repeated."""
    semantic = tool.endpoint.semantic
    lines = [semantic.intent or tool.endpoint.description or tool.name]
    if semantic.outcome:
        lines.append(semantic.outcome)
    lines.append("This cannot be undone.")
    for name, value in list(arguments.items())[:_MOST_ARGUMENTS]:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        cut = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"
        lines.append(f"- {name}: {cut}")
    if len(arguments) > _MOST_ARGUMENTS:
        lines.append(f"- and {len(arguments) - _MOST_ARGUMENTS} more arguments")
    return "\n".join(printable(line) for line in lines)
