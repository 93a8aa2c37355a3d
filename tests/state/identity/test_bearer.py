"""Tokens: valid ones are accepted and cached, forgeries are refused, and the verifier never raises."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.state.identity.issuer import (
    AGENT,
    NOW,
    OTHER,
    SERVER,
    Clock,
    claims,
    decode,
    encode,
    new_key,
    public,
    sign,
    unsigned,
    write_keys,
)

from bespeak.protocol.exchange.principal import Scopes, is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.bearer import BearerVerifier, read_claims
from bespeak.state.identity.credentials import Authenticated, Outdated
from bespeak.state.identity.jwks import FILE_PERIOD, FileKeys, UrlKeys
from bespeak.state.identity.settings import TokenSettings

KEY = new_key()
EC = new_key("P-256")
RSA = new_key("RSA")
part = st.text("abcABC012-_=+/") | st.binary().map(encode) | st.dictionaries(
    st.sampled_from(["alg", "kid", "typ", "crit", "b64", "exp", "aud"]),
    st.sampled_from(["EdDSA", "ES256", "none", "k", "JWT"]) | st.none() | st.integers() | st.lists(st.text()),
).map(lambda value: encode(json.dumps(value).encode()))  # fmt: skip
value = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers())


class Bench:
    """A verifier on a file of keys, and the clock of both."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock = Clock()
        self.path = write_keys(folder / "keys.json", public(KEY, kid="k"), public(EC, kid="e"), public(RSA, kid="r"))
        self.source = FileKeys(self.path, clock=self.clock)
        self.verifier = BearerVerifier(TokenSettings(**settings), self.source, audience=SERVER, clock=self.clock)

    def good(self, token: str) -> Authenticated:
        found = self.verifier.verify(token)
        assert isinstance(found, Authenticated), found
        return found

    def code(self, token: str) -> str:
        found = self.verifier.verify(token)
        assert isinstance(found, Refused), found
        assert found.status == 401
        assert not [part for part in token.split(".") if len(part) > 16 and part[:16] in str(found)]
        return found.code

    @property
    def remembered(self) -> int:
        return len(self.verifier._good)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_valid_token_gives_agent_scopes_and_principal(bench: Bench) -> None:
    token = bench.good(sign(KEY, claims(principal_id="acme", scope="booking:room, rooms:*"), kid="k"))
    assert token == Authenticated(AGENT, ("token",), Scopes(["booking:room", "rooms:*"]), "acme", expires_at=NOW + 600)


@pytest.mark.parametrize(
    ("key", "alg"), [(KEY, "EdDSA"), (KEY, "Ed25519"), (EC, "ES256"), (RSA, "RS256"), (RSA, "PS256")]
)
def test_every_algorithm_on_the_list_is_verified(tmp_path: Path, key: Any, alg: str) -> None:
    bench = Bench(tmp_path, algorithms=("EdDSA", "ES256", "RS256", "PS256"))
    for header in ({}, {"kid": None}):
        names = {"kid": {"EdDSA": "k", "Ed25519": "k", "ES256": "e"}.get(alg, "r")} if "kid" in header else {}
        assert bench.good(sign(key, alg=alg, **names)).agent_id == AGENT


def test_valid_token_is_cached_until_it_expires(bench: Bench) -> None:
    token = sign(KEY, kid="k")
    first = bench.good(token)
    assert bench.good(token) is first
    bench.clock.now = NOW + 629
    assert bench.good(token) is first
    bench.clock.now = NOW + 630
    assert bench.code(token) == "token-expired"
    assert bench.remembered == 0


def test_refused_token_is_not_cached(bench: Bench) -> None:
    for token in ("x", "a.b.c", sign(new_key(), kid="k"), sign(KEY, claims(aud="other"), kid="k")):
        bench.code(token)
    assert bench.remembered == 0


def test_cache_is_bounded(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr("bespeak.state.identity.bearer._REMEMBERED", 3)
    tokens = [sign(KEY, claims(jti=str(number)), kid="k") for number in range(5)]
    for token in tokens:
        bench.good(token)
    assert bench.remembered == 3
    assert bench.good(tokens[0]).agent_id == AGENT


def test_invalid_signed_claim_is_refused(bench: Bench) -> None:
    assert bench.code(sign(KEY, claims(exp=NOW - 31), kid="k")) == "token-expired"
    assert bench.code(sign(KEY, claims(aud="other"), kid="k")) == "token-audience-wrong"
    assert bench.remembered == 0


def test_audience_is_configured_or_the_server_id(tmp_path: Path) -> None:
    assert Bench(tmp_path, audience="us").code(sign(KEY, kid="k")) == "token-audience-wrong"
    assert Bench(tmp_path, audience="us").good(sign(KEY, claims(aud="us"), kid="k"))


def test_a_forged_signature_is_refused(bench: Bench) -> None:
    assert bench.code(sign(new_key(), kid="k")) == "token-signature-invalid"
    header, payload, signature = sign(KEY, kid="k").split(".")
    other = encode(json.dumps(claims(agent_id=OTHER)).encode())
    assert bench.code(f"{header}.{other}.{signature}") == "token-signature-invalid"
    assert bench.code(f"{header}.{payload}.") == "token-signature-invalid"
    assert bench.code(f"{header}.{payload}.{signature[:-2]}") == "token-signature-invalid"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", "HS256", "EdDSA ", "ES512", 7, None, ["EdDSA"]])
def test_a_token_without_a_signature_is_refused(bench: Bench, alg: Any) -> None:
    code = "token-algorithm-refused" if isinstance(alg, str) else "token-malformed"
    assert bench.code(unsigned({"alg": alg, "kid": "k"}, claims())) == code


@pytest.mark.parametrize(
    "secret", [KEY.as_pem(private=False), json.dumps(public(KEY)).encode(), decode(KEY["x"])], ids=["pem", "jwk", "raw"]
)
def test_public_key_is_not_accepted_as_shared_secret(bench: Bench, secret: bytes) -> None:
    content = unsigned({"alg": "HS256", "kid": "k"}, claims()).removesuffix(".")
    forged = f"{content}.{encode(hmac.digest(secret, content.encode(), 'sha256'))}"
    assert bench.code(forged) == "token-algorithm-refused"


def test_disallowed_algorithm_and_key_inside_the_token_are_refused(bench: Bench) -> None:
    assert bench.code(sign(RSA, alg="RS256", kid="r")) == "token-algorithm-refused"
    assert bench.code(sign(EC, alg="ES256", kid="k")) == "token-algorithm-refused"
    forger = new_key()
    carried = sign(forger, kid="k", jwk=public(forger), jku="https://forger.example/", x5u="https://forger.example/")
    assert bench.code(carried) == "token-signature-invalid"


@rows(
    "header",
    *({"typ": "agtp-delegation+jwt"}, {"typ": 7}, {"crit": ["x"], "x": 1}, {"crit": []}),
    *({"crit": ["b64"], "b64": False}, {"b64": False}, {"kid": 7}, {"kid": ["k"]}),
)
def test_token_of_another_type_is_refused(bench: Bench, header: dict[str, Any]) -> None:
    assert bench.code(unsigned({"alg": "EdDSA", "kid": "k", **header}, claims(), "A" * 86)) == "token-malformed"


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_accepted_token_types(bench: Bench, kind: str) -> None:
    assert bench.good(sign(KEY, kid="k", typ=kind))


@rows(
    "payload",
    *(b"", b"null", b"[]", b"{", b'"text"', b"\xff", b"[" * 5000, b'{"exp": NaN}', b'{"a": 1e999}'),
    json.dumps(claims()).encode().replace(b"{", b'{"exp": 1, ', 1),
)
def test_signed_payload_that_is_not_an_object_is_refused(bench: Bench, payload: bytes) -> None:
    assert bench.code(sign(KEY, payload or b"0", kid="k")) == "token-malformed"


def test_header_with_a_repeated_key_is_refused(bench: Bench) -> None:
    _, payload, signature = sign(KEY, kid="k").split(".")
    header = encode(b'{"alg":"none","alg":"EdDSA","kid":"k"}')
    assert bench.code(f"{header}.{payload}.{signature}") == "token-malformed"


@rows(
    "token",
    *("", "x", ".", "..", "a.b", "a.b.c.d", "a.b.c.d.e", "é.é.é", "\x00", "\ud800", "a b.c.d"),
    *("e30.e30.AA", "W10.W10.AA", "bnVsbA.e30.AA", encode(b"[" * 2000) + ".e30.AA"),
    *(encode(b'{"alg":' * 400) + ".e30.AA", "a" * 8193, "a." * 1_000_000),
    unsigned({"alg": "EdDSA", "kid": "k", "pad": "x" * 5000}, claims()),
    ids=range(19),
)
def test_invalid_token_text_is_refused(bench: Bench, token: str) -> None:
    found = bench.verifier.verify(token)
    assert isinstance(found, Refused)
    assert found.code == "token-malformed"


def test_unknown_key_asks_for_a_refresh_and_rotation_drops_the_old(bench: Bench) -> None:
    old, new = sign(KEY, kid="k"), new_key()
    rotated = sign(new, kid="n")
    bench.good(old)
    assert bench.code(rotated) == "token-key-unknown"
    write_keys(bench.path, public(new, kid="n"))
    assert bench.verifier.verify(rotated).refused.code == "token-key-unknown"
    bench.clock.now += FILE_PERIOD
    assert bench.good(rotated).agent_id == AGENT
    assert bench.code(old) == "token-key-unknown"
    assert bench.remembered == 1


def test_withdrawn_key_invalidates_cached_tokens(bench: Bench) -> None:
    token = sign(KEY, kid="k")
    bench.good(token)
    write_keys(bench.path, public(EC, kid="e"))
    bench.clock.now += FILE_PERIOD
    assert bench.code(token) == "token-key-unknown"


def test_missing_keys_are_an_error_of_the_server() -> None:
    clock = Clock()
    source = UrlKeys("http://127.0.0.1:9/", clock=clock)
    source.due = clock.now + 1
    found = BearerVerifier(TokenSettings(), source, audience=SERVER, clock=clock).verify(sign(KEY, kid="k"))
    assert (found.refused.status, found.refused.code) == (503, "token-keys-unavailable")
    assert found.refused.headers == (("Retry-After", "10"),)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bearer"))


@given(token=st.text() | st.lists(part, min_size=3, max_size=3).map(".".join))
def test_random_text_is_refused_without_exception(shared: Bench, token: str) -> None:
    assert isinstance(shared.verifier.verify(token), Refused | Outdated)
    assert shared.remembered == 0


def good(content: dict[str, Any], **settings: Any) -> Authenticated:
    found = read_claims(content, TokenSettings(**settings), audiences=[SERVER], now=NOW)
    assert isinstance(found, Authenticated), found
    return found


def refused(content: dict[str, Any], **settings: Any) -> str:
    found = read_claims(content, TokenSettings(**settings), audiences=[SERVER], now=NOW)
    assert isinstance(found, Refused), found
    assert found.status == 401
    return found.code


WRONG_CLAIMS: dict[str, dict[str, list[Any]]] = {
    "token-expired": {"exp": [NOW - 31, NOW - 30, -1e9]},
    "token-malformed": {
        "exp": [None, "tomorrow", True, 10**400, 1e308],
        "nbf": ["now"],
        "iat": [[]],
        "sub": [7],
        "scope": [
            *("booking:room\nrooms:read", "booking:room\x00", "booking:r\x1bm", ["booking:room", "rooms:read\r"]),
            *(["booking:room rooms:read"], ["booking:room", 7], {"booking": "room"}, "a:b " * 300),
        ],
        "principal_id": ["a\nb", "", 7, "x" * 257],
    },
    "token-not-yet-valid": {"nbf": [NOW + 31], "iat": [NOW + 31]},
    "token-audience-wrong": {"aud": ["other", None, [], {SERVER: 1}, f"{SERVER} "]},
    "token-agent-missing": {"agent_id": [None, "short", AGENT.upper(), f"{AGENT}\n", [AGENT]]},
    "token-binding-wrong": {
        "cnf": [
            *({"jkt": "x"}, {"x5t#S256": "short"}, {"x5t#S256": "é" * 43}, "x", {}),
            {"x5t#S256": "A" * 43, "jkt": "x"},
        ]
    },
}


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [(code, name, value) for code, by in WRONG_CLAIMS.items() for name, values in by.items() for value in values],
)
def test_invalid_claim_is_refused(code: str, name: str, value: Any) -> None:
    assert refused(claims(**{name: value})) == code


@pytest.mark.parametrize("changes", [{"agent_id": "short", "sub": AGENT}, {"agent_id": None, "sub": "alice"}])
def test_a_subject_does_not_replace_a_wrong_or_missing_agent(changes: dict[str, Any]) -> None:
    assert refused(claims(**changes)) == "token-agent-missing"


@pytest.mark.parametrize("changes", [{"exp": NOW - 29}, {"nbf": NOW + 30}, {"iat": NOW + 29}])
def test_clocks_may_differ_a_little(changes: dict[str, Any]) -> None:
    assert good(claims(**changes))


def test_skew_is_configurable_and_agent_and_certificate_are_taken_from_the_claims() -> None:
    assert refused(claims(exp=NOW), leeway=0) == "token-expired"
    assert good(claims(agent_id=None, sub=OTHER)).agent_id == OTHER
    assert good(claims(sub="alice")).agent_id == AGENT
    assert good(claims(sub="alice")).holders == ("alice",)
    assert good(claims(sub="")).holders == ()
    assert good(claims(cnf={"x5t#S256": encode(b"\x01" * 32)})).tls_identity == "01" * 32
    assert good(claims()).tls_identity is None


@rows("scope, expected",
    (None, None),
    ("", Scopes()),
    ("openid profile booking:room", Scopes(["booking:room"])),
    (["a:b", "c:d"], Scopes(["a:b", "c:d"])),
    ("a:b,c:d", Scopes(["a:b", "c:d"])),
    ("Booking:Room", Scopes()),
)  # fmt: skip
def test_scopes_are_a_string_or_list_and_other_words_grant_nothing(scope: Any, expected: Any) -> None:
    assert good(claims(scope=scope)).scopes == expected


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


@given(
    st.dictionaries(
        st.sampled_from(["exp", "nbf", "iat", "aud", "iss", "agent_id", "sub", "scope", "principal_id", "cnf"]), value
    )
)
def test_any_claims_are_accepted_or_refused(changes: dict[str, Any]) -> None:
    found = read_claims({**claims(), **changes}, TokenSettings(), audiences=[SERVER], now=NOW)
    assert isinstance(found, Authenticated | Refused)
