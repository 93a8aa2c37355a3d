"""`[payments]` names a provider that is reached safely, and accounts with exact amounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.deployment.server_toml import read_server
from bespeak.extensions.payments.settings import MOST, Money, PaymentSettings, read_money


def read(tmp_path: Path, text: str) -> tuple[object, list[str]]:
    path = tmp_path / "bespeak.toml"
    path.write_text(f'[server]\nserver_id = "s"\noperator = "o"\ncontact = "c@s.example"\n{text}')
    document, findings = read_server(path)
    return document.extension_table("payments", PaymentSettings) or PaymentSettings(), [
        finding.message for finding in findings
    ]


def test_accounts_are_read_with_their_amounts(tmp_path: Path) -> None:
    text = '[[payments.accounts]]\nprincipal = "acme"\ncurrency = "EUR"\nopening = "1000.50"\n'
    payments, messages = read(tmp_path, text)
    [account] = payments.accounts  # type: ignore[attr-defined]
    assert (account.money(account.opening), account.money(account.credit)) == (Money(100_050, "EUR"), Money(0, "EUR"))
    assert messages == []


@rows(
    "text",
    *('[payments]\nprovider = "http://pay.example"', '[payments]\nprovider = "paypal"'),
    *('[payments]\ncurrencies = ["euro"]', '[payments]\ncurrencies = ["eur"]', '[payments]\ncurrencies = ["EURO"]'),
    "[payments]\nhold = 0",
    '[[payments.accounts]]\nprincipal = "acme"\ncurrency = "EUR"\nopening = "1.005"',
    '[[payments.accounts]]\nprincipal = "acme"\ncurrency = "EUR"\ncredit = "-1"',
)
def test_a_wrong_value_is_reported(tmp_path: Path, text: str) -> None:
    assert len(read(tmp_path, text)[1]) == 1


@pytest.mark.parametrize("provider", ["ledger", "https://pay.example/v1", "http://127.0.0.1:9/x", "http://localhost"])
def test_providers_are_the_ledger_or_reached_by_tls_or_on_the_same_machine(tmp_path: Path, provider: str) -> None:
    payments, messages = read(tmp_path, f'[payments]\nprovider = "{provider}"')
    assert (payments.provider, messages) == (provider, [])  # type: ignore[attr-defined]


@rows(
    "value, currency, minor",
    ("12.34", "EUR", 1234),
    ("12.3", "EUR", 1230),
    ("0.10000", "EUR", 10),
    (12, "EUR", 1200),
    (12.0, "EUR", 1200),
    ("500", "JPY", 500),
    ("1.234", "KWD", 1234),
    ("10000000000000", "EUR", MOST),
)
def test_an_amount_becomes_whole_units(value: Any, currency: str, minor: int) -> None:
    assert read_money(value, currency) == Money(minor, currency)


@rows(
    "value, currency",
    *(("1.005", "EUR"), ("0.5", "JPY"), ("-1", "EUR"), (-1, "EUR"), ("1e3", "EUR"), (1e30, "EUR")),
    *((0.1, "EUR"), (float("nan"), "EUR"), (float("inf"), "EUR"), ("", "EUR"), ("9" * 15, "EUR"), ("١", "EUR")),
    *((True, "EUR"), ("1\n", "EUR")),
)
def test_what_is_not_an_exact_amount_is_explained(value: Any, currency: str) -> None:
    assert isinstance(read_money(value, currency), str)


def test_money_is_written_with_the_places_of_its_currency() -> None:
    assert Money(1230, "EUR").document() == {"value": "12.30", "currency": "EUR"}
    assert (str(Money(5, "JPY")), str(Money(5, "KWD"))) == ("5 JPY", "0.005 KWD")
