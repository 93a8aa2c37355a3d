"""Texts that UTF-8 cannot encode are found before a contract is published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.checks.lint.conftest import ROOM

from bespeak.checks.lint.registration import check_endpoint_encoding, check_service_encoding
from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.service import DataClass, DataManifest, ServerIdentity, Service
from bespeak.text.source.tree import Location

HALF = "half \ud83d"
IDENTITY = ServerIdentity(server_id="rooms.example", operator="Acme", contact="ops@rooms.example")
SERVICE = Service(identity=IDENTITY, endpoints=(ROOM,))


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"description": HALF}, "/endpoint/description"),
        ({"semantic": replace(ROOM.semantic, outcome=HALF)}, "/endpoint/semantic/outcome"),
        (
            {"semantic": replace(ROOM.semantic, parameter_hints={"a/b": HALF})},
            "/endpoint/semantic/parameter_hints/a~1b",
        ),
        ({"semantic": replace(ROOM.semantic, state_transition={HALF: "x"})}, "/endpoint/semantic/state_transition"),
        ({"errors": (DeclaredError("room_taken", HALF),)}, "/endpoint/errors/0/description"),
    ],
)
def test_half_a_surrogate_pair_in_an_endpoint_is_an_error_at_its_place(changed: Any, place: str) -> None:
    [finding] = check_endpoint_encoding(replace(ROOM, **changed))
    assert (finding.severity, finding.pointer) == ("error", place)
    assert "half a surrogate pair" in finding.message
    assert finding.message.isprintable()


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"identity": replace(IDENTITY, operator=HALF)}, "/identity/operator"),
        (
            {"data_manifest": DataManifest(available_data=(DataClass(name=HALF),))},
            "/data_manifest/available_data/0/name",
        ),
    ],
)
def test_half_a_surrogate_pair_in_a_service_is_an_error_at_its_place(changed: Any, place: str) -> None:
    [finding] = check_service_encoding(replace(SERVICE, **changed))
    assert (finding.severity, finding.pointer) == ("error", place)


def test_names_of_files_and_whole_characters_are_allowed() -> None:
    assert (
        list(check_endpoint_encoding(replace(ROOM, description="\U0001f600", location=Location("\udcff.toml", 1))))
        == []
    )
    assert list(check_service_encoding(SERVICE)) == []
