"""Delegation-Chain: every hop is signed, linked, in time, and no wider than the one before."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from joserfc.jws import deserialize_compact
from tests.cases import rows

from bespeak.protocol.exchange.header_values import decode64, encode64
from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity import delegation
from bespeak.state.identity.jws import ALGORITHM, sign_compact

SERVER = "rooms.acme.example"
NOW = 1_800_000_000.0
AGENTS = [f"{number:064x}" for number in range(1, 12)]
KEYS = {agent: Ed25519PrivateKey.from_private_bytes(bytes([n] * 32)) for n, agent in enumerate([*AGENTS, SERVER])}
OWN = Scopes(["booking:*", "rooms:read"])
HELD = Scopes(["booking:*", "rooms:read"])
TOKENS = st.sampled_from(["booking:room", "booking:*", "rooms:read", "rooms:*", "*:read", "*:*", "a:b:c", "a:*"])
KEY = Ed25519PrivateKey.generate()


def key_of(name: str) -> Ed25519PublicKey | None:
    return KEYS[name].public_key() if name in KEYS else None


def claims(number: int, before: str | None = None, **members: Any) -> delegation.Claims:
    """Return the claims of the hop from one agent to the next."""
    standard: dict[str, Any] = {
        "iss": AGENTS[number],
        "sub": AGENTS[number + 1],
        "aud": SERVER,
        "scope": ("booking:room", "rooms:read"),
        "depth": delegation.LONGEST_CHAIN - 1 - number,
        "exp": int(NOW) + 60,
        "iat": int(NOW),
        "jti": f"token-{number}",
        "parent": delegation.token_hash(before) if before is not None else None,
    }
    return delegation.Claims(**{**standard, **members})


def signed(one: delegation.Claims, key: Ed25519PrivateKey | None = None) -> str:
    return delegation.sign_token(one, key or KEYS[one.iss])


def chain(hops: int, **last: Any) -> list[str]:
    """Return tokens starting with the first agent; keywords change the claims of the last hop."""
    tokens: list[str] = []
    for number in range(hops):
        members = last if number == hops - 1 else {}
        tokens.append(signed(claims(number, tokens[-1] if tokens else None, **members)))
    return tokens


def verify(
    tokens: list[str] | str, caller: str | None = None, *, now: float = NOW, **options: Any
) -> delegation.Chain | Refused:
    header = tokens if isinstance(tokens, str) else ", ".join(tokens)
    length = 1 if isinstance(tokens, str) else len(tokens)
    standard = {"server_id": SERVER, "key_of": key_of, "grant_of": dict.fromkeys(AGENTS, OWN).get}
    return delegation.verify_chain(header, caller=caller or AGENTS[length], now=now, **{**standard, **options})


def broken(found: delegation.Chain | Refused) -> tuple[int, str]:
    assert isinstance(found, Refused)
    assert (found.status, found.code) == (551, "authority-chain-broken")
    assert f"hop {found.details['hop']}" in found.message
    return found.details["hop"], found.details["reason"]


@pytest.mark.parametrize("hops", range(1, delegation.LONGEST_CHAIN + 1))
def test_a_chain_of_signed_hops_gives_its_last_scopes_and_its_delegators(hops: int) -> None:
    found = verify(chain(hops, scope=("booking:room",), exp=int(NOW) + 10))
    assert (found.scopes, found.delegators) == (Scopes(["booking:room"]), tuple(AGENTS[:hops]))
    assert (found.delegate, found.expires) == (AGENTS[hops], int(NOW) + 10)
    assert [hop.token_id for hop in found.hops] == [f"token-{number}" for number in range(hops)]


def test_white_space_does_not_matter_and_only_the_last_delegate_may_use_a_chain() -> None:
    tokens = chain(3)
    for between in (",", " ,\t", ", "):
        assert verify(between.join(tokens), AGENTS[3]).header == ", ".join(tokens)
    assert broken(verify(chain(2), AGENTS[1])) == (2, "not-the-caller")


@pytest.mark.requirement("CORE-4.8-3")
def test_server_signs_for_a_delegator_and_nobody_else_does() -> None:
    token = signed(claims(0, iss=SERVER, delegator=AGENTS[0]))
    assert verify([token]).delegators == (AGENTS[0],)
    token = signed(claims(0, iss=AGENTS[5], delegator=AGENTS[0]))
    assert broken(verify([token])) == (1, "malformed")
    assert broken(verify([signed(claims(0, iss=SERVER))])) == (1, "malformed")


@pytest.mark.requirement("CORE-4.8-4")
@rows(
    "members, reason",
    ({"aud": "other.example"}, "wrong-audience"),
    ({"exp": int(NOW)}, "expired"),
    ({"iat": int(NOW) + 31}, "not-yet-valid"),
    ({"scope": ()}, "malformed"),
    ({"scope": ("Booking",)}, "malformed"),
    ({"scope": ("booking:room\n",)}, "malformed"),
    ({"scope": ("rooms:read",) * 65}, "malformed"),
    ({"sub": "short"}, "malformed"),
    ({"depth": -1}, "depth-exceeded"),
    ({"depth": 10**9}, "depth-exceeded"),
    ({"parent": "x"}, "not-linked"),
)
@pytest.mark.parametrize("hops", [1, 3])
def test_hop_with_wrong_claims_breaks_the_chain(hops: int, members: dict[str, Any], reason: str) -> None:
    assert broken(verify(chain(hops, **members))) == (hops, reason)


@pytest.mark.requirement("CORE-6.1-12")
def test_other_key_inactive_delegator_or_narrowed_grant_breaks_the_chain() -> None:
    assert broken(verify([signed(claims(0), KEYS[AGENTS[7]])])) == (1, "signature-invalid")
    expected = (2, "key-unknown")
    assert broken(verify(chain(2), key_of=lambda name: key_of(name) if name == AGENTS[0] else None)) == expected
    for number in range(3):
        active = {agent: OWN for agent in AGENTS if agent != AGENTS[number]}
        assert broken(verify(chain(3), grant_of=active.get)) == (number + 1, "delegator-not-active")
    assert broken(verify(chain(2), grant_of=lambda _: Scopes(["rooms:read"]))) == (1, "scope-exceeded")


@pytest.mark.requirement("CORE-7.6-2")
@pytest.mark.parametrize("scope", [("booking:*",), ("*:read",), ("payments:send",), ("rooms:read", "rooms:write")])
def test_a_hop_wider_than_the_one_before_is_laundering_and_logged(
    scope: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert broken(verify(chain(2, scope=scope))) == (2, "scope-exceeded")
    assert AGENTS[1] in caplog.text
    assert AGENTS[2] in caplog.text


def test_own_grant_of_a_delegate_does_not_widen_the_chain() -> None:
    first = signed(claims(0, scope=("rooms:read",)))
    second = signed(claims(1, first, scope=("booking:room",)))
    assert broken(verify([first, second])) == (2, "scope-exceeded")


@pytest.mark.parametrize("path", [(0, 0), (0, 1, 0), (0, 1, 1), (0, 1, 2, 1), (0, 1, 2, 0), (0, 1, 0, 1)])
def test_chain_that_returns_to_one_of_its_agents_is_broken(path: tuple[int, ...]) -> None:
    tokens: list[str] = []
    for number, (one, other) in enumerate(itertools.pairwise(path)):
        before = tokens[-1] if tokens else None
        tokens.append(signed(claims(number, before, iss=AGENTS[one], sub=AGENTS[other])))
    hop = next(n for n in range(1, len(path)) if path[n] in path[:n])
    assert broken(verify(tokens, AGENTS[path[-1]])) == (hop, "repeated-agent")


def test_depth_shrinks_hops_are_connected_and_a_chain_has_an_end() -> None:
    first = signed(claims(0, depth=1))
    assert isinstance(verify([first, signed(claims(1, first, depth=0))]), delegation.Chain)
    assert broken(verify([first, signed(claims(1, first, depth=1))])) == (2, "depth-exceeded")
    last = signed(claims(0, depth=0))
    assert broken(verify([last, signed(claims(1, last, depth=0))])) == (2, "depth-exceeded")
    first = signed(claims(0, sub=AGENTS[5]))
    assert broken(verify([first, signed(claims(1, first))])) == (2, "not-linked")
    expected = (delegation.LONGEST_CHAIN + 1, "too-long")
    assert broken(verify([*chain(delegation.LONGEST_CHAIN), "x"], AGENTS[1])) == expected
    assert broken(verify("," * 100_000)) == (delegation.LONGEST_CHAIN + 1, "too-long")
    assert broken(verify("x" * 1_000_000)) == (1, "malformed")
    assert broken(verify("x" + " " * 1_000_000 + "x")) == (1, "malformed")


@pytest.mark.requirement("CORE-7.6-5")
def test_no_hop_can_be_left_out_added_or_moved() -> None:
    tokens = chain(4)
    assert broken(verify(tokens[1:], AGENTS[4])) == (1, "not-linked")
    assert broken(verify([tokens[0], *tokens[2:]], AGENTS[4])) == (2, "not-linked")
    assert broken(verify([tokens[0], tokens[2], tokens[1], tokens[3]])) == (2, "not-linked")
    assert broken(verify([tokens[0], *tokens])) == (2, "not-linked")
    other = signed(claims(0, jti="another"))
    assert broken(verify([other, *tokens[1:]])) == (2, "not-linked")


def header(**members: Any) -> str:
    return msgspec.json.encode({"alg": "EdDSA", "typ": "agtp-delegation+jwt", **members}).decode()


@pytest.mark.parametrize(
    "members", [{"alg": "none"}, {"alg": "HS256"}, {"typ": "JWT"}, {"crit": ["x"]}, {"alg": 1}, {"typ": None}]
)
def test_other_token_type_is_not_a_delegation(members: dict[str, Any]) -> None:
    head = msgspec.json.decode(header(**members))
    token = sign_compact(head, msgspec.json.encode(claims(0)), KEYS[AGENTS[0]])
    assert broken(verify([token])) == (1, "malformed")


def test_neither_a_chain_nor_a_refusal_shows_tokens() -> None:
    tokens = chain(2)
    found = verify(tokens)
    refused = verify(tokens, AGENTS[9])
    for token in tokens:
        assert token not in repr(found)
        assert token not in repr(refused)


@given(st.data())
@settings(max_examples=150)
def test_a_chain_with_one_other_character_is_refused(data: st.DataObject) -> None:
    text = ", ".join(chain(2))
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("AZaz09-_.,=+ "))
    assume(text[place] not in ", ")
    assume(text[place] != other)
    assert isinstance(verify(text[:place] + other + text[place + 1 :], AGENTS[2]), Refused)


@given(st.text(max_size=200))
def test_random_text_is_refused_without_exception(text: str) -> None:
    broken(verify(text))


def grant(number: int = 0, scopes: Any = ("booking:room",), **options: Any) -> delegation.Chain | Refused:
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
    return delegation.grant_authority(**{**standard, **options})


def granted(*arguments: Any, **options: Any) -> delegation.Chain:
    found = grant(*arguments, **options)
    assert isinstance(found, delegation.Chain), found
    return found


def delegation_grant_verify(chain: delegation.Chain, caller: str) -> delegation.Chain | Refused:
    return delegation.verify_chain(
        chain.header, caller=caller, server_id=SERVER, key_of=key_of, grant_of=lambda _: HELD, now=NOW + 1
    )


def test_granted_delegation_verifies_with_and_without_a_key_and_with_all_held_scopes() -> None:
    chain = granted()
    assert delegation_grant_verify(chain, AGENTS[1]) == chain
    assert (chain.scopes, chain.expires) == (Scopes(["booking:room"]), int(NOW) + 600)
    chain = granted(key=KEYS[SERVER], issuer=SERVER)
    assert delegation_grant_verify(chain, AGENTS[1]) == chain
    assert chain.delegators == (AGENTS[0],)
    assert granted(scopes=list(HELD)).scopes == HELD


def test_delegated_authority_can_be_delegated_up_to_its_depth() -> None:
    chain = granted(depth=delegation.LONGEST_CHAIN - 1)
    for number in range(1, delegation.LONGEST_CHAIN):
        chain = granted(number, parent=chain, held=chain.scopes, depth=delegation.LONGEST_CHAIN - 1 - number)
    assert delegation_grant_verify(chain, AGENTS[delegation.LONGEST_CHAIN]) == chain
    refused = grant(delegation.LONGEST_CHAIN, parent=chain, held=chain.scopes)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (262, "delegation-depth-exceeded")


@pytest.mark.parametrize(("depth", "given_depth"), [(0, 0), (1, 1), (3, 5), (7, -1)])
def test_depth_beyond_the_remaining_one_is_refused(depth: int, given_depth: int) -> None:
    parent = granted(depth=depth)
    refused = grant(1, parent=parent, held=parent.scopes, depth=given_depth)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.details["depth_left"]) == (262, depth - 1)


def test_delegation_expires_with_its_parent_and_has_no_more_scopes() -> None:
    parent = granted(depth=1, lifetime=60)
    assert granted(1, parent=parent, held=parent.scopes, lifetime=3600).expires == int(NOW) + 60
    parent = granted(scopes=["rooms:read"], depth=1)
    refused = grant(1, parent=parent, scopes=["booking:room"])
    assert isinstance(refused, Refused)
    assert refused.details["invalid"] == ["booking:room"]


@pytest.mark.parametrize("scopes", [["payments:send"], ["booking:room", "rooms:*"], ["*:read"]])
def test_wider_scopes_than_held_are_refused_and_logged(scopes: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        refused = grant(scopes=scopes)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code, refused.details["type"]) == (262, "scope-claim-invalid", "scope-required")
    assert refused.details["invalid"] == [scopes[-1]]
    assert AGENTS[0] in caplog.text
    assert scopes[-1] in caplog.text


@rows(
    "options, code",
    ({"delegate": "short"}, "invalid-canonical-id"),
    ({"delegate": AGENTS[0]}, "delegation-to-itself"),
    ({"scopes": []}, "invalid-authority-scope"),
    ({"scopes": ["No"]}, "invalid-authority-scope"),
    ({"scopes": ["rooms:read"] * 65}, "invalid-authority-scope"),
    ({"scopes": [f"booking:{'x' * 200}{n}" for n in range(40)]}, "delegation-too-large"),
    ({"lifetime": 0}, "invalid-lifetime"),
    ({"lifetime": float("nan")}, "invalid-lifetime"),
    ({"lifetime": float("inf")}, "invalid-lifetime"),
)
def test_invalid_delegation_is_refused(options: dict[str, Any], code: str) -> None:
    refused = grant(**options)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (422, code)


@pytest.mark.requirement("CORE-7.6-1")
@given(st.lists(TOKENS, min_size=1, max_size=4), st.lists(TOKENS, min_size=1, max_size=4), st.lists(TOKENS, max_size=3))
@settings(max_examples=100)
def test_authority_never_grows_along_a_chain(held: list[str], first: list[str], second: list[str]) -> None:
    own = Scopes(held)
    parent = grant(scopes=first, held=own, depth=1)
    assert isinstance(parent, delegation.Chain) == (not own.missing(first))
    if isinstance(parent, delegation.Chain):
        child = grant(1, scopes=second, held=parent.scopes, parent=parent)
        if isinstance(child, delegation.Chain):
            assert not own.missing(second)


SAID: dict[str, Any] = {
    "iss": "1" * 64,
    "sub": "2" * 64,
    "aud": "rooms",
    "scope": ["rooms:read"],
    "depth": 0,
    "exp": 1_800_003_600,
    "iat": 1_800_000_000,
    "jti": "one",
}


def read(token: str) -> delegation.Claims | delegation.Break:
    return delegation.read_token(token, "rooms", lambda _: KEY.public_key())


def test_claims_are_read_back_and_unknown_ones_are_not_in_the_token() -> None:
    said = msgspec.convert(SAID, delegation.Claims)
    assert read(delegation.sign_token(said, KEY)) == said
    assert said.holder == SAID["iss"]
    token = delegation.sign_token(msgspec.convert(SAID, delegation.Claims), KEY)
    assert token.count(".") == 2
    head, body, _ = token.split(".")
    assert msgspec.json.decode(decode64(head) or b"") == {"alg": ALGORITHM, "typ": "agtp-delegation+jwt"}
    assert msgspec.json.decode(decode64(body) or b"") == SAID


def test_members_of_later_releases_are_ignored() -> None:
    header = {"alg": "Ed25519", "typ": "agtp-delegation+jwt", "kid": "k"}
    token = sign_compact(header, msgspec.json.encode({**SAID, "new": 1}), KEY)
    assert isinstance(read(token), delegation.Claims)
    x = encode64(KEY.public_key().public_bytes_raw()).decode()
    jose = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": x})
    assert deserialize_compact(token, jose, algorithms=["Ed25519"]).headers()["kid"] == "k"


@pytest.mark.parametrize("member", ['"scope":["a:b"]', '"new":{"a":1,"a":2}'])
def test_repeated_claim_is_refused(member: str) -> None:
    header = {"alg": ALGORITHM, "typ": "agtp-delegation+jwt"}
    claims = msgspec.json.encode(SAID).replace(b"{", b"{" + member.encode() + b",", 1)
    assert read(sign_compact(header, claims, KEY)).reason == "malformed"


@pytest.mark.parametrize("name", SAID)
def test_missing_or_mistyped_claim_is_refused(name: str) -> None:
    header = {"alg": ALGORITHM, "typ": "agtp-delegation+jwt"}
    for said in ({key: value for key, value in SAID.items() if key != name}, {**SAID, name: {}}):
        assert read(sign_compact(header, msgspec.json.encode(said), KEY)).reason == "malformed"


@rows(
    "changed",
    *({"jti": ""}, {"jti": "a\x00b"}, {"jti": "a b"}, {"jti": "\u00fc"}, {"jti": "x" * 129}),
    *({"exp": 2**63 - 1}, {"exp": 253_402_300_800}, {"iat": -(2**63)}),
)
def test_invalid_id_and_unlimited_lifetime_are_refused(changed: dict[str, Any]) -> None:
    found = read(delegation.sign_token(msgspec.convert({**SAID, **changed}, delegation.Claims), KEY))
    assert found.reason == "malformed"


def test_too_long_token_is_not_decoded_and_the_hash_of_a_token_is_unique() -> None:
    long = msgspec.convert({**SAID, "jti": "x" * delegation.LONGEST_TOKEN}, delegation.Claims)
    found = read(delegation.sign_token(long, KEY))
    assert str(delegation.LONGEST_TOKEN) in found.message
    assert delegation.token_hash("a") != delegation.token_hash("b")
    assert len(delegation.token_hash("a")) == 43
