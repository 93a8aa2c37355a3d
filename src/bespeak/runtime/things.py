"""Functions of the service inside standard methods: things of its own that CANCEL, CHECK and MONITOR know by them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.participant import UNKNOWN
from bespeak.contract.schema.validation import refuse_input
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import RefusedError
from bespeak.runtime.route import Route

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_OK: Final = "ok"  # state of a thing whose function does not tell one
_LONGEST_STATE: Final = 256
_OF_ROUTE: Final = frozenset({"code", "message", "method", "path"})  # members that name a route no agent can call


class Thing(NamedTuple):
    """Something of the service, as the function that knows it has answered."""

    kind: str  # name under which the function is declared
    output: Mapping[str, Any]

    @property
    def state(self) -> str:
        """State that the function tells in `status` or `state`."""
        told = next((self.output[name] for name in ("status", "state") if name in self.output), None)
        return told[:_LONGEST_STATE] if isinstance(told, str) and told else _OK


async def ask_service(
    call: RoutedCall, kind: str, target: str, parameters: Mapping[str, Any], needed: Mapping[str, Refused] = _NOTHING
) -> Thing | None:
    """Offer an id to functions of the service in the order of their declaration; return None if none knows it.

    `booking:77` offers the id `77` to `booking` alone. A function whose scopes the caller lacks is passed over, unless
    it is picked. Parameters go to those that take them; `needed` has the refusals if one is not taken.
    """
    declared: Mapping[str, Joined] = call.server.registrar.participants.get(kind, {})
    name, _, rest = target.partition(":")
    picked = declared.get(name) if rest else None
    unfit: Refused | None = None
    for joined in declared.values() if picked is None else (picked,):
        route, participant = joined.routes["run"], joined.participant
        if picked is None and call.principal.scopes.missing(participant.scopes):
            continue
        takes = list(route.endpoint.input_schema["properties"])
        given = {takes[0]: target if picked is None else rest}
        given |= {member: value for member, value in parameters.items() if member in takes[1:]}
        wrong = route.input.violations(given)
        if any(one.pointer == f"/{takes[0]}" for one in wrong):
            continue  # the function has no ids of this form
        lacking = next((refused for member, refused in needed.items() if member not in takes), None)
        if wrong or lacking is not None:
            unfit = unfit or lacking or refuse_input(call.method, call.path, wrong)  # another one may know the id
            continue
        try:
            output = await run_function(call, route, given, STANDARD[route.method])
        except RefusedError as error:
            if error.refused.code != UNKNOWN:
                raise
            continue
        return Thing(participant.name, output)
    if unfit is not None:
        raise RefusedError(unfit)
    return None


async def run_function(
    call: RoutedCall, route: Route, given: dict[str, Any], method: StandardMethod
) -> Mapping[str, Any]:
    """Run a function of the service as a part of a method and return its output; what it refuses, the method does."""
    step = await call.server.run_part(call, route, given)
    response: Response = step.response
    if not status.is_success(response.status):
        error = msgspec.json.decode(response.body)["error"]
        code, details = error["code"], {name: value for name, value in error.items() if name not in _OF_ROUTE}
        declared = {one.name: one.status for one in method.errors} if response.status == status.UNPROCESSABLE else {}
        headers = tuple(pair for pair in response.headers if pair[0] == "Retry-After")
        number = declared.get(code, response.status)
        raise RefusedError(Refused(number, code, error["message"], details, headers))
    output: Mapping[str, Any] = step.output or {}
    return output
