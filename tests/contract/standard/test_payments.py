"""`[payments]` names a provider that is reached safely, and accounts with exact amounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bespeak.contract.payments import Money
from bespeak.documents.deployment.server_toml import read_server


def read(tmp_path: Path, text: str) -> tuple[object, list[str]]:
    path = tmp_path / "bespeak.toml"
    path.write_text(f'[server]\nserver_id = "s"\noperator = "o"\ncontact = "c@s.example"\n{text}')
    document, findings = read_server(path)
    return document.payments, [finding.message for finding in findings]


def test_accounts_are_read_with_their_amounts(tmp_path: Path) -> None:
    text = '[[payments.accounts]]\nprincipal = "acme"\ncurrency = "EUR"\nopening = "1000.50"\n'
    payments, messages = read(tmp_path, text)
    [account] = payments.accounts  # type: ignore[attr-defined]
    assert (account.money(account.opening), account.money(account.credit)) == (Money(100_050, "EUR"), Money(0, "EUR"))
    assert messages == []


@pytest.mark.parametrize(
    "text",
    [
        '[payments]\nprovider = "http://pay.example"',
        '[payments]\nprovider = "paypal"',
        '[payments]\ncurrencies = ["euro"]',
        "[payments]\nhold = 0",
        '[[payments.accounts]]\nprincipal = "acme"\ncurrency = "EUR"\nopening = "1.005"',
        '[[payments.accounts]]\nprincipal = "acme"\ncurrency = "EUR"\ncredit = "-1"',
    ],
)
def test_a_wrong_value_is_reported(tmp_path: Path, text: str) -> None:
    assert len(read(tmp_path, text)[1]) == 1


@pytest.mark.parametrize("provider", ["ledger", "https://pay.example/v1", "http://127.0.0.1:9/x", "http://localhost"])
def test_providers_are_the_ledger_or_reached_by_tls_or_on_the_same_machine(tmp_path: Path, provider: str) -> None:
    payments, messages = read(tmp_path, f'[payments]\nprovider = "{provider}"')
    assert (payments.provider, messages) == (provider, [])  # type: ignore[attr-defined]
