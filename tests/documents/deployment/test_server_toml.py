"""Configurations: values are read, errors and settings without effect are reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.contract.data_set import data_sets
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS, MethodPolicy, Policies, Redirect
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.server_settings import (
    AgentSettings,
    ClientCertificateSettings,
    LimitSettings,
    ListenSettings,
    ResourceSettings,
)
from bespeak.documents.deployment.server_toml import (
    ServerDocument,
    check_identity,
    configuration_naming,
    parse_server,
    read_server,
    served_with,
    with_custom,
    with_document,
)
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

SERVER = '[server]\nserver_id = "s"\noperator = "o"\ncontact = "c"\n'


def clean(text: str) -> ServerDocument:
    document, findings = parse_server(text, "d/bespeak.toml")
    assert findings == [], [str(finding) for finding in findings]
    return document


def only(text: str) -> Diagnostic:
    _, (finding,) = parse_server(text, "d/bespeak.toml")
    return finding


def test_every_setting_is_read() -> None:
    document = clean("""\
[server]
server_id = "s.example"
operator = "o"
contact = "c"
domain = "d"
issued = "2026-01-01T00:00:00Z"
supported_features = ["f"]
document_version = "v9"
catalog = "1.0.0"
app = "module:app"
endpoints = "contracts"
recipes = "r.toml"
signing_key = "/keys/sign.pem"
wildcard_handler = "module.anything"
[policies]
wildcards_accepted = true
anonymous_discovery = false
synthesis_enabled = true
max_synthesis_depth = 3
strict_output = true
confirm_irreversible = true
[policies.methods]
allow = ["book", "RESERVE"]
disallow = ["TRANSFER"]
legacy = "*"
custom = ["TEND"]
[[policies.methods.redirects]]
from_method = "BOOK"
to_method = "RESERVE"
[agents]
directory = "who"
disclosure = "private"
disclosure_notice = "Ask."
require_known = true
[listen]
agtp = "0.0.0.0:4480"
cert = "c.pem"
key = "k.pem"
workers = 2
insecure = true
[limits]
idle_timeout = 60
read_timeout = 2.5
drain_timeout = 5
max_connections = 100
max_body = 1000
max_buffered = 200000
[[apis]]
path = "/a"
[[hosted_protocols]]
protocol = "mcp"
[[resources]]
name = "rules"
function = "module.rules"
""")
    assert document.identity == ServerIdentity(
        server_id="s.example",
        operator="o",
        contact="c",
        domain="d",
        supported_features=("f",),
        issued="2026-01-01T00:00:00Z",
    )
    assert (document.main.document_version, document.main.catalog, document.main.app) == ("v9", "1.0.0", "module:app")
    assert (document.main.endpoints, document.recipes) == (Path("d/contracts"), Path("d/r.toml"))
    assert (document.signing_key, document.main.wildcard_handler) == (Path("/keys/sign.pem"), "module.anything")
    assert document.agents == AgentSettings(
        directory=Path("d/who"), disclosure="private", disclosure_notice="Ask.", require_known=True
    )
    assert document.listen == ListenSettings(
        agtp="0.0.0.0:4480", cert=Path("d/c.pem"), key=Path("d/k.pem"), workers=2, insecure=True
    )
    assert document.limits == LimitSettings(
        idle_timeout=60, read_timeout=2.5, drain_timeout=5, max_connections=100, max_body=1000, max_buffered=200_000
    )
    assert (document.apis, document.hosted_protocols) == (({"path": "/a"},), ({"protocol": "mcp"},))
    assert document.resources == (ResourceSettings(name="rules", description="", function="module.rules"),)
    policies = document.policies
    assert (policies.wildcards_accepted, policies.anonymous_discovery, policies.strict_output) == (True, False, True)
    assert (policies.synthesis_enabled, policies.max_synthesis_depth) == (True, 3)
    assert policies.confirm_irreversible
    assert (policies.methods.allow, policies.methods.custom) == (("BOOK", "RESERVE"), ("TEND",))
    assert policies.methods.redirects == (Redirect(from_method="BOOK", to_method="RESERVE"),)
    assert "limits" in document.given


def test_an_empty_file_has_the_defaults_of_the_draft() -> None:
    document = clean("")
    assert document == ServerDocument()
    assert document.policies.methods.allow == "*"
    assert all(document.policies.methods.admits(method) for method in FLOOR_METHODS)


@pytest.mark.requirement("API-9.2-3")
@rows(
    "written, read",
    ("", ()),
    ('legacy = "NONE"', ()),
    ('legacy = "*"', LEGACY_VERBS),
    ('legacy = ["POST", "get"]', ("GET", "POST")),
    ("legacy = []", ()),
    ('legacy_verbs = "enabled"', LEGACY_VERBS),
    ('legacy_verbs = "disabled"', ()),
    ("legacy_verbs = true", LEGACY_VERBS),
    ('legacy = ["GET"]\nlegacy_verbs = "enabled"', ("GET",)),
)
def test_legacy_verbs_are_opted_into_one_by_one_all_or_not_at_all(written: str, read: tuple[str, ...]) -> None:
    assert clean(f"[policies.methods]\n{written}\n").policies.methods.legacy == read


@pytest.mark.requirement("API-9.4-2")
@pytest.mark.parametrize("written", ['["GET", "HEAD"]', '["GETT"]', '["BOOK"]'])
def test_anything_but_the_five_http_verbs_in_legacy_is_an_error(written: str) -> None:
    finding = only(f"[policies.methods]\nlegacy = {written}\n")
    assert (finding.rule, finding.severity, finding.pointer) == ("Y804", "error", "/policies/methods/legacy")
    assert finding.location.line == 2


@pytest.mark.parametrize("written", ['legacy = "SOME"', "legacy = 1", "allow = 1", 'allow = "all"', "disallow = 'X'"])
def test_method_policy_in_an_unknown_form_is_an_error(written: str) -> None:
    finding = only(f"[policies.methods]\n{written}\n")
    assert (finding.rule, finding.severity) == ("D104", "error")


def test_alias_is_a_redirect_and_allows_an_http_verb() -> None:
    methods = clean('[policies.methods.aliases]\nget = "FETCH"\nFIND = "QUERY"\n').policies.methods
    assert methods.legacy == ("GET",)
    assert methods.redirects == (
        Redirect(from_method="GET", to_method="FETCH"),
        Redirect(from_method="FIND", to_method="QUERY"),
    )


@rows(
    "text, rule, pointer",
    ('[policies]\nwildcards_accepted = "yes"', "D104", "/policies/wildcards_accepted"),
    ("[policies]\nmax_synthesis_depth = 0", "D104", "/policies/max_synthesis_depth"),
    ("[[policies.methods.redirects]]\nfrom_method = 'A'", "D103", "/policies/methods/redirects/0"),
    ('[agents]\ndisclosure = "secret"', "D106", "/agents/disclosure"),
    ("[listen]\nworkers = 0", "D104", "/listen/workers"),
    ("[listen]\nworkers = 1.5", "D104", "/listen/workers"),
    ('[listen]\ncert = "c.pem"', "Y822", "/listen/cert"),
    ('[listen]\nkey = "k.pem"', "Y822", "/listen/key"),
    ("[limits]\nidle_timeout = -1", "D104", "/limits/idle_timeout"),
    ("[limits]\nmax_body = 0xffffffffffffffffffff", "D104", "/limits/max_body"),
    ("server = 1", "D104", "/server"),
    ("signing = true", "D104", "/signing"),
    ("synthesis = true", "D104", "/synthesis"),
    ("[policies]\nsynthesis = true", "D104", "/policies/synthesis"),
    ("apis = [1]", "D104", "/apis"),
    ("[[apis]]\nsince = 2026-01-01", "D110", "/apis/0/since"),
    ("[[resources]]\nname = 'r'", "D103", "/resources/0"),
)
def test_wrong_values_are_errors_with_their_location(text: str, rule: str, pointer: str) -> None:
    finding = only(text)
    assert (finding.rule, finding.severity, finding.pointer) == (rule, "error", pointer)
    assert finding.location.line > 0


@rows(
    "text, advice",
    ("[limts]\nmax_body = 1", "Did you mean `limits`?"),
    ("[limits]\nmax_bdy = 1", "Did you mean `max_body`?"),
    ("[policies]\nwildcard_accepted = true", "Did you mean `wildcards_accepted`?"),
    ("[policies.methods]\nallowed = '*'", "Did you mean `allow`?"),
    ("[listen]\nport = 4480", 'Write agtp = "host:port".'),
    ('[listen]\nhost = "::"', 'Write agtp = "host:port".'),
    ("[limits]\nport = 4480", ""),
    ("[auht]\nmodes = ['signed']", "Did you mean `auth`?"),
    ("[AUTH]\nmodes = ['signed']", "Did you mean `auth`?"),
    ("[policies]\nconfirm_ireversible = true", "Did you mean `confirm_irreversible`?"),
    ("[server.auth]\nmodes = ['signed']", ""),
    ("[endpoint]\nmethod = 'BOOK'", ""),
)
def test_an_unknown_key_is_an_error_with_the_nearest(text: str, advice: str) -> None:
    finding = only(text)
    assert (finding.rule, finding.severity, finding.help) == ("D105", "error", advice)


@pytest.mark.requirement("API-8.3-8")
def test_own_key_and_an_identity_without_operator_or_contact_are_warnings() -> None:
    finding = only("[limits]\nx-reason = 'small machine'")
    assert (finding.rule, finding.severity) == ("D105", "warning")
    document, findings = parse_server('[server]\nserver_id = "s"\n', "x.toml")
    assert document.identity == ServerIdentity(server_id="s", operator="unspecified", contact="")
    assert [finding.rule for finding in findings] == ["Y820", "Y820"]


@rows(
    "text, named",
    ("[policies]\nrcns_enabled = true", "[policies] rcns_enabled"),
    ("[policies.synthesis]\nsession_duration = '1h'", "[policies.synthesis] session_duration"),
    ("[gateway]\nsocket = '/run/x'", "[gateway] socket"),
    ("[signing]\nkey_id = 'k'", "[signing] key_id"),
    ("[server]\namg_version = '1'", "[server] amg_version"),
)
def test_a_setting_without_effect_is_named(text: str, named: str) -> None:
    finding = only(text)
    assert (finding.rule, finding.severity) == ("Y821", "warning")
    assert finding.message == f"this server does not act on {named}"


def test_the_names_of_earlier_releases_are_read() -> None:
    text = '[server]\nissuer = "s"\noperator = "o"\ncontact = "c"\n[policy]\nwildcards_accepted = true\n'
    document, findings = parse_server(text + '[[hosts_protocols]]\nprotocol = "mcp"\n', "x.toml")
    assert document.identity.server_id == "s"
    assert document.policies.wildcards_accepted
    assert document.hosted_protocols == ({"protocol": "mcp"},)
    assert [finding.rule for finding in findings] == ["D107"] * 3


@rows(
    "text, message",
    ("[mtls]\nmode = 'required'", "`mode` is 'required', which needs `ca_bundle_path`"),
    ("[mtls]\nmode = 'requird'\nca_bundle_path = 'ca.pem'", "`mode` must be one of disabled, optional, required"),
    ("[policies.oauth]\nenabled = true", "[policies.oauth] is enabled, but [auth] does not require tokens"),
    ("[signing]\nenabled = true", "[signing] is enabled, but names no key"),
    (
        "[mtls]\nmode = 'required'\nca_bundle_path = 'a.pem'\n[auth]\nmodes = ['mtls']\n[auth.mtls]\nca = 'b.pem'",
        "[mtls] and [auth.mtls] name different authorities of client certificates",
    ),
)
def test_protection_that_is_named_and_not_given_is_an_error(text: str, message: str) -> None:
    _, findings = parse_server(text, "d/bespeak.toml")
    assert any(finding.severity == "error" and finding.message.startswith(message) for finding in findings)


CERTIFICATES = ClientCertificateSettings(mode="required", ca_bundle_path=Path("d/ca.pem"))
BOTH = '[policies.synthesis]\nrecipes_file = "p.toml"\n[synthesis]\nrecipes_file = "r.toml"\n'


@rows(
    "text, name, value",
    ("[mtls]\nmode = 'required'\nca_bundle_path = 'ca.pem'\n", "mtls", CERTIFICATES),
    ('[signing]\nenabled = true\nkey_path = "k.pem"\n', "signing_key", Path("d/k.pem")),
    ('[signing]\nenabled = false\nkey_path = "k.pem"\n', "signing_key", None),
    ('[synthesis]\nrecipes_file = "r.toml"\n', "recipes", Path("d/r.toml")),
    (BOTH, "recipes", Path("d/p.toml")),
)
def test_settings_of_the_reference_implementation_are_read(text: str, name: str, value: object) -> None:
    assert getattr(clean(text), name) == value


def test_a_file_that_cannot_be_read_leaves_the_defaults(tmp_path: Path) -> None:
    document, (finding,) = read_server(tmp_path / "none.toml")
    assert document == ServerDocument()
    assert finding.rule == "D101"
    (tmp_path / "bespeak.toml").write_text("[server\n")
    assert read_server(tmp_path / "bespeak.toml")[1][0].rule == "D102"


def test_durations_of_the_reference_implementation_are_those_of_negotiation() -> None:
    text = '[policies.synthesis]\npersistent_default_duration = "2h"\nmax_evaluation_duration = "10m"\n'
    settings = clean(text).extension_tables["negotiation"]
    assert (settings.default_duration, settings.decision, settings.max_duration) == (7200.0, 600.0, 30 * 86400.0)
    own = clean('[synthesis]\npersistent_max_duration = "2h"\n[negotiation]\nmax_duration = 600\n')
    assert own.extension_tables["negotiation"].max_duration == 600


def test_data_sets_join_the_data_manifest() -> None:
    document = clean(
        SERVER
        + """\
[[data_manifest.available_data]]
class = "ledger"
description = "Bookings"
[[data]]
class = "ledger"
database = "${DATABASE}"
table = "bookings"
key = ["id"]
[[data]]
class = "rates"
formats = ["json", "csv"]
sensitivity = "low"
file = "rates.csv"
[data.columns]
day = "date"
rate = { type = "number", description = "Per euro" }
"""
    )
    assert document.data_manifest is not None
    ledger, rates = data_sets(document.data_manifest)
    assert (ledger.description, ledger.table, ledger.required_scopes) == ("Bookings", "bookings", ("data:ledger",))
    assert (rates.file, rates.required_scopes) == ("rates.csv", ())
    assert {column.name: column.kind for column in rates.columns} == {"day": "date", "rate": "number"}


@rows(
    "text, message",
    ('class = "ledger"\n', "'ledger': it needs exactly one of function, file, table, query; it has no source"),
    (
        'class = "ledger"\nfile = "a.csv"\ncolumns = { day = "day" }\n',
        "the column `day` must have one of the types",
    ),
    ('class = "ledger"\nfile = "a.csv"\nmax_rows = 1000000\n', "`max_rows` must be 1 to 10000; got 1000000"),
)
def test_data_sets_that_cannot_be_used_are_reported(text: str, message: str) -> None:
    finding = only(f"{SERVER}[[data]]\n{text}")
    assert message in finding.message
    assert finding.pointer.startswith("/data/0")


OF_DOCUMENT = ServerIdentity(server_id="rooms.example", operator="Acme", contact="a@rooms.example", name="Rooms")
SERVICE = Service(identity=OF_DOCUMENT, policies=Policies(methods=MethodPolicy(custom=("TRIAGE",))))


def test_a_configuration_names_its_document_at_the_top_or_beside_the_app(tmp_path: Path) -> None:
    document = tmp_path / "rooms.agis"
    document.touch()
    for text in ('document = "rooms.agis"', '[server]\ndocument = "./rooms.agis"'):
        (tmp_path / "bespeak.toml").write_text(text)
        assert configuration_naming(document) == (tmp_path / "bespeak.toml", [])
    (tmp_path / "bespeak.toml").write_text('document = "other.agis"')
    assert configuration_naming(document) == (None, [])


def test_findings_are_returned_for_an_unreadable_configuration(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text("document = [")
    found, [finding] = configuration_naming(tmp_path / "rooms.agis")
    assert (found, finding.rule) == (None, "D102")


def test_configuration_precedes_the_document_whose_verbs_stay_and_gaps_are_reported() -> None:
    server, _ = parse_server('document = "a.agis"\n[server]\noperator = "Other"\ndomain = "b.example"\n', "b.toml")
    identity = served_with(SERVICE, server.identity, None, None).identity
    assert (identity.server_id, identity.operator, identity.contact) == ("rooms.example", "Other", "a@rooms.example")
    assert (identity.name, identity.domain) == ("Rooms", "b.example")
    assert served_with(SERVICE, None, None, None) == SERVICE
    policies = Policies(strict_output=True, methods=MethodPolicy(custom=("ADMIT",)))
    served = served_with(SERVICE, None, policies, "1.0.0")
    assert served.policies.strict_output
    assert (served.policies.methods.custom, served.catalog) == (("ADMIT", "TRIAGE"), "1.0.0")
    assert with_custom(policies, ["ADMIT"]) == policies
    assert list(check_identity(OF_DOCUMENT, Location("rooms.agis"))) == []
    [finding] = check_identity(
        ServerIdentity(server_id="a", operator="unspecified", contact=""), Location("rooms.agis")
    )
    assert (finding.rule, finding.severity) == ("Y820", "warning")
    assert "`operator` and `contact` are missing" in finding.message


@rows(
    "text, pointer",
    ('document = "a.agis"\n[vocabulary]\ndomain = "x"\n', "/vocabulary"),
    ('document = "a.agis"\n[data_manifest]\npre_auth_discovery = true\n', "/data_manifest"),
    ('[handlers."BOOK /room"]\ntype = "registered_function"\nfunction = "a.b"\n', "/handlers"),
)
def test_settings_that_contradict_or_need_a_document_are_errors(text: str, pointer: str) -> None:
    _, findings = parse_server(text, "bespeak.toml")
    assert [(finding.rule, finding.severity, finding.pointer) for finding in findings] == [("Y822", "error", pointer)]


def test_folder_with_a_document_needs_no_endpoints_and_no_server_id(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text('document = "rooms.agis"')
    deployment, findings = read_deployment(tmp_path)
    assert (deployment.server.document, findings) == (tmp_path / "rooms.agis", [])


def test_a_document_joins_the_files_of_its_folder() -> None:
    server, _ = parse_server('document = "a.agis"\n[policies]\nstrict_output = true\n', "bespeak.toml")
    files = Service(
        identity=ServerIdentity(server_id="", operator="unspecified", contact=""), require_known_agents=True
    )
    described = replace(SERVICE, description="Rooms.", document_version="2", agtp="agtp://rooms.example")
    joined = with_document(files, described, server)
    assert joined.identity == OF_DOCUMENT
    assert (joined.description, joined.document_version, joined.agtp) == ("Rooms.", "2", "agtp://rooms.example")
    assert joined.require_known_agents
    assert joined.policies.strict_output
