"""The lint report on a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
from tests.faces.mcp.tools import Rooms

from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_app
from bespeak.checks.lint.manifest_report import report_manifest
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.text.diagnostics.reporters.json_report import schema

URI = "bespeak://rooms.example/manifest"


def manifest() -> dict[str, Any]:
    assembled = assemble_target(load_app(Rooms().app, Path()), "2026-11-16T00:00:00Z")
    publication = assembled.build_dispatcher().server.routes.publication
    content: dict[str, Any] = json.loads(publication.manifest_for(ANONYMOUS).body)
    return content


def report(document: dict[str, Any]) -> Any:
    made = json.loads(report_manifest(msgspec.json.encode(document), URI))
    jsonschema_rs.validator_for(json.loads(schema())).validate(made)
    return made


def test_contract_is_checked_without_the_methods_of_every_server_and_findings_are_bounded() -> None:
    found = report(manifest())
    assert {finding["rule"] for finding in found["findings"]} == {"D158", "S423"}
    assert found["files"] == [URI]
    document = manifest()
    document["endpoints"] = [{**document["endpoints"][-1], "method": f"BAD{number}"} for number in range(300)]
    made = report(document)
    assert len(made["findings"]) == 200
    assert made["summary"]["left_out"] >= 100


def test_a_finding_has_the_place_in_the_manifest_and_advice() -> None:
    document = manifest()
    broken = next(each for each in document["endpoints"] if each["path"] == "/floors")
    broken["method"] = "FROBNICATE"
    [finding] = [one for one in report(document)["findings"] if one["severity"] == "error"]
    assert finding["pointer"] == f"/endpoints/{document['endpoints'].index(broken)}/method"
    assert (finding["file"], bool(finding["help"])) == (URI, True)
