"""Claims under a good signature: for this server, now, by the right issuer, and of one agent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.state.identity.issuer import AGENT, NOW, OTHER, SERVER, claims, encode

from bespeak.protocol.exchange.principal import Scopes, is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.bearer import read_claims
from bespeak.state.identity.credentials import Authenticated
from bespeak.state.identity.settings import TokenSettings


def good(content: dict[str, Any], **settings: Any) -> Authenticated:
    found = read_claims(content, TokenSettings(**settings), audiences=[SERVER], now=NOW)
    assert isinstance(found, Authenticated), found
    return found


def refused(content: dict[str, Any], **settings: Any) -> str:
    found = read_claims(content, TokenSettings(**settings), audiences=[SERVER], now=NOW)
    assert isinstance(found, Refused), found
    assert found.status == 401
    return found.code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"exp": NOW - 31}, "token-expired"),
        ({"exp": NOW - 30}, "token-expired"),
        ({"exp": -1e9}, "token-expired"),
        ({"exp": None}, "token-malformed"),
        ({"exp": "tomorrow"}, "token-malformed"),
        ({"exp": True}, "token-malformed"),
        ({"exp": 10**400}, "token-malformed"),
        ({"exp": 1e308}, "token-malformed"),
        ({"nbf": NOW + 31}, "token-not-yet-valid"),
        ({"nbf": "now"}, "token-malformed"),
        ({"iat": NOW + 31}, "token-not-yet-valid"),
        ({"iat": []}, "token-malformed"),
        ({"aud": "other"}, "token-audience-wrong"),
        ({"aud": None}, "token-audience-wrong"),
        ({"aud": []}, "token-audience-wrong"),
        ({"aud": {SERVER: 1}}, "token-audience-wrong"),
        ({"aud": f"{SERVER} "}, "token-audience-wrong"),
        ({"agent_id": None}, "token-agent-missing"),
        ({"agent_id": "short"}, "token-agent-missing"),
        ({"agent_id": AGENT.upper()}, "token-agent-missing"),
        ({"agent_id": f"{AGENT}\n"}, "token-agent-missing"),
        ({"agent_id": [AGENT]}, "token-agent-missing"),
        ({"agent_id": "short", "sub": AGENT}, "token-agent-missing"),
        ({"sub": 7}, "token-malformed"),
        ({"agent_id": None, "sub": "alice"}, "token-agent-missing"),
        ({"scope": "booking:room\nrooms:read"}, "token-malformed"),
        ({"scope": "booking:room\x00"}, "token-malformed"),
        ({"scope": "booking:r\x1bm"}, "token-malformed"),
        ({"scope": ["booking:room", "rooms:read\r"]}, "token-malformed"),
        ({"scope": ["booking:room rooms:read"]}, "token-malformed"),
        ({"scope": ["booking:room", 7]}, "token-malformed"),
        ({"scope": {"booking": "room"}}, "token-malformed"),
        ({"scope": "a:b " * 300}, "token-malformed"),
        ({"cnf": {"jkt": "x"}}, "token-binding-wrong"),
        ({"cnf": {"x5t#S256": "short"}}, "token-binding-wrong"),
        ({"cnf": {"x5t#S256": "é" * 43}}, "token-binding-wrong"),
        ({"cnf": {"x5t#S256": "A" * 43, "jkt": "x"}}, "token-binding-wrong"),
        ({"cnf": "x"}, "token-binding-wrong"),
        ({"cnf": {}}, "token-binding-wrong"),
        ({"principal_id": "a\nb"}, "token-malformed"),
        ({"principal_id": ""}, "token-malformed"),
        ({"principal_id": 7}, "token-malformed"),
        ({"principal_id": "x" * 257}, "token-malformed"),
    ],
)
def test_invalid_claim_is_refused(changes: dict[str, Any], code: str) -> None:
    assert refused(claims(**changes)) == code


@pytest.mark.parametrize("changes", [{"exp": NOW - 29}, {"nbf": NOW + 30}, {"iat": NOW + 29}])
def test_clocks_may_differ_a_little(changes: dict[str, Any]) -> None:
    assert good(claims(**changes))


def test_clock_skew_is_configurable() -> None:
    assert refused(claims(exp=NOW), leeway=0) == "token-expired"


@pytest.mark.parametrize(("scope", "expected"), [
    (None, None),
    ("", Scopes()),
    ("openid profile booking:room", Scopes(["booking:room"])),
    (["a:b", "c:d"], Scopes(["a:b", "c:d"])),
    ("a:b,c:d", Scopes(["a:b", "c:d"])),
    ("Booking:Room", Scopes()),
])  # fmt: skip
def test_scopes_are_a_string_or_list_and_other_words_grant_nothing(scope: Any, expected: Any) -> None:
    assert good(claims(scope=scope)).scopes == expected


def test_subject_that_is_an_agent_id_gives_the_agent() -> None:
    assert good(claims(agent_id=None, sub=OTHER)).agent_id == OTHER
    assert good(claims(sub="alice")).agent_id == AGENT
    assert good(claims(sub="alice")).holders == ("alice",)
    assert good(claims(sub="")).holders == ()


def test_the_agent_of_a_user_can_be_derived() -> None:
    given = claims(agent_id=None, sub="auth0|7", iss="https://id")
    found = good(given, derive_agent=True).agent_id
    assert is_canonical_id(found)
    assert good({**given, "scope": "a:b"}, derive_agent=True).agent_id == found
    others = [good({**given, name: "x"}, derive_agent=True).agent_id for name in ("sub", "iss")]
    assert len({found, *others}) == 3
    assert good({**given, "sub": OTHER}, derive_agent=True).agent_id == OTHER


@pytest.mark.parametrize("changes", [{"agent_id": "wrong"}, {"sub": ""}, {"sub": None}, {"iss": None}, {"iss": ""}])
def test_nothing_is_derived_from_claims_that_are_wrong_or_missing(changes: dict[str, Any]) -> None:
    given = {**claims(agent_id=None, sub="ann", iss="https://id"), **changes}
    assert refused(given, derive_agent=True) == "token-agent-missing"


def test_claims_and_issuer_are_configurable() -> None:
    own = {"agent_claim": "who", "scope_claim": "scp", "principal_claim": "for", "issuer": "https://id"}
    given = claims(who=OTHER, scp=["x:y"], iss="https://id", aud=["them", SERVER]) | {"for": "acme"}
    token = good(given, **own)
    assert (token.agent_id, token.scopes, token.principal_id) == (OTHER, Scopes(["x:y"]), "acme")
    assert refused({**given, "iss": "https://other"}, **own) == "token-issuer-wrong"
    assert refused({**given, "iss": ["https://id"]}, **own) == "token-issuer-wrong"
    del given["iss"], given["who"]
    assert refused(given, **own) == "token-issuer-wrong"
    assert refused({**given, "iss": "https://id"}, **own) == "token-agent-missing"


def test_a_token_may_be_bound_to_a_certificate() -> None:
    assert good(claims(cnf={"x5t#S256": encode(b"\x01" * 32)})).tls_identity == "01" * 32
    assert good(claims()).tls_identity is None


value = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers())


@given(
    st.dictionaries(
        st.sampled_from(["exp", "nbf", "iat", "aud", "iss", "agent_id", "sub", "scope", "principal_id", "cnf"]), value
    )
)
def test_any_claims_are_accepted_or_refused(changes: dict[str, Any]) -> None:
    found = read_claims({**claims(), **changes}, TokenSettings(), audiences=[SERVER], now=NOW)
    assert isinstance(found, Authenticated | Refused)
