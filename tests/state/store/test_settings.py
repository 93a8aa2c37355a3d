"""`[store]` and `[idempotency]`: what is written is read, and what would lose state or tell secrets is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.state.store.settings import (
    IdempotencySettings,
    MissingVariable,
    StoreSettings,
    read_idempotency,
    read_store,
)
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.table import Table
from bespeak.text.source.span import Location

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


def test_without_tables_the_store_is_a_file_in_the_folder_and_changes_survive_the_loss_of_power() -> None:
    document = clean("")
    assert document.store == StoreSettings(place=None, durability="full")
    assert document.store.located(BASE, {}) == str(BASE / "bespeak.db")
    assert document.idempotency == IdempotencySettings(retention=86400, lease=30, require=False)


def test_every_setting_is_read() -> None:
    document = clean(
        '[store]\nplace = "s.db"\ndurability = "process"\n[idempotency]\nretention = 60\nlease = 1.5\nrequire = true\n'
    )
    assert document.store == StoreSettings(place="s.db", durability="process")
    assert document.idempotency == IdempotencySettings(retention=60, lease=1.5, require=True)


@pytest.mark.parametrize(
    ("written", "environment", "place"),
    [
        ("memory", {}, "memory"),
        ("state/s.db", {}, str(BASE / "state/s.db")),
        ("/var/s.db", {}, "/var/s.db"),
        ("${DIR}/s.db", {"DIR": "/var"}, "/var/s.db"),
        ("${DIR}/s.db", {"DIR": "state"}, str(BASE / "state/s.db")),
        ("${STORE}", {"STORE": "memory"}, "memory"),
        ("${STORE}", {"STORE": "postgresql://h/n"}, "postgresql://h/n"),
        ("postgresql://u:${P}@h/n", {"P": "s3cret"}, "postgresql://u:s3cret@h/n"),
        ("postgres:///n", {}, "postgres:///n"),
    ],
)
def test_a_place_is_made_whole_with_the_folder_and_the_environment(
    written: str, environment: dict[str, str], place: str
) -> None:
    assert clean(f'[store]\nplace = "{written}"\n').store.located(BASE, environment) == place


@pytest.mark.parametrize("environment", [{}, {"P": ""}])
def test_a_variable_that_is_not_set_is_named_and_never_read_as_nothing(environment: dict[str, str]) -> None:
    settings = clean('[store]\nplace = "postgresql://u:${P}@h/n"\n').store
    assert settings.located(BASE, environment) == MissingVariable("P")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('""', "`place` is empty"),
        ('"  "', "`place` is empty"),
        ('"redis://user:hunter2@h"', "no store is known by redis://"),
        ('"sqlite:///s.db"', "no store is known by sqlite://"),
        (r'"a\u0000b"', "`place` holds characters that cannot be printed"),
    ],
)
def test_a_place_of_no_known_kind_is_refused_without_telling_its_password(value: str, message: str) -> None:
    finding = only(f"[store]\nplace = {value}\n")
    assert (finding.rule, finding.severity, finding.pointer) == ("Y875", "error", "/store/place")
    assert finding.message.startswith(message)
    assert "hunter2" not in str(finding)


@pytest.mark.parametrize(
    "place", ["postgresql://u:hunter2@h/n", "postgres://u:${A}hunter2@h/n", "postgresql://h/n?password=hunter2"]
)
def test_a_password_in_the_file_is_a_warning_that_does_not_repeat_it(place: str) -> None:
    finding = only(f'[store]\nplace = "{place}"\n')
    assert (finding.rule, finding.severity) == ("Y876", "warning")
    assert "hunter2" not in str(finding)


def test_an_unknown_durability_is_refused_with_those_there_are() -> None:
    finding = only('[store]\ndurability = "ful"\n')
    assert (finding.rule, finding.severity) == ("D106", "error")
    assert "full" in finding.help


@pytest.mark.parametrize(
    "text", ["retention = 0", "retention = 0.5", "retention = 1e9", "lease = -1", "lease = 90000", "retention = 10"]
)
def test_a_time_out_of_its_bounds_is_refused_and_the_default_is_kept(text: str) -> None:
    document, (finding,) = read(f"[idempotency]\n{text}\n")
    assert (finding.rule, finding.severity) == ("Y877", "error")
    assert document.idempotency == IdempotencySettings()


@pytest.mark.parametrize(("text", "key"), [("[store]\nplce = 1", "plce"), ("[idempotency]\nleese = 1", "leese")])
def test_a_key_nobody_knows_is_named(text: str, key: str) -> None:
    finding = only(text)
    assert finding.rule == "D105"
    assert key in finding.message


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3)


@given(st.dictionaries(st.sampled_from(["place", "durability", "retention", "lease", "require", "x"]), JSON))
def test_whatever_the_tables_hold_is_read_or_reported(data: dict[str, object]) -> None:
    root = Table({"store": data, "idempotency": data}, "", Findings(lambda _: Location("f")))
    store, idempotency = read_store(root), read_idempotency(root)
    assert store.durability in ("full", "process")
    assert 1 <= idempotency.lease <= idempotency.retention
