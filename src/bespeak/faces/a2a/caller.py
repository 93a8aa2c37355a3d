"""The caller of one request: its credentials, and the parts of its message as they were sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a.utils.errors import A2AError

from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import Call
from bespeak.runtime.parties import parties_of


class RefusedError(A2AError):
    """A refusal that HTTP has a status for."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message, {"code": refused.code})
        self.refused = refused


@dataclass(slots=True)
class Caller:
    """Who sends a request, and what it is to be told besides the answer."""

    request: Any
    """HTTP request, whose scope has the credentials."""
    call: Call
    """The call that the gates of arrival have admitted."""
    parts: Sequence[Any] = field(default_factory=tuple)
    """Parts of the message. The SDK has them too, but its numbers are doubles."""
    status: Any = None
    """Status of the tasks that are to be listed, as it was sent: the SDK leaves out one that it does not know."""
    refused: Refused | None = None
    """Refusal that HTTP has a status for."""
    lacking: tuple[str, ...] = ()
    """Scopes that the call of a task needs and the caller does not have."""

    @property
    def is_known(self) -> bool:
        """True if the caller is an identified agent."""
        return self.call.agent_id is not None

    @property
    def is_admitted(self) -> bool:
        """True if the caller may still read what is its own: its credential has not ended, and it is active."""
        authority = Authority.of(self.call.principal, self.call.request)
        return not self.is_known or not isinstance(authority.judge(self.call.server.principals), Refused)

    @property
    def owner(self) -> str:
        """Owner of the caller's tasks: the agent, or the address of an anonymous one."""
        return self.call.agent_id or f"anonymous {self.call.request.connection.address}"

    @property
    def parties(self) -> tuple[str, ...]:
        """Everyone behind the call, who may not confirm it."""
        return parties_of(self.call)

    def refuse(self, refused: Refused) -> RefusedError:
        """Return the error that ends the request with a status of HTTP."""
        self.refused = refused
        return RefusedError(refused)
