"""`[auth]`: settings are read, and those that would admit the wrong callers are errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.checks.lint.rule_index import all_rules
from bespeak.documents.deployment.server_toml import parse_server
from bespeak.state.identity.settings import AuthSettings, MtlsSettings, SignedSettings, TokenSettings
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Location

SERVER = '[server]\nserver_id = "s"\noperator = "o"\ncontact = "c"\n'
TOKEN = '[auth]\nmode = "token"\n[auth.token]\nkeys = "k"\n'


def read(text: str) -> tuple[AuthSettings, list[Diagnostic]]:
    document, findings = parse_server(SERVER + text, "d/bespeak.toml")
    return document.auth, findings


def clean(text: str) -> AuthSettings:
    settings, findings = read(text)
    assert findings == [], [str(finding) for finding in findings]
    return settings


def only(text: str) -> Diagnostic:
    _, (finding,) = read(text)
    return finding


def test_headers_are_trusted_without_the_table_and_one_mode_may_be_a_string() -> None:
    assert clean("") == AuthSettings()
    assert clean("").is_open
    assert clean('[auth]\nmode = "signed"').modes == ("signed",)


def test_every_setting_is_read() -> None:
    settings = clean("""\
[auth]
modes = ["token", "mtls", "signed"]
[auth.token]
keys = "issuer.json"
issuer = "https://id.example"
audience = "rooms"
algorithms = ["ES384", "PS256"]
leeway = 0
agent_claim = "agent"
scope_claim = "scp"
principal_claim = "owner"
[auth.mtls]
ca = "/etc/ca.pem"
[auth.signed]
max_age = 12.5
""")
    assert settings == AuthSettings(
        modes=("token", "mtls", "signed"),
        token=TokenSettings(
            keys=Path("d/issuer.json"),
            issuer="https://id.example",
            audience="rooms",
            algorithms=("ES384", "PS256"),
            leeway=0,
            agent_claim="agent",
            scope_claim="scp",
            principal_claim="owner",
        ),
        mtls=MtlsSettings(ca=Path("/etc/ca.pem")),
        signed=SignedSettings(max_age=12.5),
    )
    assert not settings.is_open


@pytest.mark.parametrize(
    "url", ["https://id.example/jwks", "https://id.example:8443/", "http://127.0.0.1:1/k", "http://localhost/k"]
)
def test_keys_are_fetched_safely(url: str) -> None:
    assert clean(f'[auth]\nmode = "token"\n[auth.token]\njwks_url = "{url}"\n').token.jwks_url == url


@rows(
    "text, rule, at",
    ('[auth]\nmodes = ["tokn"]', "Y850", "/auth/modes"),
    ('[auth]\nmode = "none"', "Y850", "/auth/mode"),
    ("[auth]\nmodes = []", "Y851", "/auth/modes"),
    ("[auth]\n", "Y851", "/auth"),
    ('[auth]\nmodes = ["open", "signed"]', "Y851", "/auth/modes"),
    ('[auth]\nmode = "signed"\nmodes = ["signed"]', "Y851", "/auth/mode"),
    ('[auth]\nmode = "token"', "Y852", "/auth/token"),
    (TOKEN + 'jwks_url = "https://id.example/"', "Y852", "/auth/token/jwks_url"),
    (TOKEN + 'algorithms = ["none"]', "Y854", "/auth/token/algorithms"),
    (TOKEN + 'algorithms = ["HS256"]', "Y854", "/auth/token/algorithms"),
    (TOKEN + "algorithms = []", "Y854", "/auth/token/algorithms"),
    (TOKEN + "leeway = 301", "Y855", "/auth/token/leeway"),
    (TOKEN + "leeway = -1", "Y855", "/auth/token/leeway"),
    (TOKEN + 'issuer = ""', "Y858", "/auth/token/issuer"),
    (TOKEN + 'audience = " "', "Y858", "/auth/token/audience"),
    (TOKEN + 'agent_claim = "a\\u0000"', "Y858", "/auth/token/agent_claim"),
    (TOKEN + 'issuer = "' + "x" * 3000 + '"', "Y858", "/auth/token/issuer"),
    ('[auth]\nmode = "mtls"', "Y856", "/auth/mtls"),
    ('[auth]\nmode = "signed"\n[auth.signed]\nmax_age = 0', "Y855", "/auth/signed/max_age"),
    ('[auth]\nmode = "signed"\n[auth.signed]\nmax_age = 3601', "Y855", "/auth/signed/max_age"),
    ('[auth]\nmodes = "token"', "D104", "/auth/modes"),
    ("[auth]\nmode = 1", "D104", "/auth/mode"),
    (TOKEN + "leeway = inf", "D104", "/auth/token/leeway"),
    (TOKEN + "issuer = 1", "D104", "/auth/token/issuer"),
    ("auth = 1", "D104", "/auth"),
)
def test_wrong_value_is_an_error_at_its_place(text: str, rule: str, at: str) -> None:
    # A value at the root stands before the first table.
    document, findings = parse_server(
        text + "\n" + SERVER if text.startswith("auth") else SERVER + text, "bespeak.toml"
    )
    (finding,) = findings
    assert (finding.rule, finding.severity, finding.pointer) == (rule, "error", at)
    assert isinstance(document.auth, AuthSettings)


@rows(
    "url",
    *("http://id.example/jwks", "http://127.0.0.1.example/", "ftp://id.example/", "file:///etc/passwd"),
    *("https://", "https://[::1", "https://id.example:port/", "https://id.example/a b", "//id.example/"),
    "id.example",
)
def test_unsafe_key_url_is_refused(url: str) -> None:
    assert only(f'[auth]\nmode = "token"\n[auth.token]\njwks_url = "{url}"\n').rule == "Y853"


def test_fault_hides_passwords_names_unused_tables_and_suggests_a_mode() -> None:
    finding = only('[auth]\nmode = "token"\n[auth.token]\njwks_url = "https://me:s3cret@id.example/"\n')
    assert finding.rule == "Y853"
    assert "s3cret" not in str(finding)
    finding = only('[auth]\nmodes = ["signed"]\n[auth.mtls]\nca = "ca.pem"\n')
    assert (finding.rule, finding.severity) == ("Y857", "warning")
    assert "modes" in finding.help
    assert '"mtls"' in only('[auth]\nmodes = ["mtsl"]').help


def test_table_of_one_mode_alone_or_mistyped_modes_do_not_open_the_server() -> None:
    _, findings = read('[auth.mtls]\nca = "ca.pem"\n')
    errors = [finding for finding in findings if finding.severity == "error"]
    assert [(finding.rule, finding.help) for finding in errors] == [
        ("Y851", 'Write modes = ["mtls"], or ["open"] to trust headers.')
    ]
    _, findings = parse_server(SERVER + '[auth]\nmods = ["signed"]\n', "bespeak.toml")
    assert [(finding.rule, finding.severity) for finding in findings] == [("Y851", "error"), ("D105", "error")]


@pytest.mark.parametrize(
    "table",
    ['[auth]\nmode = "signed"\nmods = 1\n', TOKEN + 'key = "k"\n', '[auth]\nmode = "mtls"\n[auth.mtls]\nca="c"\nb=1'],
)
def test_unknown_keys_are_reported(table: str) -> None:
    assert only(table).rule == "D105"


keys = st.sampled_from(
    ["mode", "modes", "token", "mtls", "signed", "keys", "jwks_url", "ca", "leeway", "max_age", "algorithms", "issuer"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(["token", "open"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(keys, values))
def test_any_value_is_read_or_reported(data: dict[str, object]) -> None:
    findings = Findings(lambda _: Location("f", 1, 1))
    settings = read_settings(AuthSettings, Table(data, "/auth", findings))
    assert settings.modes
    if not findings.failed:
        assert settings.is_open or "open" not in settings.modes
        assert "token" not in settings.modes or settings.token.keys or settings.token.jwks_url
        assert "mtls" not in settings.modes or settings.mtls.ca
    assert {finding.rule for finding in findings.found} <= all_rules().keys()
