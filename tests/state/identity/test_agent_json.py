"""Agent identity documents in both forms."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from tests.cases import rows

from bespeak.contract.agent import Agent, Genesis, canonical_genesis, genesis_id
from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.identity.agent_json import genesis_of, parse_agent, private_keys, read_agent
from bespeak.state.identity.genesis import issue_genesis
from bespeak.state.identity.jws import generate_key, private_text, public_jwk
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import json_table

ID = "a1" * 32
BROKEN = Agent(agent_id=ID, name=ID[:12], status="unreadable")
KEY = OKPKey.import_key(
    {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    }
)
KEYS = st.sampled_from(
    ["agent_id", "name", "status", "requires", "scopes_accepted", "methods", "wildcards", "document_type"]
)
PEM = private_text(KEY)
ISSUER = generate_key()
AGENT = generate_key()
RAW = public_jwk(ISSUER)["x"]
PRIVATE = ISSUER.private_key


def parse(**fields: Any) -> tuple[Agent | None, list[Diagnostic]]:
    return parse_agent(json.dumps({"agent_id": ID, "name": "Ada", **fields}), "a.json")


def agent(**fields: Any) -> Agent:
    read, _ = parse(**fields)
    assert read is not None
    return read


def test_agent_grants_what_its_requires_block_or_the_fields_of_the_draft_list() -> None:
    read = agent(requires={"scopes": ["a:b"], "methods": ["BOOK"], "wildcards": True}, scopes_accepted=["c:d"])
    assert (read.scopes, read.methods, read.wildcards) == (("a:b",), ("BOOK",), True)
    read = agent(scopes_accepted=["c:d"], methods=["QUERY"], wildcards=True)
    assert (read.scopes, read.methods, read.wildcards) == (("c:d",), ("QUERY",), True)
    assert agent(requires={"scopes": []}, scopes_accepted=["c:d"]).scopes == ()
    assert agent().wildcards is False


@pytest.mark.requirement("CORE-7.4-3")
@pytest.mark.parametrize(
    ("written", "read"), [("Active", "active"), ("Revoked", "retired"), ("suspended", "suspended")]
)
def test_lifecycle_states_are_compared_without_case(written: str, read: str) -> None:
    assert agent(status=written).status == read


def test_whole_document_is_stored() -> None:
    assert agent(extra={"x": [1]}).document["extra"] == {"x": [1]}


def test_invalid_scope_grants_nothing_and_is_reported() -> None:
    read, (finding,) = parse(scopes_accepted=["ok:yes", "Everything"])
    assert read.scopes == ("ok:yes",)
    assert (finding.rule, finding.severity) == ("D104", "warning")


@rows(
    "fields",
    *({"agent_id": None}, {"agent_id": ID.upper()}, {"agent_id": "agt-7f3a"}, {"agent_id": 7}),
    *({"name": None}, {"name": 1}, {"status": "asleep"}, {"requires": []}, {"requires": {"scopes": "a:b"}}),
    *({"requires": {"wildcards": "yes"}}, {"methods": [1]}),
)
def test_untrustworthy_document_is_refused(fields: dict[str, Any]) -> None:
    read, findings = parse(**fields)
    assert read == (None if "agent_id" in fields else BROKEN)
    assert [finding.severity for finding in findings] == ["error"]


def test_broken_document_grants_nothing_and_reserves_its_id() -> None:
    read, _ = parse(status="asleep", scopes_accepted=["booking:*"], wildcards=True)
    assert read == BROKEN
    assert not BROKEN.is_active
    assert (BROKEN.scopes, BROKEN.wildcards, BROKEN.public_key) == ((), False, None)


@pytest.mark.parametrize(
    "text",
    ['{"agent_id": "%s", "name": ', '[{"agent_id" :\n"%s"}]', '{"name": "\ud83d", "agent_id":"%s"}', '"agent_id":"%s"'],
)
def test_id_is_found_even_in_an_invalid_document(text: str) -> None:
    assert parse_agent(text % ID, "a.json")[0] == BROKEN


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"{}", b""])
def test_file_name_gives_the_id_if_the_text_does_not(tmp_path: Path, content: bytes) -> None:
    for name in (f"{ID}.json", f"{ID}.agent.json"):
        (tmp_path / name).write_bytes(content)
        read, findings = read_agent(tmp_path / name)
        assert read == BROKEN
        assert findings
    (tmp_path / "other.json").write_bytes(content)
    assert read_agent(tmp_path / "other.json")[0] is None


def test_missing_members_of_the_drafts_form_are_listed() -> None:
    read, (finding,) = parse(document_type="agtp-identity", status="active")
    assert read is not None
    assert finding.rule == "D115"
    assert "trust_score" in finding.message


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"a": \x00}', "[" * 100_000, '{"name": "\ud83d"}', '{"a": 1e999}']
)
def test_non_object_is_refused(text: str) -> None:
    read, findings = parse_agent(text, "a.json")
    assert read is None
    assert findings


def test_fault_in_the_json_has_its_place_and_an_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    _, (finding,) = parse_agent('{\n  "é": x}', "a.json")
    assert str(finding.location) == "a.json:2:8"
    assert read_agent(tmp_path / "none.json")[1][0].rule == "D101"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, JSON), st.dictionaries(st.sampled_from(["scopes", "methods", "wildcards"]), JSON))
def test_any_object_is_read_or_refused(fields: dict[str, Any], requires: dict[str, Any]) -> None:
    read, findings = parse(**{"requires": requires, **fields})
    assert (read is None or read.status == "unreadable") == any(finding.severity == "error" for finding in findings)


@pytest.mark.parametrize("written", [public_jwk(KEY), public_jwk(KEY)["x"], KEY.as_pem(private=False).decode()])
@pytest.mark.parametrize("name", ["public_key", "agent_public_key"])
def test_the_public_key_is_read_in_every_form(name: str, written: Any) -> None:
    assert agent(**{name: written}).public_key == public_jwk(KEY)


@pytest.mark.parametrize("written", ["no key", 7, {}, {"kty": "RSA"}, "A" * 42])
def test_invalid_public_key_makes_the_document_unreadable(written: Any) -> None:
    read, findings = parse(public_key=written)
    assert read == BROKEN
    assert {finding.rule for finding in findings} == {"D104"}


@rows(
    "fields",
    *({"public_key": KEY.as_dict(private=True)}, {"public_key": PEM}),
    *({"notes": ["x", {"deep": f"see {PEM}"}]}, {"private_key": "abc"}),
    *({"keys": [{"signing-secret-key": "abc"}]}, {"agent_private_key": {"x": 1}}),
    {"vault": {"kty": "oct", "k": "c2VjcmV0"}},
)
def test_private_key_in_a_document_is_an_error_that_does_not_quote_it(fields: dict[str, Any]) -> None:
    read, findings = parse(**fields)
    assert read == BROKEN
    assert "D196" in {finding.rule for finding in findings}
    assert PEM.splitlines()[1] not in repr(findings)
    assert str(KEY.as_dict(private=True)["d"]) not in repr(findings)


def test_the_fields_of_both_forms_are_read() -> None:
    read = agent(
        trust_tier=1,
        verification_path="dns-anchored",
        trust_score=0.75,
        principal="Acme",
        principal_id="p-1",
        owner_id="acme.example",
        issuer="https://acme.example",
        issued_at="2026-02-01T08:00:00Z",
        updated_at="2026-02-02T08:00:00+01:00",
        successor_agent="b1" * 32,
        delegation_permitted=True,
        max_delegation_depth=2,
    )
    assert (read.trust_tier, read.verification_path, read.trust_score) == (1, "dns-anchored", 0.75)
    assert (read.principal, read.principal_id, read.owner_id) == ("Acme", "p-1", "acme.example")
    expected = ("https://acme.example", "2026-02-01T08:00:00Z", "2026-02-02T08:00:00+01:00")
    assert (read.issuer, read.issued_at, read.updated_at) == expected
    assert (read.successor, read.delegation_permitted, read.max_delegation_depth) == ("b1" * 32, True, 2)


@pytest.mark.requirement("CORE-7.4-1")
@rows(
    "fields, rule",
    ({"trust_tier": 1}, "D198"),
    ({"trust_tier": 1, "verification_path": "self-signed"}, "D198"),
    ({"trust_tier": 4}, "D106"),
    ({"trust_tier": True}, "D106"),
    ({"trust_tier": "1"}, "D106"),
    ({"verification_path": "believed"}, "D106"),
    ({"max_delegation_depth": -1}, "D104"),
    ({"genesis": {}}, "D103"),
)
def test_trust_tier_without_proof_is_an_error(fields: dict[str, Any], rule: str) -> None:
    read, findings = parse(**fields)
    assert read == BROKEN
    assert rule in {finding.rule for finding in findings}


@rows(
    "fields",
    *({"trust_score": 1.5}, {"trust_score": -1}, {"issued_at": "yesterday"}),
    {"issued_at": "2026-02-02T08:00:00Z", "updated_at": "2026-02-01T08:00:00"},
)
def test_fault_without_effect_on_authority_is_a_warning(fields: dict[str, Any]) -> None:
    read, (finding,) = parse(**fields)
    assert read.trust_score is None
    assert (finding.rule, finding.severity) == ("D104", "warning")


def issued(**members: Any) -> Genesis:
    private = KEY.private_key
    assert isinstance(private, Ed25519PrivateKey)
    options: dict[str, Any] = {"name": "Ada", "owner": "Acme", "issuer": "https://acme.example", "key": private}
    made = issue_genesis(**{**options, "issued_at": "2026-02-01T08:00:00Z", **members})
    assert isinstance(made, Genesis)
    return made


def test_document_with_its_genesis_takes_trust_from_it_and_a_rotated_key_from_itself() -> None:
    genesis = issued(public_key=public_jwk(KEY), trust_tier=3)
    read = agent(agent_id=genesis.agent_id, genesis=dict(genesis.document))
    assert read.genesis == genesis
    assert (read.public_key, read.trust_tier, read.verification_path) == (public_jwk(KEY), 3, "self-signed")
    genesis, other = issued(public_key=public_jwk(KEY)), public_jwk(generate_key())
    read = agent(agent_id=genesis.agent_id, genesis=dict(genesis.document), public_key=other)
    assert read.public_key == other


@pytest.mark.requirement("CORE-7.1-2", "CORE-7.3-8")
def test_id_that_differs_from_the_genesis_and_a_changed_genesis_are_refused() -> None:
    read, findings = parse(genesis=dict(issued().document))
    assert read == BROKEN
    assert [finding.rule for finding in findings] == ["D197"]
    genesis = issued()
    changed = {**genesis.document, "owner": "Somebody"}
    read, findings = parse(agent_id=genesis_id(changed), genesis=changed)
    assert read.status == "unreadable"
    assert [finding.rule for finding in findings] == ["D197"]


def test_inactive_agent_without_a_time_has_that_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "ada.agent.json"
    for status, updated_at in (("revoked", "2026-05-01T00:00:00Z"), ("active", None)):
        file.write_text(json.dumps({"agent_id": ID, "name": "Ada", "status": status}))
        os.utime(file, (1_777_593_600, 1_777_593_600))
        read, _ = read_agent(file)
        assert read.updated_at == updated_at


@rows(
    "members",
    *({"staus": "revoked"}, {"Status": "revoked"}, {"scope_accepted": ["a:b"]}, {"max_delegation_dept": 0}),
    *({"delegation_permited": False}, {"requires": {"scope": ["a:b"]}}),
)
def test_a_misspelt_member_that_guards_something_refuses_the_agent(members: dict[str, Any]) -> None:
    read, (finding,) = parse(**members)
    assert read == BROKEN
    assert (finding.rule, finding.severity) == ("D105", "error")


def test_other_members_are_left_to_the_issuer() -> None:
    assert parse(badge="gold", issued="today", scopes=["a"], requires={"tools": []})[1] == []


def test_repeated_member_refuses_the_agent_with_its_place() -> None:
    text = f'{{"agent_id": "{ID}", "name": "Ada",\n "status": "revoked", "status": "active"}}'
    read, (finding,) = parse_agent(text, "a.json")
    assert read == BROKEN
    assert (finding.rule, str(finding.location)) == ("D102", "a.json:2:23")
    assert "'status' is repeated" in finding.message


assert isinstance(PRIVATE, Ed25519PrivateKey)

REFERENCE: dict[str, Any] = {
    "agtp_genesis_version": "agtp-genesis/1",
    "name": "Porter",
    "owner_id": "library.example",
    "principal_id": "p-1",
    "agent_public_key": AGENT.as_pem(private=False).decode(),
    "archetype": "executor",
    "governance_zone": "zone:library",
    "trust_tier": 2,
    "verification_path": "self-signed",
    "issued_at": "2026-02-01T08:00:00Z",
    "issuer": "library.example",
    "issuer_public_key": ISSUER.as_pem(private=False).decode(),
}
DRAFT: dict[str, Any] = {
    "owner": "Town Library",
    "archetype": "analyst",
    "governance_zone": "zone:library",
    "scope": ["lending:read"],
    "issued_at": "2026-02-01T08:00:00Z",
    "certificate_hash": "00" * 32,
    "trust_tier": 1,
    "verification_path": "log-anchored",
    "log_inclusion_proof": {"log": "x"},
    "issuer_public_key": RAW,
}


def signed(record: dict[str, Any], **members: Any) -> dict[str, Any]:
    whole = {name: value for name, value in {**record, **members}.items() if value is not ...}
    assert isinstance(PRIVATE, Ed25519PrivateKey)
    return {"signature": encode64(PRIVATE.sign(canonical_genesis(whole))).decode(), **whole}


def parse_genesis(text: str, file: str) -> tuple[Genesis | None, list[Diagnostic]]:
    root = json_table(text.encode(errors="surrogatepass"), file)
    return (None, [root]) if isinstance(root, Diagnostic) else (genesis_of(root), root.findings.found)


def genesis_json_parse(record: object) -> tuple[Genesis | None, list[Diagnostic]]:
    return parse_genesis(json.dumps(record, indent=1), "a.genesis.json")


def test_a_record_of_the_reference_implementation_is_read() -> None:
    genesis, findings = genesis_json_parse(signed(REFERENCE))
    assert genesis is not None, findings
    assert findings == []
    assert genesis.agent_id == genesis_id(REFERENCE)
    assert (genesis.name, genesis.owner, genesis.owner_id) == ("Porter", "library.example", "library.example")
    assert (genesis.issuer_key, genesis.public_key) == (public_jwk(ISSUER), public_jwk(AGENT))


def test_a_record_of_the_draft_is_read() -> None:
    record = signed(DRAFT)
    genesis, _ = genesis_json_parse({**record, "agent_id": genesis_id(record)})
    assert (genesis.owner, genesis.scopes, genesis.trust_tier) == ("Town Library", ("lending:read",), 1)
    assert (genesis.verification_path, genesis.public_key) == ("log-anchored", None)


def test_genesis_without_signature_or_matching_id_is_refused() -> None:
    genesis, (finding,) = genesis_json_parse({**signed(REFERENCE), "agent_id": "0" * 64})
    assert genesis is None
    assert (finding.rule, finding.pointer) == ("D197", "/agent_id")
    assert genesis_id(REFERENCE) in finding.message
    genesis, findings = genesis_json_parse(REFERENCE)
    assert genesis is None
    assert [finding.rule for finding in findings] == ["D103"]


@pytest.mark.requirement("CORE-7.2-2")
@pytest.mark.parametrize("signature", ["", "x", "A" * 86, "!" * 86, "A" * 5000, "é" * 86])
def test_signature_by_another_key_is_refused(signature: str) -> None:
    genesis, findings = genesis_json_parse({**signed(REFERENCE), "signature": signature})
    assert genesis is None
    assert [finding.rule for finding in findings] == ["D197"]


@pytest.mark.parametrize("name", REFERENCE)
def test_a_record_that_was_changed_after_it_was_signed_is_refused(name: str) -> None:
    record = signed(REFERENCE)
    others = {"archetype": "monitor", "trust_tier": 3, "verification_path": "org-asserted"}
    other = others.get(name, public_jwk(generate_key())["x"] if name.endswith("key") else "other")
    genesis, findings = genesis_json_parse({**record, name: other})
    assert genesis is None
    assert "D197" in {finding.rule for finding in findings}


@rows(
    "members, rule",
    *[(members, "D103") for members in ({"owner_id": ...}, {"archetype": ...}, {"archetype": None})],
    *[(members, "D103") for members in ({"issuer_public_key": None}, {"owner_id": None})],
    *[(members, "D103") for members in ({"governance_zone": ...}, {"issued_at": ...})],
    ({"issuer_public_key": ...}, "D103"),
    ({"trust_tier": 1, "verification_path": "log-anchored"}, "D103"),
    *[(members, "D106") for members in ({"archetype": "king"}, {"trust_tier": 0})],
    ({"verification_path": "hearsay"}, "D106"),
    ({"issuer_public_key": "no key"}, "D104"),
    ({"agent_public_key": 7}, "D104"),
    ({"trust_tier": 1}, "D198"),
    ({"trust_tier": 1, "verification_path": ...}, "D198"),
)
def test_signed_record_that_breaks_a_rule_is_refused(members: dict[str, Any], rule: str) -> None:
    genesis, findings = genesis_json_parse(signed(REFERENCE, **members))
    assert genesis is None
    assert rule in {finding.rule for finding in findings}


def test_invalid_scope_is_omitted_and_reported() -> None:
    genesis, (finding,) = genesis_json_parse(signed(DRAFT, scope=["lending:read", "All"]))
    assert genesis.scopes == ("lending:read",)
    assert finding.severity == "warning"


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"a": "\ud800"}'])
def test_genesis_json_non_object_is_refused(text: str) -> None:
    assert parse_genesis(text, "a.json")[0] is None


GENESIS_JSON_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*REFERENCE, *DRAFT, "signature", "agent_id"]), GENESIS_JSON_JSON, min_size=1))
@settings(max_examples=150)
def test_modified_record_does_not_verify(members: dict[str, Any]) -> None:
    record = signed(REFERENCE)
    changed = {**record, **members}
    genesis, _ = genesis_json_parse(changed)
    assert genesis is None or changed == record or (members == {"agent_id": None})


@rows(
    "document, at",
    ({"key": {"kty": "OKP", "crv": "Ed25519", "x": "x", "d": "d"}}, "/key"),
    ({"kty": "RSA", "n": "n", "e": "e", "p": "p"}, ""),
    ({"a": [{"b": "-----BEGIN PRIVATE KEY-----\nx"}]}, "/a/0/b"),
    ({"a": "-----BEGIN ENCRYPTED PRIVATE KEY-----"}, "/a"),
    ({"a": "-----BEGIN EC PRIVATE KEY-----"}, "/a"),
    ({"private_key": "x"}, "/private_key"),
    ({"Agent-Private-Key": "x"}, "/Agent-Private-Key"),
    ({"x_secret_keys": {"a": 1}}, "/x_secret_keys"),
)
def test_private_key_is_found_with_its_pointer(document: dict[str, Any], at: str) -> None:
    assert list(private_keys(document)) == [at]


@rows(
    "document",
    *({}, {"key": {"kty": "OKP", "crv": "Ed25519", "x": "x"}}, {"a": "-----BEGIN PUBLIC KEY-----"}),
    *({"private_key": None}, {"private_key": ""}, {"d": "x", "k": "y"}),
    {"private_keyboard": "x", "description": "keeps its private key to itself"},
)
def test_other_values_are_not_reported(document: dict[str, Any]) -> None:
    assert list(private_keys(document)) == []


def test_deep_document_does_not_recurse() -> None:
    deep: dict[str, Any] = {"private_key": "x"}
    for _ in range(5000):
        deep = {"a": [deep]}
    assert len(list(private_keys(deep))) == 1


@given(st.recursive(st.none() | st.text(max_size=5), lambda x: st.lists(x) | st.dictionaries(st.text(max_size=9), x)))
def test_any_document_is_searched(document: Any) -> None:
    list(private_keys({"document": document}))
