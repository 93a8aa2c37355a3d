"""The story of AGIS 10: an agent needs data for which there is no endpoint, and gets one by negotiation."""

from __future__ import annotations

import csv
import io
import json
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process import ROOT, serving

from bespeak import AuthorityMissingError, BusinessError, NotFoundError, ProposalRejectedError, connect_sync
from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import has_errors

FINANCE = ROOT / "examples" / "finance"
AGENT = "0a3f" * 16
LEDGER_SCOPE = "data:transaction-history"
TRANSACTIONS: dict[str, Any] = {
    "given": {"id": "string", "from_date?": "date", "min_amount?": "number", "limit?": "integer", "cursor?": "string"},
    "needs": ["transactions[].date", "transactions[].amount:number", "next_cursor?"],
}


def copied(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("*.sqlite3*", "*.db*", "__pycache__")
    return Path(shutil.copytree(FINANCE, folder / "finance", ignore=ignored))


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(copied(tmp_path_factory.mktemp("bank"))) as server:
        assert "2 endpoints" in server.announcement
        yield server.uri


def test_document_has_no_findings_and_serves_without_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FINANCE / "finance.agis").read_text()
    assert not has_errors(check_text(text, "finance.agis", LintContext(catalog=load_bundled())).findings)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("bank", None)
    target = load_target(str(copied(tmp_path)))
    assembled = assemble(target.service, base=target.base)
    sys.modules.pop("bank", None)
    assert [*target.findings, *assembled.findings] == []
    steps = {endpoint.data_class for route in assembled.registrar._steps if (endpoint := route.endpoint)}
    assert steps == {"transaction-history", "exchange-rates"}


@pytest.mark.process
@pytest.mark.requirement("AGIS-8.3-1", "CORE-4.6-5")
def test_agent_negotiates_the_endpoint_of_the_draft(uri: str) -> None:
    with connect_sync(uri) as anyone:
        manifest = anyone.discover().data_manifest
        assert {entry.name: entry.requires_authorization for entry in manifest.available_data} == {
            "transaction-history": True,
            "exchange-rates": False,
        }
        with pytest.raises(AuthorityMissingError, match=LEDGER_SCOPE):
            anyone.propose("RETRIEVE", "/account/{id}/transactions", **TRANSACTIONS)
    refused = pytest.raises(AuthorityMissingError, match=LEDGER_SCOPE)
    with connect_sync(uri, agent_id=AGENT) as unauthorized, refused:
        unauthorized.propose("RETRIEVE", "/account/{id}/transactions", **TRANSACTIONS)
    with connect_sync(uri, agent_id=AGENT, scopes=[LEDGER_SCOPE]) as service:
        made = service.propose("RETRIEVE", "/account/{id}/transactions", **TRANSACTIONS)
        assert made.endpoint.required_scopes == (LEDGER_SCOPE,)
        assert not made.is_counter_proposal
        found, cursor = list[Any](), dict[str, str]()
        while True:
            page = made.call(id="acc-1", limit=3, **cursor)
            found.append([row["date"] for row in page["transactions"]])
            if "next_cursor" not in page:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert found == [["2026-09-28", "2026-10-01", "2026-10-03"], ["2026-10-05"]]
        late = made.call(id="acc-1", from_date="2026-10-01", min_amount=-50)
        assert [row["amount"] for row in late["transactions"]] == [-42.5, -18.9]
        with pytest.raises(BusinessError, match="cursor"):
            made.call(id="acc-2", cursor=cursor["cursor"])


@pytest.mark.process
def test_columns_are_told_after_authorization_and_public_rates_without(uri: str) -> None:
    for options in ({}, {"agent_id": AGENT}):
        with connect_sync(uri, **options) as service, pytest.raises(AuthorityMissingError, match=LEDGER_SCOPE):
            service.propose("RETRIEVE", "/account/{id}/transactions", given=["id"], needs=["transactions[].iban"])
    with connect_sync(uri) as service:
        made = service.propose(
            "FIND", "/exchange-rates", given=["currency"], needs=["rates[].rate:number", "rates[].date"]
        )
        assert (len(made.call(currency="USD")["rates"]), made.call(currency="USD' OR '1'='1")["rates"]) == (3, [])


@pytest.mark.process
def test_rows_come_as_csv_and_required_values_that_they_may_lack_are_countered(uri: str) -> None:
    with connect_sync(uri, agent_id=AGENT, scopes=[LEDGER_SCOPE]) as service:
        made = service.propose("RETRIEVE", "/account/{id}/transactions/csv", given=["id"], needs={"csv": "string"})
        rows = list(csv.DictReader(io.StringIO(made.call(id="acc-1")["csv"])))
        asked = {"given": ["account_id"], "needs": ["transactions[].memo:string"]}
        with pytest.raises(ProposalRejectedError, match=r"requires transactions\[\].memo, which may have no value"):
            service.propose("SEARCH", "/transactions", **asked)
        made = service.propose("SEARCH", "/transactions", given=["account_id"], needs=["transactions[].memo?:string"])
        assert made.call(account_id="acc-3")["transactions"] == [{"memo": "Refund"}]
    assert [row["memo"] for row in rows] == ["Salary", "Rent", "Groceries", "Books"]


@pytest.mark.requirement("AGIS-8.3-1")
@pytest.mark.process
def test_steps_over_data_are_not_served_and_nothing_else_is_negotiated(uri: str) -> None:
    with connect_sync(uri, agent_id=AGENT, scopes=[LEDGER_SCOPE]) as service:
        for path in ("/data/transaction-history", "/data/exchange-rates", "/data/transaction-history/csv"):
            with pytest.raises(NotFoundError):
                service.call("QUERY", path)
        text = json.dumps(service.discover().raw)
        assert "/data/" not in text
        assert '"pending"' not in text
    with connect_sync(uri, agent_id=AGENT, scopes=[LEDGER_SCOPE, "data:customer-profile"]) as service:
        with pytest.raises(ProposalRejectedError):
            service.propose("RETRIEVE", "/customers/{id}", given=["id"], needs=["customer.email"])
        with pytest.raises(ProposalRejectedError):
            service.propose("RETRIEVE", "/account/{id}/transactions", given=["id"], needs=["transactions[].iban"])


@pytest.mark.process
def test_handlers_work_on_the_ledger_that_is_negotiated_about(uri: str) -> None:
    scopes = [LEDGER_SCOPE, "payments:transfer", "accounts:reconcile"]
    with connect_sync(uri, agent_id=AGENT, scopes=scopes) as service:
        made = service.propose(
            "SEARCH",
            "/transactions",
            given={"account_id": "string", "memo": "string"},
            needs=["transactions[].amount:number"],
        )
        assert made.call(account_id="acc-2", memo="Lunch")["transactions"] == []
        given = {"source_account_id": "acc-1", "destination_account_id": "acc-2", "amount": 12.5, "currency": "EUR"}
        service.call("TRANSFER", "/funds", **given, memo="Lunch")
        assert made.call(account_id="acc-2", memo="Lunch")["transactions"] == [{"amount": 12.5}]
        assert service.call("RECONCILE", "/account/{id}", id="acc-2")["status"] == "reconciled"
        with pytest.raises(BusinessError, match="insufficient_funds"):
            service.call("TRANSFER", "/funds", **{**given, "amount": 9_999})


@pytest.mark.process
def test_filters_reach_the_source(tmp_path: Path) -> None:
    """A ledger with more rows than one page: only rows of the account and the period are read."""
    folder = copied(tmp_path)
    with serving(folder) as server, connect_sync(server.uri, agent_id=AGENT, scopes=[LEDGER_SCOPE]) as service:
        with sqlite3.connect(folder / "ledger.sqlite3") as ledger:
            rows = [(f"2025-{1 + number % 12:02}-15", number) for number in range(2500)]
            ledger.executemany(
                "INSERT INTO transactions (account_id, date, amount, currency) VALUES ('acc-2', ?, ?, 'EUR')", rows
            )
        made = service.propose("RETRIEVE", "/account/{id}/transactions", **TRANSACTIONS)
        found = made.call(id="acc-2", from_date="2025-12-01", min_amount=2400)["transactions"]
        assert len(found) == len([one for one in rows if one[0] > "2025-12-01" and one[1] >= 2400])
        server.process.send_signal(signal.SIGTERM)
        assert server.process.communicate(timeout=30)[1] == ""
