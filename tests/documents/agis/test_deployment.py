from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.server_toml import (
    check_identity,
    configuration_naming,
    parse_server,
    served_with,
    with_custom,
    with_document,
)

OF_DOCUMENT = ServerIdentity(server_id="rooms.example", operator="Acme", contact="a@rooms.example", name="Rooms")
SERVICE = Service(identity=OF_DOCUMENT, policies=Policies(methods=MethodPolicy(custom=("TRIAGE",))))


def test_a_configuration_names_its_document_at_the_top_or_beside_the_app(tmp_path: Path) -> None:
    document = tmp_path / "rooms.agis"
    document.touch()
    for text in ('document = "rooms.agis"', '[server]\ndocument = "./rooms.agis"'):
        (tmp_path / "bespeak.toml").write_text(text)
        assert configuration_naming(document) == (tmp_path / "bespeak.toml", [])
    (tmp_path / "bespeak.toml").write_text('document = "other.agis"')
    assert configuration_naming(document) == (None, [])


def test_findings_are_returned_for_an_unreadable_configuration(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text("document = [")
    found, [finding] = configuration_naming(tmp_path / "rooms.agis")
    assert (found, finding.rule) == (None, "D102")


def test_configuration_takes_precedence_over_the_document() -> None:
    server, _ = parse_server(
        'document = "a.agis"\n[server]\noperator = "Other"\ndomain = "b.example"\n', "bespeak.toml"
    )
    identity = served_with(SERVICE, server.identity, None, None).identity
    assert (identity.server_id, identity.operator, identity.contact) == ("rooms.example", "Other", "a@rooms.example")
    assert (identity.name, identity.domain) == ("Rooms", "b.example")
    assert served_with(SERVICE, None, None, None) == SERVICE


def test_policies_of_a_configuration_keep_the_verbs_of_the_document() -> None:
    policies = Policies(strict_output=True, methods=MethodPolicy(custom=("ADMIT",)))
    served = served_with(SERVICE, None, policies, "1.0.0")
    assert served.policies.strict_output
    assert served.policies.methods.custom == ("ADMIT", "TRIAGE")
    assert served.catalog == "1.0.0"
    assert with_custom(policies, ["ADMIT"]) == policies


def test_missing_operator_and_contact_are_reported() -> None:
    assert list(check_identity(OF_DOCUMENT, Path("rooms.agis"))) == []
    [finding] = check_identity(ServerIdentity(server_id="a", operator="unspecified", contact=""), Path("rooms.agis"))
    assert (finding.rule, finding.severity) == ("Y820", "warning")
    assert "`operator` and `contact` are missing" in finding.message


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('document = "a.agis"\n[vocabulary]\ndomain = "x"\n', "/vocabulary"),
        ('document = "a.agis"\n[data_manifest]\npre_auth_discovery = true\n', "/data_manifest"),
        ('[handlers."BOOK /room"]\ntype = "registered_function"\nfunction = "a.b"\n', "/handlers"),
    ],
)
def test_settings_that_contradict_or_need_a_document_are_errors(text: str, pointer: str) -> None:
    _, findings = parse_server(text, "bespeak.toml")
    assert [(finding.rule, finding.severity, finding.pointer) for finding in findings] == [("Y822", "error", pointer)]


def test_folder_with_a_document_needs_no_endpoints_and_no_server_id(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text('document = "rooms.agis"')
    deployment, findings = read_deployment(tmp_path)
    assert (deployment.server.document, findings) == (tmp_path / "rooms.agis", [])


def test_a_document_joins_the_files_of_its_folder() -> None:
    server, _ = parse_server('document = "a.agis"\n[policies]\nstrict_output = true\n', "bespeak.toml")
    files = Service(
        identity=ServerIdentity(server_id="", operator="unspecified", contact=""), require_known_agents=True
    )
    described = replace(SERVICE, description="Rooms.", document_version="2", agtp="agtp://rooms.example")
    joined = with_document(files, described, server)
    assert joined.identity == OF_DOCUMENT
    assert (joined.description, joined.document_version, joined.agtp) == ("Rooms.", "2", "agtp://rooms.example")
    assert joined.require_known_agents
    assert joined.policies.strict_output
