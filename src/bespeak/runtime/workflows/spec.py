"""What a workflow is to do, on whose authority: plain data that is stored with it."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from bespeak.contract.filled_path import fill_path
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.server import Server

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


def restore_call(authority: Authority, server: Server, method: str) -> RoutedCall | Refused:
    """Build the call of a method again on a stored authority; a refusal if the agent must not act any more."""
    principal = authority.judge(server.principals)
    if isinstance(principal, Refused):
        return principal
    kept = authority.profile is not None and server.semantic is not None
    meaning = server.semantic.restore(authority.profile) if kept else None
    connection = Connection(address=authority.address)
    request = Request(method, "/", "", dict(authority.headers), b"", connection, semantic=meaning)
    call = Call(request, server)
    call.principal = principal
    found = call.routes.router.find(method, "/")
    if found is None:
        return Refused(status.NOT_IMPLEMENTED, "not-implemented", f"{method} is not enabled any more.")
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
