"""DELEGATE: grants a part of the caller's authority to another agent, as a signed token (core 4.8, 7.6).

The draft requires `delegation_token` as the delegator's proof. It is a token the delegator has signed with its
registered key, or the word `issue`: then this server, which has identified the caller, signs one for it. The answer
contains the value that the delegate sends as Delegation-Chain. The extension behind the hook HAND_OVER offers the task,
with the token, to the delegate. A person, who calls nothing, gets the task without a token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.agent import ACTIVE, Agent
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import DELEGATION_CHAIN
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import Scopes, is_canonical_id, is_scope_token
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime import handling
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall, not_available
from bespeak.runtime.extension import HAND_OVER
from bespeak.runtime.handling import RefusedError, check_size, effects, invalid, passed, read_future, refusal, stateful
from bespeak.runtime.identity.agents import may_delegate
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.agents import RecordDelegation
from bespeak.state.store.store import Command

if TYPE_CHECKING:
    from bespeak.state.identity.delegation import Chain
    from bespeak.state.identity.jws import PrivateKey

ISSUE: Final = "issue"  # value in place of a token that asks the server to sign one
LIFETIME: Final = 3600.0  # default lifetime of a delegation in seconds, without a deadline
LONGEST_LIFETIME: Final = 86400.0
MOST_TASK: Final = 64 * 1024  # maximum bytes of a task


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedDelegation:
    delegator: str
    delegate: str
    scopes: tuple[str, ...]
    expires: float
    depth: int
    token: str
    task: str
    parent: Chain | None  # through which the delegator holds its authority; None if in its own right


@stateful
async def delegate(call: RoutedCall) -> Effects:
    delegator, now = call.server.agents.get(call.agent_id), call.server.principals.clock()
    if delegator is None:
        message = "Only an agent that is registered with this server can delegate."
        raise refusal(status.FORBIDDEN, "delegation-not-permitted", message)
    if not may_delegate(delegator):
        message = "The document of this agent does not permit it to delegate."
        raise refusal(status.FORBIDDEN, "delegation-not-permitted", message)
    if not is_canonical_id(call.input["target_agent_id"]):
        return await _hand_over(call, {"delegate": call.input["target_agent_id"]}, _read_deadline(call, now))
    wish = _read(call, now)
    signer = call.server.signer
    if wish.token == ISSUE and signer is None:
        missing = "the server's signing key (`signing_key` of the server; `bespeak keys new` makes one)"
        raise RefusedError(not_available("DELEGATE", missing))
    _check_extent(call, delegator, wish)
    if wish.token == ISSUE and signer is not None:
        chain = _issue(call, signer.private_key, wish, now)
    else:
        chain = _accept(call, wish)
    return await _record(call, chain, wish)


def _read(call: RoutedCall, now: float) -> WantedDelegation:
    given = call.input
    target = given["target_agent_id"]
    agent = call.server.agents.get(target)
    if agent is None or agent.status != ACTIVE:
        message = f"No active agent {target[:64]!r} is registered with this server."
        raise refusal(status.NOT_FOUND, "agent-not-found", message)
    header = call.request.headers.get(DELEGATION_CHAIN)
    return WantedDelegation(
        delegator=call.agent_id or "",
        delegate=target,
        scopes=_scopes(given["authority_scope"]),
        task=_task(given["task"]),
        expires=_read_deadline(call, now),
        depth=given.get("depth", 0),
        token=given["delegation_token"],
        parent=None if header is None else passed(call.server.principals.chain(call.agent_id, header)),
    )


def _read_deadline(call: RoutedCall, now: float) -> float:
    """Return the deadline, limited by the server's maximum."""
    wanted = read_future(call.input, "deadline", now=now + 1, most=math.inf)
    return min(wanted or now + LIFETIME, now + LONGEST_LIFETIME)


def _task(given: str | Mapping[str, Any]) -> str:
    task = given if isinstance(given, str) else handling.to_json(given)
    if "\0" in task:
        raise invalid("task", "contains a NUL, which cannot be stored.")
    check_size("task", len(task.encode()), MOST_TASK)
    return task


def _scopes(given: str | Sequence[Any]) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    tokens = [part.strip(" \t") if isinstance(part, str) else "" for part in parts]
    bad = next((token for token in tokens if not is_scope_token(token)), None)
    if tokens and bad is None:
        return tuple(dict.fromkeys(tokens))
    what = f"contains {bad[:80]!r}, which is not a valid scope" if bad is not None else "is empty"
    message = f"`authority_scope` {what}; write tokens like booking:room, in lower case."
    raise refusal(status.UNPROCESSABLE, "invalid-authority-scope", message)


def _check_extent(call: RoutedCall, delegator: Agent, wish: WantedDelegation) -> None:
    from bespeak.state.identity.delegation import refuse_wider  # noqa: PLC0415 - loads cryptography, for delegators

    passed(refuse_wider(wish.delegator, wish.delegate, wish.scopes, call.principal.scopes))
    most = delegator.max_delegation_depth
    if most is not None and wish.depth >= most:
        message = (
            f"The document of this agent permits {most} hops, including its own: `depth` must be at most {most - 1}."
        )
        raise refusal(status.FORBIDDEN, "delegation-depth-exceeded", message, max_delegation_depth=most)


def _check_strict(call: RoutedCall, wish: WantedDelegation) -> None:
    """Refuse to hand on all of the delegator's authority: core 4.8 demands a strict subset."""
    held = wish.parent.scopes if wish.parent is not None else call.server.agents.grant_of(wish.delegator)
    if held is None or Scopes(wish.scopes).missing(list(held)):
        return
    message = f"A delegation must leave something out; {', '.join(wish.scopes)} is all that the agent holds. "
    message += "Delegate fewer or narrower scopes; an agent with a single scope needs a second one from its operator."
    details = {"type": "scope-required", "claimed": list(wish.scopes), "declared": list(held)}
    raise RefusedError(Refused(status.AUTHORIZATION_REQUIRED, "scope-claim-invalid", message, details))


def _issue(call: RoutedCall, key: PrivateKey, wish: WantedDelegation, now: float) -> Chain:
    """Add a hop to the caller's chain, signed by this server for the caller."""
    from bespeak.state.identity.delegation import grant_authority  # noqa: PLC0415 - loads cryptography, for delegators

    server_id = call.routes.service.identity.server_id
    # What this server signs for the caller ends with the credential by which it knows the caller.
    lifetime = Authority.of(call.principal, call.request).within(call.server.principals, wish.expires - now)
    made = grant_authority(
        delegator=wish.delegator,
        delegate=wish.delegate,
        scopes=wish.scopes,
        held=call.principal.scopes,
        server_id=server_id,
        key=key,
        now=now,
        lifetime=lifetime,
        depth=wish.depth,
        issuer=server_id,
        parent=wish.parent,
        api_key=call.principal.key_id,
    )
    chain = passed(made)
    _check_strict(call, wish)
    call.server.principals.log_hop(chain.hops[-1])
    return chain


def _accept(call: RoutedCall, wish: WantedDelegation) -> Chain:
    before = "" if wish.parent is None else f"{wish.parent.header}, "
    chain = passed(call.server.principals.chain(wish.delegate, before + wish.token))
    hop = chain.hops[-1]
    if hop.delegator == wish.delegator and set(hop.scopes) == set(wish.scopes):
        _check_strict(call, wish)
        return chain
    message = "`delegation_token` is from another agent, or has scopes other than `authority_scope`."
    raise refusal(status.UNPROCESSABLE, "delegation-token-mismatch", message)


async def _record(call: RoutedCall, chain: Chain, wish: WantedDelegation) -> Effects:
    hop = chain.hops[-1]
    command = RecordDelegation(
        delegation_id=hop.token_id,
        delegator=hop.delegator,
        delegate=hop.delegate,
        scope=", ".join(hop.scopes),
        parent=wish.parent.hops[-1].token_id if wish.parent is not None else None,
        task=wish.task,
        expires=float(hop.expires),
    )
    result: dict[str, Any] = {
        "delegation_id": hop.token_id,
        "delegator": hop.delegator,
        "delegate": hop.delegate,
        "authority_scope": list(hop.scopes),
        "depth": hop.depth,
        "delegation_token": chain.tokens[-1],
        "delegation_chain": chain.header,
    }
    return await _hand_over(call, result, float(chain.expires), command)


async def _hand_over(call: RoutedCall, result: dict[str, Any], expires: float, *before: Command) -> Effects:
    """Offer the task to the delegate, in one transaction with the record of its token."""
    result["expires_at"] = write_instant(expires)
    _task(call.input["task"])
    offered = await call.server.hooks[HAND_OVER](call, result, expires)
    used = "This `delegation_token` has already been used; sign a new one with a new id."
    full = "The delegate has no room for more tasks of this agent, or this agent has delegated too many."
    used_up = Refused(status.CONFLICT, "delegation-token-used", used)
    conflicts = {"delegation-known": used_up, "exists": used_up}
    return effects(
        [*before, *offered],
        lambda _: result,
        {**conflicts, "": Refused(status.UNAVAILABLE, "delegate-unavailable", full, headers=(("Retry-After", "60"),))},
    )
