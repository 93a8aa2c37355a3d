"""Settings of negotiation: read from a configuration, with safe defaults."""

from __future__ import annotations

from bespeak.contract.limits import Rate
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import toml_table


def read(text: str) -> tuple[NegotiationSettings, list[str]]:
    root = toml_table(text, "bespeak.toml")
    assert isinstance(root, Table)
    return read_settings(NegotiationSettings, root), [finding.rule for finding in root.findings.found]


def test_by_default_nothing_outlives_its_session_and_an_invalid_rate_is_reported() -> None:
    settings, findings = read("")
    assert findings == []
    assert (settings.persistent, settings.internal, settings.approval) == (False, (), "none")
    assert read('rate = "often"\n')[1] == ["D104"]


def test_settings_are_read() -> None:
    settings, findings = read(
        'approval = "changing"\nrate = "5/min"\n[[forbidden]]\ntogether = ["data:health", "scope:ads:*"]\n'
    )
    assert findings == []
    assert (settings.approval, settings.rate) == ("changing", Rate(5, "min", 5))
    assert settings.forbidden[0].together == ("data:health", "scope:ads:*")
