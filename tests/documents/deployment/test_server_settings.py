"""Settings of the server itself."""

from __future__ import annotations

import pytest

from bespeak.contract.service import ServerIdentity
from bespeak.documents.deployment.server_settings import AgentSettings, ListenSettings, ServerSettings
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Location


def test_empty_identity_has_no_operator_and_disclosure_may_be_spelled_as_in_the_reference() -> None:
    assert ServerSettings().identity == ServerIdentity(server_id="", operator="unspecified", contact="")
    findings = Findings(lambda _: Location("f"))
    settings = read_settings(AgentSettings, Table({"disclosure": "limited"}, "/agents", findings))
    assert (settings.disclosure, findings.found) == ("authenticated", [])


@pytest.mark.parametrize("key", ["cert", "key"])
def test_half_a_key_pair_is_an_error(key: str) -> None:
    findings = Findings(lambda _: Location("f"))
    read_settings(ListenSettings, Table({key: "x.pem"}, "/listen", findings))
    assert [(finding.rule, finding.pointer) for finding in findings.found] == [("Y822", f"/listen/{key}")]
