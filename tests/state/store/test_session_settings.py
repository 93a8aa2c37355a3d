"""`[sessions]` and `[cases]`: what is written is read, and what nobody could work with is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.state.store.session_settings import CaseSettings, SessionSettings, read_cases, read_sessions
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.table import Table
from bespeak.text.source.span import Location

SERVER = '[server]\nserver_id = "s"\noperator = "o"\ncontact = "c"\n'


def read(text: str) -> tuple[ServerDocument, list[Diagnostic]]:
    return parse_server(SERVER + text, "d/bespeak.toml")


def test_without_tables_sessions_live_for_an_hour_and_the_operator_decides_within_a_day() -> None:
    document, findings = read("")
    assert findings == []
    assert document.sessions == SessionSettings(idle=3600, suspended=604800, entropy=True)
    assert document.cases == CaseSettings(default_recipient="operator", confirmation=86400)


def test_every_setting_is_read() -> None:
    document, findings = read(
        "[sessions]\nidle = 60\nsuspended = 120.5\nentropy = false\n"
        '[cases]\ndefault_recipient = "front desk"\nconfirmation = 300\n'
    )
    assert findings == []
    assert document.sessions == SessionSettings(idle=60, suspended=120.5, entropy=False)
    assert document.cases == CaseSettings(default_recipient="front desk", confirmation=300)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("sessions", "idle = 0"),
        ("sessions", "idle = 2592001"),
        ("sessions", "suspended = -1"),
        ("cases", "confirmation = 1e12"),
        ("cases", 'default_recipient = " "'),
        ("cases", 'default_recipient = "a\\nb"'),
        ("cases", f'default_recipient = "{"x" * 257}"'),
    ],
)
def test_a_value_out_of_bounds_is_reported_and_keeps_its_default(table: str, line: str) -> None:
    document, (finding,) = read(f"[{table}]\n{line}\n")
    assert (finding.rule, finding.pointer) == ("Y878", f"/{table}/{line.split(maxsplit=1)[0]}")
    assert (document.sessions, document.cases) == (SessionSettings(), CaseSettings())


def test_unknown_keys_are_named_with_what_may_be_meant() -> None:
    _, (finding,) = read("[sessions]\nidel = 60\n")
    assert (finding.rule, finding.help) == ("D105", "Did you mean `idle`?")


@given(
    st.dictionaries(
        st.sampled_from(["idle", "suspended", "entropy", "default_recipient", "confirmation"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    )
)
def test_whatever_stands_in_the_tables_the_settings_can_be_worked_with(block: dict[str, object]) -> None:
    root = Table({"sessions": dict(block), "cases": dict(block)}, "", Findings(lambda _: Location("f")))
    sessions, cases = read_sessions(root), read_cases(root)
    assert 1 <= sessions.idle <= 30 * 86400
    assert 1 <= sessions.suspended <= 366 * 86400
    assert 1 <= cases.confirmation <= 366 * 86400
    assert cases.default_recipient.strip()


def test_bounds_are_written_as_plain_numbers() -> None:
    _, findings = read("[sessions]\nidle = 0\n")
    assert findings[0].message == "`idle` is 0 seconds, and must be from 1 to 2592000"
