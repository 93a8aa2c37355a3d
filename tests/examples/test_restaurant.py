"""The example restaurant: an AGIS document, the functions that answer for it, and a file that binds them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process import ROOT, bespeak, serving
from tests.service import Bench

from bespeak import connect_sync
from bespeak.agent.client.errors import BusinessError
from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import Context
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import has_errors

RESTAURANT = ROOT / "examples" / "restaurant"
MENU = RESTAURANT / "menu.agis"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    target = load_target(str(MENU))
    assert target.findings == []
    assembled = assemble(target.service, base=target.base)
    assert assembled.findings == []
    yield Bench(assembled)
    sys.modules.pop("handlers", None)


def test_a_party_reserves_is_seated_and_leaves(bench: Bench) -> None:
    [dish] = bench.send("FIND", "/dish", {"course": "dessert"}).json["dishes"]
    assert dish["name"] == "Tiramisu"
    given = {"name": "Ann", "guests": 8, "evening": "2026-12-01"}
    reserved = bench.send("RESERVE", "/table", given)
    assert reserved.status == 200
    assert bench.send("RESERVE", "/table", given).error["code"] == "fully_booked"
    at = f"/reservation/{reserved.json['reservation_id']}"
    for headers in ({}, {"method_grammar": "AGIS/1.0"}):
        assert bench.send("SEAT", at, **headers).json == reserved.json
    assert bench.send("CANCEL", at).json == reserved.json
    assert bench.send("SEAT", at).error["code"] == "reservation_unknown"


def test_the_document_drives_validation(bench: Bench) -> None:
    reply = bench.send("RESERVE", "/table", {"name": "", "guests": 9, "evening": "soon", "dog": True})
    assert reply.status == 422
    assert len(reply.error["violations"]) == 4


def test_root_returns_a_document_without_findings(bench: Bench) -> None:
    body = bench.send("DISCOVER", "/", accept="application/agis").response.body.decode()
    checked = check_text(body, "root.agis", Context(catalog=load_bundled()))
    assert not has_errors(checked.findings), checked.findings
    written = check_text(MENU.read_text(), "menu.agis", Context(catalog=load_bundled()))
    assert written.findings == ()
    assert checked.subject is not None
    assert written.subject is not None
    told, meant = checked.subject.agis, written.subject.agis
    assert told is not None
    assert meant is not None
    assert (told.service, told.agtp, told.vocabulary) == (meant.service, meant.agtp, meant.vocabulary)
    assert {entry.endpoint.key for entry in told.endpoints} == {entry.endpoint.key for entry in meant.endpoints}


@pytest.mark.process
@pytest.mark.parametrize("target", [RESTAURANT, MENU], ids=["folder", "document"])
def test_folder_and_document_can_be_served(target: Path) -> None:
    with serving(target) as server:
        assert "4 endpoints" in server.announcement
        with connect_sync(server.uri) as service:
            assert service.call("FIND", "/dish", course="main")["dishes"]
            with pytest.raises(BusinessError):
                service.call("CANCEL", "/reservation/R-0")
        assert bespeak("conform", server.uri).returncode == 0
        assert server.stop(signal.SIGTERM) == 0
