"""Vocabulary and data manifest of a service, read from a configuration."""

from __future__ import annotations

from bespeak.contract.service import DataClass, DataManifest, Vocabulary
from bespeak.documents.deployment.server_toml import ServerDocument, parse_server

IDENTITY = '[server]\nserver_id = "a.example"\noperator = "A"\ncontact = "c@a.example"\n'


def read(text: str) -> tuple[ServerDocument, list[str]]:
    document, findings = parse_server(IDENTITY + text, "bespeak.toml")
    return document, [f"{finding.rule} {finding.pointer}" for finding in findings]


def test_blocks_of_an_agis_document_are_read_from_a_configuration() -> None:
    document, findings = read(
        """
        [vocabulary]
        domain = "hospitality"
        namespace = "sole"
        version = "1.0.0"
        negotiable = true

        [data_manifest]
        pre_auth_discovery = true

        [[data_manifest.available_data]]
        class = "reservation"
        description = "Reservations of tables"
        formats = ["json"]
        sensitivity = "medium"
        requires_authorization = true
        """
    )
    assert findings == []
    assert document.vocabulary == Vocabulary(domain="hospitality", namespace="sole", version="1.0.0", negotiable=True)
    reservation = DataClass(
        name="reservation",
        description="Reservations of tables",
        formats=("json",),
        sensitivity="medium",
        requires_authorization=True,
    )
    assert document.data_manifest == DataManifest(available_data=(reservation,), pre_auth_discovery=True)


def test_missing_blocks_have_no_findings_and_a_negotiable_service_needs_a_data_manifest() -> None:
    document, _ = read("")
    assert (document.vocabulary, document.data_manifest) == (None, None)
    assert read("[vocabulary]\nnegotiable = true")[1] == ["D103 /vocabulary/negotiable"]


def test_a_class_of_data_has_a_name_and_no_other_keys_than_those() -> None:
    _, findings = read('[[data_manifest.available_data]]\nclas = "guest"\n[vocabulary]\ndomane = "x"\n')
    assert findings == [
        "D105 /vocabulary/domane",
        "D103 /data_manifest/available_data/0",
        "D105 /data_manifest/available_data/0/clas",
    ]
