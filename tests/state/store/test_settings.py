"""Settings of stored state: read as written; those that would lose state or reveal secrets are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.state.store.settings import (
    CaseSettings,
    IdempotencySettings,
    MissingVariable,
    SessionSettings,
    StoreSettings,
)
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Location

SERVER = '[server]\nserver_id = "s"\noperator = "o"\ncontact = "c"\n'
BASE = Path("d")


def read(text: str) -> tuple[ServerDocument, list[Diagnostic]]:
    return parse_server(SERVER + text, "d/bespeak.toml")


def clean(text: str) -> ServerDocument:
    document, findings = read(text)
    assert findings == [], [str(finding) for finding in findings]
    return document


def only(text: str) -> Diagnostic:
    _, (finding,) = read(text)
    return finding


def test_default_store_is_a_file_with_full_durability_and_every_setting_is_read() -> None:
    document = clean("")
    assert document.store == StoreSettings(place=None, durability="full")
    assert document.store.located(BASE, {}) == str(BASE / "bespeak.db")
    assert document.idempotency == IdempotencySettings(retention=86400, lease=30, require=False)
    document = clean(
        '[store]\nplace = "s.db"\ndurability = "process"\n[idempotency]\nretention = 60\nlease = 1.5\nrequire = true\n'
    )
    assert document.store == StoreSettings(place="s.db", durability="process")
    assert document.idempotency == IdempotencySettings(retention=60, lease=1.5, require=True)


@rows(
    "written, environment, place",
    ("memory", {}, "memory"),
    ("state/s.db", {}, str(BASE / "state/s.db")),
    ("/var/s.db", {}, "/var/s.db"),
    ("${DIR}/s.db", {"DIR": "/var"}, "/var/s.db"),
    ("${DIR}/s.db", {"DIR": "state"}, str(BASE / "state/s.db")),
    ("${STORE}", {"STORE": "memory"}, "memory"),
    ("${STORE}", {"STORE": "postgresql://h/n"}, "postgresql://h/n"),
    ("postgresql://u:${P}@h/n", {"P": "s3cret"}, "postgresql://u:s3cret@h/n"),
    ("postgres:///n", {}, "postgres:///n"),
)
def test_place_is_resolved_with_folder_and_environment(written: str, environment: dict[str, str], place: str) -> None:
    assert clean(f'[store]\nplace = "{written}"\n').store.located(BASE, environment) == place


@pytest.mark.parametrize("environment", [{}, {"P": ""}])
def test_unset_variable_is_an_error_that_names_it(environment: dict[str, str]) -> None:
    settings = clean('[store]\nplace = "postgresql://u:${P}@h/n"\n').store
    assert settings.located(BASE, environment) == MissingVariable("P")


@rows(
    "value, message",
    ('""', "`place` is empty"),
    ('"  "', "`place` is empty"),
    ('"redis://user:hunter2@h"', "`place` must be a path, memory or postgresql://...; got redis://"),
    ('"sqlite:///s.db"', "`place` must be a path, memory or postgresql://...; got sqlite://"),
    (r'"a\u0000b"', "`place` has characters that cannot be printed"),
)
def test_place_of_unknown_kind_is_refused_without_quoting_its_password(value: str, message: str) -> None:
    finding = only(f"[store]\nplace = {value}\n")
    assert (finding.rule, finding.severity, finding.pointer) == ("Y875", "error", "/store/place")
    assert finding.message.startswith(message)
    assert "hunter2" not in str(finding)


@pytest.mark.parametrize(
    "place", ["postgresql://u:hunter2@h/n", "postgres://u:${A}hunter2@h/n", "postgresql://h/n?password=hunter2"]
)
def test_password_in_the_file_is_a_warning_that_does_not_quote_it(place: str) -> None:
    finding = only(f'[store]\nplace = "{place}"\n')
    assert (finding.rule, finding.severity) == ("Y876", "warning")
    assert "hunter2" not in str(finding)


def test_unknown_durability_is_refused_with_the_valid_ones() -> None:
    finding = only('[store]\ndurability = "ful"\n')
    assert (finding.rule, finding.severity) == ("D106", "error")
    assert "full" in finding.help


@pytest.mark.parametrize(
    "text", ["retention = 0", "retention = 0.5", "retention = 1e9", "lease = -1", "lease = 90000", "retention = 10"]
)
def test_time_out_of_bounds_is_refused_and_keeps_the_default(text: str) -> None:
    document, (finding,) = read(f"[idempotency]\n{text}\n")
    assert (finding.rule, finding.severity) == ("Y877", "error")
    assert document.idempotency == IdempotencySettings()


@pytest.mark.parametrize(("text", "key"), [("[store]\nplce = 1", "plce"), ("[idempotency]\nleese = 1", "leese")])
def test_unknown_key_is_reported(text: str, key: str) -> None:
    finding = only(text)
    assert finding.rule == "D105"
    assert key in finding.message


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3)


@given(st.dictionaries(st.sampled_from(["place", "durability", "retention", "lease", "require", "x"]), JSON))
def test_any_table_is_read_or_reported(data: dict[str, object]) -> None:
    table = Table(data, "", Findings(lambda _: Location("f")))
    store, idempotency = read_settings(StoreSettings, table), read_settings(IdempotencySettings, table)
    assert store.durability in ("full", "process")
    assert 1 <= idempotency.lease <= idempotency.retention


def test_defaults_of_sessions_and_cases() -> None:
    document, findings = read("")
    assert findings == []
    assert document.sessions == SessionSettings(idle=3600, suspended=604800, entropy=True)
    assert document.cases == CaseSettings(default_recipient="operator", confirmation=86400)


def test_every_setting_of_sessions_and_cases_is_read() -> None:
    document, findings = read(
        "[sessions]\nidle = 60\nsuspended = 120.5\nentropy = false\n"
        '[cases]\ndefault_recipient = "front desk"\nconfirmation = 300\n'
    )
    assert findings == []
    assert document.sessions == SessionSettings(idle=60, suspended=120.5, entropy=False)
    assert document.cases == CaseSettings(default_recipient="front desk", confirmation=300)


@rows(
    "table, line",
    ("sessions", "idle = 0"),
    ("sessions", "idle = 2592001"),
    ("sessions", "suspended = -1"),
    ("cases", "confirmation = 1e12"),
    ("cases", 'default_recipient = " "'),
    ("cases", 'default_recipient = "a\\nb"'),
    ("cases", f'default_recipient = "{"x" * 257}"'),
)
def test_a_value_out_of_bounds_is_reported_and_keeps_its_default(table: str, line: str) -> None:
    document, (finding,) = read(f"[{table}]\n{line}\n")
    assert (finding.rule, finding.pointer) == ("Y878", f"/{table}/{line.split(maxsplit=1)[0]}")
    assert (document.sessions, document.cases) == (SessionSettings(), CaseSettings())


def test_unknown_keys_get_a_suggestion_and_bounds_are_plain_numbers() -> None:
    _, (finding,) = read("[sessions]\nidel = 60\n")
    assert (finding.rule, finding.help) == ("D105", "Did you mean `idle`?")
    _, findings = read("[sessions]\nidle = 0\n")
    assert findings[0].message == "`idle` must be 1 to 2592000 seconds; got 0"


@given(
    st.dictionaries(
        st.sampled_from(["idle", "suspended", "entropy", "default_recipient", "confirmation"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()),
    )
)
def test_any_table_gives_usable_settings(block: dict[str, object]) -> None:
    table = Table(block, "", Findings(lambda _: Location("f")))
    sessions, cases = read_settings(SessionSettings, table), read_settings(CaseSettings, table)
    assert 1 <= sessions.idle <= 30 * 86400
    assert 1 <= sessions.suspended <= 366 * 86400
    assert 1 <= cases.confirmation <= 366 * 86400
    assert cases.default_recipient.strip()
