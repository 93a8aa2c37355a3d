"""The question that a person answers before a call that cannot be undone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.listed_call import ListedCall
from bespeak.protocol import status
from bespeak.protocol.exchange.outcome import Outcome, refused
from bespeak.protocol.exchange.refusal import Refused
from bespeak.text.diagnostics.printable import printable

_MOST_ARGUMENTS: Final = 40
_LONGEST_VALUE: Final = 200
LONGEST: Final = 20_000
"""Characters of a question about a composite. A longer one is not asked: nobody would read all of it."""
_LISTED: Final = ("steps", "calls", "candidates", "fallback")
"""Arguments of composites that name the calls which are listed one by one."""


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


def question(tool: Named, arguments: Mapping[str, Any], calls: Sequence[ListedCall] = ()) -> str:
    """Say in words what will happen. The text depends on the call alone, so that it is the same when it is repeated.

    `calls` are those of a composite; each of them is shown, so the text may be longer than `LONGEST`.
    """
    semantic = tool.endpoint.semantic
    lines = [semantic.intent or tool.endpoint.description or tool.name]
    if semantic.outcome:
        lines.append(semantic.outcome)
    lines.append("This cannot be undone.")
    if calls:
        lines += ["It makes these calls:", *_list(calls, "")]
    shown = {name: value for name, value in arguments.items() if not (calls and name in _LISTED)}
    lines += [f"- {name}: {_cut(value)}" for name, value in list(shown.items())[:_MOST_ARGUMENTS]]
    if len(shown) > _MOST_ARGUMENTS:
        lines.append(f"- and {len(shown) - _MOST_ARGUMENTS} more arguments")
    return "\n".join(printable(line) for line in lines)


def too_long_to_show(tool: Named, text: str, remedy: str) -> Refused:
    """Build the refusal of a composite whose question is too long to be put to a person here."""
    message = (
        f"{tool.name} cannot be undone. The question about its calls has {len(text)} characters, too many to show to a "
        f"user here: at most {LONGEST}. Confirm it another way."
    )
    members = {"remedy": f"Call it with fewer calls at a time. {remedy}"}
    return Refused(status.CONTENT_TOO_LARGE, "too-long-to-show", message, members)


def _list(calls: Sequence[ListedCall], before: str) -> Iterator[str]:
    for number, call in enumerate(calls, 1):
        note = f", {call.note}" if call.note else ""
        given = f", with {_cut(call.parameters)}" if call.parameters else ""
        yield f"{before}{number}. {call.method} {call.path}: {call.impact}{note}{given}"
        yield from _list(call.calls, f"{before}{number}.")


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"
