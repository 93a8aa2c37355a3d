"""Tokens over real sockets: only those of the issuer, for this server and time; headers alone on this machine only."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from joserfc.jwk import OctKey
from tests.cases import rows
from tests.process import Served, bespeak
from tests.security.guarded import AGENT, SCOPE, Guarded, Line, ask, bearer
from tests.state.identity.issuer import OTHER, claims, new_key, public, sign, unsigned

pytestmark = pytest.mark.process
NOW = int(time.time())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Guarded:
    return Guarded(tmp_path_factory.mktemp("tokens"), "token")


@pytest.fixture(scope="module")
def served(guarded: Guarded) -> Iterator[Served]:
    with guarded.serving() as served:
        yield served


@pytest.mark.requirement("CORE-6.1-1", "CORE-2.3-5")
def test_valid_tokens_authenticate_the_caller_within_their_scopes(guarded: Guarded, served: Served) -> None:
    answer = ask(served, bearer(guarded.token()))
    assert (answer.status, answer.json["agent"], answer.json["verified"]) == (200, AGENT, "token")
    assert ask(served, bearer(guarded.token(), Agent_ID=OTHER)).code == "agent-id-mismatch"
    assert ask(served, {"Agent-ID": AGENT}).code == "agent-unauthenticated"
    assert ask(served, {"Agent-ID": AGENT, "Authorization": "Basic YTpi"}).status == 401
    wider = ask(served, bearer(guarded.token(), Authority_Scope="booking:*"))
    assert (wider.status, wider.code) == (262, "scope-claim-invalid")
    poorer = ask(served, bearer(guarded.token(scope="booking:room")))
    assert poorer.status == 455
    assert "booking:seat" in poorer.body.decode()


@rows(
    "changes, code",
    ({"exp": NOW - 3600, "iat": NOW - 7200}, "token-expired"),
    ({"nbf": NOW + 3600}, "token-not-yet-valid"),
    ({"aud": "other.example"}, "token-audience-wrong"),
    ({"aud": None}, "token-audience-wrong"),
    ({"iss": "https://forger.example"}, "token-issuer-wrong"),
    ({"exp": None}, ""),
    ({"agent_id": "nobody"}, ""),
)
def test_a_token_for_another_time_audience_or_agent_is_refused(
    guarded: Guarded, served: Served, changes: dict[str, object], code: str
) -> None:
    answer = ask(served, bearer(guarded.token(**changes)))
    assert answer.status == 401
    assert code in answer.code


def forgeries(guarded: Guarded) -> dict[str, str]:
    good = guarded.token()
    head, payload, signature = good.split(".")
    forger = new_key()
    known = public(guarded.issuer)
    content = claims(exp=NOW + 600, iss="https://issuer.example", scope="booking:seat")
    shared = OctKey.import_key(base64.urlsafe_b64decode(known["x"] + "=="))
    changed = unsigned({}, {**content, "agent_id": OTHER}).split(".")[1]
    return {
        "by another key": guarded.token(forger),
        "by another key without a name": guarded.token(forger, kid=None),
        "with the key of the forger in it": sign(forger, content, kid="k", jwk=public(forger)),
        "with an address of keys in it": sign(forger, content, kid="k", jku="https://forger.example/jwks"),
        "none": unsigned({"alg": "none"}, content),
        "None with a signature": unsigned({"alg": "None", "kid": "k"}, content, signature),
        "signed with the public key as a secret": sign(shared, content, alg="HS256", kid="k"),
        "with another payload": f"{head}.{changed}.{signature}",
        "with half a signature": good[:-40],
        "without a signature": f"{head}.{payload}.",
        "no token": "x",
        "only dots": "..",
        "very long": "a." * 20_000 + "a",
    }


def test_forged_tokens_are_refused(guarded: Guarded, served: Served) -> None:
    for name, token in forgeries(guarded).items():
        with Line(served.port) as line:
            answer = line.ask(headers=bearer(token))
        assert answer.status in (401, 431), (name, answer)
        assert token.encode() not in answer.body, name
    assert ask(served, bearer(guarded.token())).status == 200


@pytest.mark.parametrize("character", ["\x00", "\x01", "\x07", "\x0b", "\x1b", "\x7f", "\x85", "\xa0", "\r"])
@pytest.mark.parametrize("place", ["booking{}:seat", "booking:{}seat", "booking:seat{}", "{},booking:seat"])
def test_scope_with_control_character_is_refused(guarded: Guarded, served: Served, character: str, place: str) -> None:
    scope = place.format(character)
    with Line(served.port) as line:
        try:
            answer = line.ask(headers=bearer(guarded.token(), Authority_Scope=scope))
        except ConnectionError:
            return  # bytes that are no request at all need no answer
        assert answer.status == 400, answer
        assert character.encode() not in answer.body


@pytest.mark.parametrize("scope", ["booking:seat\x00", "booking:seat\n", "\x1b[31m", ["booking:seat\x07"]])
def test_token_scopes_with_control_characters_grant_nothing(guarded: Guarded, served: Served, scope: object) -> None:
    answer = ask(served, bearer(guarded.token(scope=scope)))
    assert answer.status in (262, 401, 455), answer


def test_a_header_is_enough_on_this_machine(tmp_path: Path) -> None:
    with Guarded(tmp_path, "open").serving() as served:
        answer = ask(served, {"Agent-ID": AGENT, "Authority-Scope": SCOPE})
        assert (answer.status, answer.json["agent"], answer.json["verified"]) == (200, AGENT, None)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:4480", "seats.example:4480"])
@pytest.mark.parametrize("encrypted", [True, False])
def test_it_is_not_beyond_it_whether_encrypted_or_not(tmp_path: Path, address: str, encrypted: bool) -> None:
    guarded = Guarded(tmp_path, "open")
    pair = ("--cert", str(tmp_path / "server.pem"), "--key", str(tmp_path / "server.key.pem"))
    options = ("--store", guarded.store, *(pair if encrypted else ()))
    refused = bespeak("serve", str(tmp_path), "--agtp", address, *options)
    assert refused.returncode == 2
    assert ("would not be authenticated" if encrypted else "needs TLS") in refused.stderr
    assert "--insecure" in refused.stderr
    assert not Path(guarded.store).exists()
