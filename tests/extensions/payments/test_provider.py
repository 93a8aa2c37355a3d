"""Both providers do what a provider is asked for."""

from __future__ import annotations

from bespeak.extensions.payments.http_provider import HttpProvider
from bespeak.extensions.payments.provider import LedgerProvider, Provider


def test_the_ledger_and_a_server_outside_are_providers() -> None:
    providers: list[Provider] = [LedgerProvider(), HttpProvider("https://pay.example", "secret", 1.0)]
    assert [provider.in_store for provider in providers] == [True, False]
