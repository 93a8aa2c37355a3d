"""The user's agreement to calls that cannot be undone: one case in the store for each, valid for one call.

A client that supports elicitation asks the user. For any other client a person accepts the case with `bespeak cases`.
Nothing that a model can write counts: no tool has an argument for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.faces.mcp.outcome import Outcome, refused
from bespeak.faces.mcp.tool import Tool
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.confirmations import MOST_SUBJECT, call_digest, too_many_cases
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.cases import ACCEPTED, CONFIRMATION, REJECTED, Case, DecideCase, OpenCase, UseCase
from bespeak.state.store.settings import CaseSettings
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.printable import printable

ANSWER: Final = "confirm"
"""Name of the one field of the form."""

FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {ANSWER: {"type": "boolean", "title": "Carry out this call", "default": False}},
    "required": [ANSWER],
}
"""The form that the user fills in."""

_USER: Final = "user:mcp"
"""Decider of a case that the user of an MCP client has answered."""
_MOST_ARGUMENTS: Final = 40
_LONGEST_VALUE: Final = 200


class Asking:
    """Opens and settles the cases of one MCP server."""

    def __init__(self, store: Store, settings: CaseSettings, command: str | None) -> None:
        """Keep cases in `store`. `command` accepts a case, whose id replaces `{case}`; None if none can."""
        self._store = store
        self._settings = settings
        self._command = command

    async def open(self, tool: Tool, arguments: Mapping[str, Any], caller: str) -> Case | Outcome:
        """Return the case of a call; the same call is one case until it is decided and used."""
        endpoint = tool.endpoint
        subject = {
            "method": endpoint.method,
            "path": endpoint.path,
            "input": arguments,
            "intent": endpoint.semantic.intent,
            "outcome": endpoint.semantic.outcome,
        }
        text = msgspec.json.encode(subject).decode()
        if len(text) > MOST_SUBJECT:
            message = f"A call that must be confirmed may have at most {MOST_SUBJECT // 1024} KiB."
            return refused(Refused(status.CONTENT_TOO_LARGE, "too-large-to-confirm", message))
        done = await self._store.do(
            OpenCase(
                case_id=f"conf-{secrets.token_hex(16)}",
                kind=CONFIRMATION,
                agent_id=caller,
                recipient=self._settings.default_recipient,
                # A digest of its own: the answer of a user never decides a confirmation that the service demands.
                digest=call_digest(caller, f"mcp {endpoint.method}", endpoint.path, arguments),
                subject=text,
                lifetime=self._settings.confirmation,
                parties=(caller,) if caller else (),
                most_open=self._settings.most_open,
            )
        )
        return refused(too_many_cases(done)) if isinstance(done, Conflict) else done[0].case

    async def decide(self, case: Case, *, agreed: bool) -> None:
        """Note the answer of the user. A decision that was made elsewhere in the meantime stays."""
        state = ACCEPTED if agreed else REJECTED
        await self._store.do(
            DecideCase(case.case_id, state, _USER, f"att-{secrets.token_hex(16)}", kinds=(CONFIRMATION,))
        )

    async def use(self, case: Case) -> Outcome | None:
        """Use up an accepted case; return a refusal if it does not admit the call."""
        done = await self._store.do(UseCase(case.case_id, case.digest, case.agent_id))
        if not isinstance(done, Conflict):
            return None
        message = f"The confirmation does not admit this call: it is {done.reason}. Call again to request another."
        return refused(Refused(status.CONFLICT, f"confirmation-{done.reason}", message))

    def remedy(self, case_id: str) -> str:
        """Say how a person can confirm a case."""
        if self._command is None:
            return "Use an MCP client that can ask its user (elicitation), or let the user call it with bespeak call."
        return f"Ask a person to run `{self._command.format(case=case_id)}`, then repeat the call unchanged."

    def unanswerable(self, tool: Tool, case: Case) -> Outcome:
        """Refuse a call whose client cannot ask its user."""
        message = f"{tool.name} cannot be undone, so a person must confirm it, and this client cannot ask its user."
        members = {"confirmation_id": case.case_id, "remedy": self.remedy(case.case_id)}
        return refused(Refused(status.AUTHORIZATION_REQUIRED, "confirmation-required", message, members))


def declined(tool: Tool) -> Outcome:
    """Refuse a call that the user does not want."""
    message = f"The user did not agree to {tool.name}; it was not called."
    details = {"remedy": "Do not call it again unless the user asks for it."}
    return refused(Refused(status.FORBIDDEN, "confirmation-declined", message, details))


def question(tool: Tool, arguments: Mapping[str, Any]) -> str:
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
