"""/.well-known/agis.json: every field of AGIS 11.1, and only names of the data manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import DataClass, DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.agis_document import project_summary

FIND = make_endpoint("FIND", "/rooms", echo, capability="discovery")
BOOK = make_endpoint("BOOK", "/room", echo, capability="creation", impact="irreversible")
STAYS = DataClass(name="stays", description="Who stayed when", sensitivity="high", requires_authorization=True)


def summary(*endpoints: Endpoint, settings: HttpSettings | None = None, **fields: Any) -> dict[str, Any]:
    identity = ServerIdentity(server_id="rooms.example", operator="Acme", contact="", name="Acme Rooms")
    service = Service(identity=identity, **fields)
    return project_summary(service, endpoints or (FIND, BOOK), settings or HttpSettings(), version="1.2.0")


@pytest.mark.requirement("AGIS-11.1-2")
def test_every_field_of_the_draft_is_present() -> None:
    found = summary(
        vocabulary=Vocabulary(domain="hospitality", namespace="acme", version="0.9"),
        data_manifest=DataManifest(available_data=(STAYS,), pre_auth_discovery=True),
        settings=HttpSettings(url="https://rooms.example/api", related_services=("agtp://pay.example",)),
    )
    assert found == {
        "agis": "1.0",
        "service": "Acme Rooms",
        "agtp": "agtp://rooms.example",
        "agis_document": "https://rooms.example/api/",
        "methods": ["FIND", "BOOK"],
        "domain": "hospitality",
        "namespace": "acme",
        "negotiable": False,
        "capability_summary": ["discovery", "transaction"],
        "data_classes": ["stays"],
        "pre_auth_discovery": True,
        "version": "1.2.0",
        "interaction_protocols": ["request", "query"],
        "related_services": ["agtp://pay.example"],
    }


@pytest.mark.requirement("AGIS-11.1-2")
def test_unknown_values_are_null_and_not_omitted() -> None:
    found = summary()
    assert (found["domain"], found["namespace"]) == (None, None)
    assert (found["data_classes"], found["pre_auth_discovery"]) == ([], False)
    assert found["agis_document"] == found["agtp"] == "agtp://rooms.example"


@pytest.mark.requirement("AGIS-11.1-4")
@pytest.mark.parametrize(("before", "classes"), [(True, ["stays"]), (None, ["stays"]), (False, [])])
def test_classes_are_named_unless_they_are_for_callers_with_credentials(
    before: bool | None, classes: list[str]
) -> None:
    found = summary(data_manifest=DataManifest(available_data=(STAYS,), pre_auth_discovery=before))
    assert found["data_classes"] == classes
    assert "high" not in str(found)
    assert "Who stayed" not in str(found)


def test_internal_and_built_in_endpoints_are_left_out() -> None:
    found = summary(replace(BOOK, internal=True), replace(FIND, method="DISCOVER", builtin=True), FIND)
    assert (found["methods"], found["capability_summary"]) == (["FIND"], ["discovery"])


@pytest.mark.parametrize(
    ("endpoint", "fields", "protocols"),
    [
        (BOOK, {}, ["request"]),
        (replace(BOOK, confirm=True), {}, ["request", "confirm"]),
        (BOOK, {"policies": Policies(confirm_irreversible=True)}, ["request", "confirm"]),
        (replace(BOOK, confirm=False), {"policies": Policies(confirm_irreversible=True)}, ["request"]),
        (BOOK, {"vocabulary": Vocabulary(negotiable=True)}, ["request", "negotiate"]),
        (FIND, {}, ["request", "query"]),
    ],
)
def test_only_supported_interaction_modes_are_listed(
    endpoint: Endpoint, fields: dict[str, Any], protocols: list[str]
) -> None:
    assert summary(endpoint, **fields)["interaction_protocols"] == protocols
