"""What a workflow is to do, on whose authority: plain data that is stored with it."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from bespeak.contract.filled_path import fill_path
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.scope import Scopes
from bespeak.protocol.fault import Fault
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.server import Server

KEPT_HEADERS: Final = (
    names.AGENT_ID,
    names.AUTHORITY_SCOPE,
    names.BUDGET_LIMIT,
    names.CART_DIGEST,
    names.DELEGATION_CHAIN,
    names.INTENT_ASSERTION,
    names.MERCHANT_ID,
    names.MERCHANT_MANIFEST_FINGERPRINT,
    names.REQUEST_ID,
    names.SESSION_ID,
    names.TASK_ID,
)
"""Headers of the request that hold for the steps too. Credentials are never stored."""


_NAME: Final = re.compile(r"\{(\w+)\}")


class StepSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call."""

    method: str
    path: str = "/"
    parameters: dict[str, Any] = {}
    name: str | None = None
    on_failure: str | None = None
    when: str | None = None
    """Expression without whose truth the step is skipped."""
    compensate: StepSpec | None = None
    procedure: str | None = None
    """Id of a procedure of the operator that the step runs in place of a call; its input is that of the workflow."""

    @property
    def sought(self) -> str:
        """Path by which the endpoint is found: `{names}` that the parameters have stand for any value."""
        if "{" not in self.path:
            return self.path
        return _NAME.sub(lambda found: "-" if found[1] in self.parameters else found[0], self.path)

    def path_for(self, given: dict[str, Any]) -> str:
        """Return the path with the values of an input in place of its `{names}`."""
        filled = fill_path(self.path, given) if "{" in self.path else (self.path, None)
        return self.sought if isinstance(filled, Fault) else filled[0]


class Authority(msgspec.Struct, frozen=True, omit_defaults=True):
    """The caller as it was verified when the workflow began, and what it said about itself."""

    agent_id: str
    scopes: tuple[str, ...]
    headers: dict[str, str]
    address: str = ""
    known: bool = False
    verified: str | None = None
    principal_id: str | None = None
    trust_tier: int | None = None
    holders: tuple[str, ...] = ()
    delegators: tuple[str, ...] = ()
    profile: Any = None
    """Semantic profile of the call as plain data; None without one."""

    @classmethod
    def of(cls, call: RoutedCall) -> Authority:
        """Take the authority of a call."""
        who, given, meaning = call.principal, call.request.headers, call.request.semantic
        return cls(
            agent_id=who.agent_id or "",
            scopes=tuple(who.scopes),
            headers={name: given[name] for name in KEPT_HEADERS if name in given},
            address=call.request.connection.address or "",
            known=who.known,
            verified=who.verified,
            principal_id=who.principal_id,
            trust_tier=who.trust_tier,
            holders=who.holders,
            delegators=who.delegators,
            profile=None if meaning is None else msgspec.to_builtins(meaning.profile),
        )

    def restore(self, server: Server, method: str) -> RoutedCall | Refused:
        """Build the call again after a restart; a refusal if the agent must not act any more."""
        kept = self.profile is not None and server.semantic is not None
        meaning = server.semantic.restore(self.profile) if kept else None
        request = Request(method, "/", "", dict(self.headers), b"", Connection(address=self.address), semantic=meaning)
        call = Call(request, server)
        # Who was registered then must be registered and active now; a grant that was narrowed since counts.
        now = server.principals.resolve(self.agent_id, None)
        if not isinstance(now, Refused) and self.delegators:
            now = server.principals.delegate(now, self.headers[names.DELEGATION_CHAIN], None)
        if isinstance(now, Refused):
            return now
        scopes = Scopes(self.scopes)
        call.principal = Principal(
            agent_id=self.agent_id,
            scopes=scopes & now.scopes if now.known or self.delegators else scopes,
            wildcards=now.wildcards,
            known=self.known,
            verified=self.verified,
            principal_id=self.principal_id,
            trust_tier=self.trust_tier,
            holders=self.holders,
            delegators=self.delegators,
        )
        found = call.routes.router.find(method, "/")
        if found is None:
            message = f"{method} is not enabled any more."
            return Refused(status.NOT_IMPLEMENTED, "not-implemented", message)
        return RoutedCall(call, found[0])


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A workflow."""

    method: str
    """Method that began it: CHAIN, BATCH, RUN or EXECUTE."""
    steps: tuple[StepSpec, ...]
    authority: Authority
    deadline: float
    """Time by which it must have ended, in seconds since 1970."""
    on_failure: str = "abort"
    propagates: bool = False
    """True if steps may use what earlier ones returned."""
    parallel: bool = False
    partial: bool = False
    """True if a failed call does not fail the others."""
    given: dict[str, Any] | None = None
    """Input of a procedure, which its steps may refer to; None for other workflows."""

    def name_of(self, number: int) -> str:
        """Return the name of a step, by which others refer to its output."""
        return self.steps[number - 1].name or str(number)


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Spec).decode
