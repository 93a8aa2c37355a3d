"""The user's agreement to calls that cannot be undone: one case in the store for each, valid for one call.

A client that supports elicitation asks the user. For any other client a person accepts the case with `bespeak cases`.
Nothing that a model can write counts: no tool has an argument for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.confirmation import ListedCall, Named
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Outcome, Refused, refused
from bespeak.runtime.confirmations import call_digest, open_confirmation, too_many_cases
from bespeak.state.store.commands import cases
from bespeak.state.store.settings import CaseSettings
from bespeak.state.store.store import Conflict, Store

ANSWER: Final = "confirm"  # name of the one field of the form
FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {ANSWER: {"type": "boolean", "title": "Carry out this call", "default": False}},
    "required": [ANSWER],
}  # the form that the user fills in
_USER: Final = "user:mcp"  # decider of a case that the user of an MCP client has answered


@dataclass(eq=False)
class Asking:
    """Opens and settles the cases of one face."""

    _store: Store
    _settings: CaseSettings
    _command: str | None  # accepts a case, whose id replaces `{case}`; None if none can
    face: str = "mcp"

    async def open(
        self,
        tool: Named,
        arguments: Mapping[str, Any],
        caller: str,
        parties: tuple[str, ...],
        calls: Sequence[ListedCall] = (),
    ) -> cases.Case | Outcome:
        """Return the case of a call; the same call is one case until it is decided and used.

        `parties` is everyone behind the call, besides the caller: none of them may decide it. `calls` are those of a
        composite: the agreement covers them and no others.
        """
        endpoint = tool.endpoint
        subject: dict[str, Any] = {
            "method": endpoint.method,
            "path": endpoint.path,
            "input": arguments,
            "intent": endpoint.semantic.intent,
            "outcome": endpoint.semantic.outcome,
        }
        # A digest of its own: the answer of a user never decides a confirmation that the service demands.
        asked, covered = f"{self.face} {endpoint.method}", arguments
        if calls:
            subject["calls"] = calls
            asked, covered = f"calls {asked}", {"input": arguments, "calls": calls}
        digest, parties = call_digest(caller, asked, endpoint.path, covered), tuple(filter(None, (caller, *parties)))
        why = "A call that must be confirmed"
        command = open_confirmation(self._settings, caller, parties, digest, subject, why=why)
        if isinstance(command, Refused):
            return refused(command)
        done = await self._store.do(command)
        return refused(too_many_cases(done)) if isinstance(done, Conflict) else done[0].case

    async def decide(self, case: cases.Case, *, agreed: bool) -> None:
        """Note the answer of the user. A decision that was made elsewhere in the meantime stays."""
        state = cases.ACCEPTED if agreed else cases.REJECTED
        await self._store.do(
            cases.DecideCase(case.case_id, state, _USER, f"att-{secrets.token_hex(16)}", kinds=(cases.CONFIRMATION,))
        )

    async def find(self, case_id: str) -> cases.Case | None:
        found: cases.Case | None = await self._store.read(cases.ReadCase(case_id))
        return found

    async def use(self, case: cases.Case, parties: tuple[str, ...]) -> Outcome | None:
        """Use up an accepted case; return a refusal if it does not admit the call, which has these parties now."""
        done = await self._store.do(cases.UseCase(case.case_id, case.digest, case.agent_id, parties))
        if not isinstance(done, Conflict):
            return None
        message = f"The confirmation does not admit this call: it is {done.reason}. Call again to request another."
        return refused(Refused(status.CONFLICT, f"confirmation-{done.reason}", message))

    def remedy(self, case_id: str, then: str = "repeat the call unchanged", *, demanded: bool = False) -> str:
        """Say how a person can confirm a case, `demanded` if the service opened it, and what the caller does then."""
        if self._command is None and demanded:
            return f"Ask the operator of the service to run `bespeak cases accept {case_id} TARGET`, then {then}."
        if self._command is None:
            return "Use an MCP client that can ask its user (elicitation), or let the user call it with bespeak call."
        return f"Ask a person to run `{self._command.format(case=case_id)}`, then {then}."

    def unanswerable(self, tool: Named, case: cases.Case) -> Outcome:
        message = f"{tool.name} cannot be undone, so a person must confirm it, and no user can be asked here."
        members = {"confirmation_id": case.case_id, "remedy": self.remedy(case.case_id)}
        return refused(Refused(status.AUTHORIZATION_REQUIRED, "confirmation-required", message, members))
