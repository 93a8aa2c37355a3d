"""Granting delegations: a part of an agent's authority, for a limited time."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.delegation import LONGEST_CHAIN, Chain, grant_authority, verify_chain

SERVER = "rooms.acme.example"
NOW = 1_800_000_000.0
AGENTS = [f"{number:064x}" for number in range(1, 12)]
KEYS = {agent: Ed25519PrivateKey.from_private_bytes(bytes([n] * 32)) for n, agent in enumerate([*AGENTS, SERVER])}
HELD = Scopes(["booking:*", "rooms:read"])


def key_of(name: str) -> Ed25519PublicKey | None:
    return KEYS[name].public_key() if name in KEYS else None


def grant(number: int = 0, scopes: Any = ("booking:room",), **options: Any) -> Chain | Refused:
    standard: dict[str, Any] = {
        "delegator": AGENTS[number],
        "delegate": AGENTS[number + 1],
        "scopes": scopes,
        "held": HELD,
        "server_id": SERVER,
        "key": KEYS[AGENTS[number]],
        "now": NOW,
        "lifetime": 600,
    }
    return grant_authority(**{**standard, **options})


def granted(*arguments: Any, **options: Any) -> Chain:
    found = grant(*arguments, **options)
    assert isinstance(found, Chain), found
    return found


def verify(chain: Chain, caller: str) -> Chain | Refused:
    return verify_chain(
        chain.header, caller=caller, server_id=SERVER, key_of=key_of, grant_of=lambda _: HELD, now=NOW + 1
    )


def test_granted_delegation_verifies() -> None:
    chain = granted()
    assert verify(chain, AGENTS[1]) == chain
    assert chain.scopes == Scopes(["booking:room"])
    assert chain.expires == int(NOW) + 600


def test_the_server_grants_for_a_delegator_without_a_key() -> None:
    chain = granted(key=KEYS[SERVER], issuer=SERVER)
    assert verify(chain, AGENTS[1]) == chain
    assert chain.delegators == (AGENTS[0],)


def test_delegated_authority_can_be_delegated_up_to_its_depth() -> None:
    chain = granted(depth=LONGEST_CHAIN - 1)
    for number in range(1, LONGEST_CHAIN):
        chain = granted(number, parent=chain, held=chain.scopes, depth=LONGEST_CHAIN - 1 - number)
    assert verify(chain, AGENTS[LONGEST_CHAIN]) == chain
    refused = grant(LONGEST_CHAIN, parent=chain, held=chain.scopes)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (262, "delegation-depth-exceeded")


@pytest.mark.parametrize(("depth", "given_depth"), [(0, 0), (1, 1), (3, 5), (7, -1)])
def test_depth_beyond_the_remaining_one_is_refused(depth: int, given_depth: int) -> None:
    parent = granted(depth=depth)
    refused = grant(1, parent=parent, held=parent.scopes, depth=given_depth)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.details["depth_left"]) == (262, depth - 1)


def test_delegation_expires_with_its_parent() -> None:
    parent = granted(depth=1, lifetime=60)
    assert granted(1, parent=parent, held=parent.scopes, lifetime=3600).expires == int(NOW) + 60


@pytest.mark.parametrize("scopes", [["payments:send"], ["booking:room", "rooms:*"], ["*:read"]])
def test_wider_scopes_than_held_are_refused_and_logged(scopes: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        refused = grant(scopes=scopes)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code, refused.details["type"]) == (262, "scope-claim-invalid", "scope-required")
    assert refused.details["invalid"] == [scopes[-1]]
    assert AGENTS[0] in caplog.text
    assert scopes[-1] in caplog.text


def test_delegate_cannot_delegate_more_than_it_received() -> None:
    parent = granted(scopes=["rooms:read"], depth=1)
    refused = grant(1, parent=parent, scopes=["booking:room"])
    assert isinstance(refused, Refused)
    assert refused.details["invalid"] == ["booking:room"]


def test_all_held_scopes_can_be_delegated() -> None:
    assert granted(scopes=list(HELD)).scopes == HELD


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"delegate": "short"}, "invalid-canonical-id"),
        ({"delegate": AGENTS[0]}, "delegation-to-itself"),
        ({"scopes": []}, "invalid-authority-scope"),
        ({"scopes": ["No"]}, "invalid-authority-scope"),
        ({"scopes": ["rooms:read"] * 65}, "invalid-authority-scope"),
        ({"scopes": [f"booking:{'x' * 200}{n}" for n in range(40)]}, "delegation-too-large"),
        ({"lifetime": 0}, "invalid-lifetime"),
        ({"lifetime": float("nan")}, "invalid-lifetime"),
        ({"lifetime": float("inf")}, "invalid-lifetime"),
    ],
)
def test_invalid_delegation_is_refused(options: dict[str, Any], code: str) -> None:
    refused = grant(**options)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (422, code)


TOKENS = st.sampled_from(["booking:room", "booking:*", "rooms:read", "rooms:*", "*:read", "*:*", "a:b:c", "a:*"])


@pytest.mark.requirement("CORE-7.6-1")
@given(st.lists(TOKENS, min_size=1, max_size=4), st.lists(TOKENS, min_size=1, max_size=4), st.lists(TOKENS, max_size=3))
@settings(max_examples=100)
def test_authority_never_grows_along_a_chain(held: list[str], first: list[str], second: list[str]) -> None:
    own = Scopes(held)
    parent = grant(scopes=first, held=own, depth=1)
    assert isinstance(parent, Chain) == (not own.missing(first))
    if isinstance(parent, Chain):
        child = grant(1, scopes=second, held=parent.scopes, parent=parent)
        if isinstance(child, Chain):
            assert not own.missing(second)
