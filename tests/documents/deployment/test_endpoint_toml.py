"""Endpoint files: every shape is read, and all errors are reported at once, each with its location."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.documents.deployment.endpoint_text import parse_endpoint

from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint, Semantic
from bespeak.contract.handler import ExternalService, McpServer, McpTool, RegisteredFunction
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

HEAD = """\
[endpoint]
method = "BOOK"
path = "/room"
description = "Books a room."
"""
SEMANTIC = """\
[endpoint.semantic]
intent = "Reserve a room for the named guest."
actor = "agent"
outcome = "A reservation exists."
capability = "transaction"
confidence = 0.85
impact = "irreversible"
is_idempotent = false
"""
INPUT = """\
[[endpoint.input.required]]
name = "guest_id"
type = "string"
format = "uuid"
[[endpoint.input.optional]]
name = "nights"
type = "integer"
minimum = 1
default = 1
"""
OUTPUT = """\
[[endpoint.output]]
name = "reservation_id"
type = "string"
"""
ERRORS = """\
[endpoint.errors]
list = ["room_unavailable"]
"""
HANDLER = """\
[endpoint.handler]
type = "registered_function"
function = "rooms.handlers.book"
"""
EXTERNAL = """\
[endpoint.handler]
type = "external_service"
url = "https://upstream.example/booking"
method = "POST"
"""
WHOLE = HEAD + SEMANTIC + INPUT + OUTPUT + ERRORS + HANDLER


def good(text: str) -> Endpoint:
    endpoint, findings = parse_endpoint(text, "x.toml")
    assert endpoint is not None, [str(finding) for finding in findings]
    return endpoint


def wrong(text: str) -> list[Diagnostic]:
    endpoint, findings = parse_endpoint(text, "x.toml")
    assert endpoint is None
    return [finding for finding in findings if finding.severity == "error"]


def the_error(text: str) -> Diagnostic:
    (finding,) = wrong(text)
    return finding


@pytest.mark.requirement("API-6.3-1")
@pytest.mark.requirement("API-6.3-2")
@pytest.mark.requirement("API-6.3-3")
def test_a_whole_file_is_read_without_a_finding() -> None:
    endpoint, findings = parse_endpoint(WHOLE, "x.toml")
    assert findings == []
    assert endpoint == Endpoint(
        method="BOOK",
        path="/room",
        description="Books a room.",
        semantic=Semantic(
            intent="Reserve a room for the named guest.",
            actor="agent",
            outcome="A reservation exists.",
            capability="transaction",
            confidence=0.85,
            impact="irreversible",
            is_idempotent=False,
        ),
        input_schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "guest_id": {"type": "string", "format": "uuid"},
                "nights": {"type": "integer", "minimum": 1, "default": 1},
            },
            "required": ["guest_id"],
            "additionalProperties": False,
        },
        output_schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"reservation_id": {"type": "string"}},
            "required": ["reservation_id"],
            "additionalProperties": True,
        },
        errors=(DeclaredError("room_unavailable"),),
        handler=RegisteredFunction(function="rooms.handlers.book"),
        location=Location("x.toml"),
    )


def test_plain_schemas_are_read_unchanged() -> None:
    schemas = """\
[endpoint.input_schema]
type = "object"
additionalProperties = false
properties = { a = { type = "string" } }
[endpoint.output_schema]
type = "object"
"""
    endpoint = good(HEAD + SEMANTIC + schemas + ERRORS + HANDLER)
    properties = {"a": {"type": "string"}}
    assert endpoint.input_schema == {"type": "object", "additionalProperties": False, "properties": properties}
    assert endpoint.output_schema == {"type": "object"}


def test_schema_beside_the_lists_is_refused_and_that_of_an_entry_overrides_its_short_keys() -> None:
    finding = the_error(WHOLE + '[endpoint.input_schema]\ntype = "object"\n')
    assert (finding.rule, finding.pointer) == ("D109", "/endpoint/input_schema")
    entry = 'schema = { type = "array", items = { type = "string" } }\ndescription = "Notes."\n'
    schema = good(WHOLE.replace('type = "integer"\nminimum = 1\ndefault = 1\n', entry)).input_schema
    full = {"description": "Notes.", "type": "array", "items": {"type": "string"}}
    assert schema["properties"]["nights"] == full


def test_endpoint_without_lists_is_reported_and_empty_lists_declare_no_input() -> None:
    endpoint, findings = parse_endpoint(HEAD + SEMANTIC + ERRORS + HANDLER, "x.toml")
    assert endpoint.input_schema["properties"] == {}
    assert endpoint.input_schema["additionalProperties"] is False
    assert [(finding.rule, finding.severity) for finding in findings] == [("D118", "info")] * 2
    text = HEAD + "input = {}\noutput = []\nerrors = []\n" + SEMANTIC + HANDLER
    assert parse_endpoint(text, "x.toml")[1] == []


@rows(
    "written, read",
    ('errors = ["a", "b"]', [("a", ""), ("b", "")]),
    ("errors = []", []),
    ('errors = { list = ["a"] }', [("a", "")]),
    ('errors = { a = "Taken.", b = "Wrong." }', [("a", "Taken."), ("b", "Wrong.")]),
    ('errors = { list = ["a", "b"], b = "Wrong." }', [("a", ""), ("b", "Wrong.")]),
    ('errors = [{ name = "a", description = "Taken." }]', [("a", "Taken.")]),
    ('errors = { list = "An error called list." }', [("list", "An error called list.")]),
)
def test_errors_may_be_written_in_many_ways(written: str, read: list[tuple[str, str]]) -> None:
    endpoint = good(HEAD + written + "\n" + SEMANTIC + INPUT + OUTPUT + HANDLER)
    assert endpoint.errors == tuple(DeclaredError(*pair) for pair in read)


@pytest.mark.parametrize(
    "written", ["errors = 3", "errors = [3]", 'errors = ["a", {}]', "errors = { a = 1 }", "errors = {a = []}"]
)
def test_errors_in_an_unknown_form_are_refused(written: str) -> None:
    assert {finding.rule for finding in wrong(HEAD + written + "\n" + SEMANTIC + INPUT + OUTPUT + HANDLER)} == {"D104"}


@pytest.mark.requirement("API-6.2-1")
@rows(
    "key, text",
    ("method", WHOLE.replace('method = "BOOK"\n', "")),
    ("path", WHOLE.replace('path = "/room"\n', "")),
    ("description", WHOLE.replace('description = "Books a room."\n', "")),
    ("semantic", WHOLE.replace(SEMANTIC, "")),
    ("errors", WHOLE.replace(ERRORS, "")),
    ("handler", WHOLE.replace(HANDLER, "")),
)
def test_a_missing_part_is_named(key: str, text: str) -> None:
    finding = the_error(text)
    assert (finding.rule, finding.message) == ("D103", f"`{key}` is missing")
    assert finding.location == Location("x.toml", 1, 2)


def test_concepts_are_iris() -> None:
    concepts = 'concepts = ["https://ex.org/onto/hotel#Stay"]'
    told = WHOLE.replace("is_idempotent = false", f"is_idempotent = false\n{concepts}")
    assert good(told).semantic.concepts == ("https://ex.org/onto/hotel#Stay",)
    finding = the_error(told.replace("https://ex.org/onto/hotel#Stay", "Stay"))
    assert finding.pointer == "/endpoint/semantic/concepts"
    assert "an absolute IRI" in finding.message


@pytest.mark.requirement("API-7.1-2")
@pytest.mark.parametrize("key", ["intent", "actor", "outcome", "confidence", "impact", "is_idempotent"])
def test_a_missing_semantic_field_is_named(key: str) -> None:
    lines = [line for line in WHOLE.split("\n") if not line.startswith(f"{key} =")]
    finding = the_error("\n".join(lines))
    assert (finding.rule, finding.message) == ("D103", f"`{key}` is missing")
    assert finding.location.line == 5


@pytest.mark.requirement("API-7.1-1")
def test_missing_capability_is_inherited_later_and_an_unusual_actor_accepted() -> None:
    assert good(WHOLE.replace('capability = "transaction"\n', "")).semantic.capability == ""
    assert good(WHOLE.replace('actor = "agent"', 'actor = "lighthouse keeper"')).semantic.actor == "lighthouse keeper"


@pytest.mark.requirement("API-7.1-3")
@pytest.mark.requirement("API-7.1-5")
@rows(
    "old, new, advice",
    ('"transaction"', '"transactions"', 'Did you mean "transaction"?'),
    ('"irreversible"', '"Irreversable"', 'Did you mean "irreversible"?'),
    ('"irreversible"', '"blue"', ""),
)
def test_a_value_outside_its_enumeration_is_refused_with_the_nearest(old: str, new: str, advice: str) -> None:
    finding = the_error(WHOLE.replace(old, new))
    assert (finding.rule, finding.help) == ("D106", advice)
    assert new.strip('"') in finding.message


@pytest.mark.requirement("API-7.1-6")
@rows(
    "old, new, pointer",
    ("is_idempotent = false", 'is_idempotent = "no"', "/endpoint/semantic/is_idempotent"),
    ("confidence = 0.85", 'confidence = "high"', "/endpoint/semantic/confidence"),
    ("confidence = 0.85", "confidence = nan", "/endpoint/semantic/confidence"),
    ("confidence = 0.85", "confidence = true", "/endpoint/semantic/confidence"),
    ('path = "/room"', "path = 7", "/endpoint/path"),
    ('description = "Books a room."', "description = [1]", "/endpoint/description"),
    ('method = "BOOK"', 'method = "BOOK"\nnamespace = 1', "/endpoint/namespace"),
    ('method = "BOOK"', 'method = "BOOK"\nrequired_scopes = "a:b"', "/endpoint/required_scopes"),
    ('method = "BOOK"', 'method = "BOOK"\nrequired_scopes = [1]', "/endpoint/required_scopes"),
    ('method = "BOOK"', 'method = "BOOK"\ndeprecated = true', "/endpoint/deprecated"),
    ('name = "nights"', "name = 1979-05-27", "/endpoint/input/optional/0/name"),
)
def test_a_wrong_type_is_refused_in_its_place(old: str, new: str, pointer: str) -> None:
    finding = the_error(WHOLE.replace(old, new))
    assert (finding.rule, finding.pointer) == ("D104", pointer)
    assert finding.location.line > 0


@pytest.mark.parametrize("written", ["semantic = 1", "handler = 1", "input = 1", "output = 1", "input_schema = 1"])
def test_part_that_is_not_a_table_is_refused(written: str) -> None:
    name = written.partition(" ")[0]
    parts = {"semantic": SEMANTIC, "handler": HANDLER, "input": INPUT, "input_schema": INPUT, "output": OUTPUT}
    text = WHOLE.replace(parts[name], "").replace(HEAD, f"{HEAD}{written}\n")
    assert [finding.rule for finding in wrong(text)] == ["D104"]


def test_everything_is_reported_at_once() -> None:
    text = WHOLE.replace('"BOOK"', "1").replace('"irreversible"', '"blue"').replace('type = "integer"', "")
    text = text.replace('function = "rooms.handlers.book"', "")
    assert [finding.rule for finding in wrong(text)] == ["D104", "D106", "D103", "D103"]


@rows(
    "old, new, key, near",
    ('path = "/room"', 'path = "/room"\nnamespce = "x"', "namespce", "namespace"),
    ("confidence = 0.85", "confidence = 0.85\nimpacts = 1", "impacts", "impact"),
    ("minimum = 1", "minimum = 1\nqqq = 1", "qqq", ""),
    ('type = "registered_function"', 'type = "registered_function"\ninlin = true', "inlin", "inline"),
    ("[endpoint]", "stray = 1\n[endpoint]", "stray", ""),
    ('path = "/room"', 'path = "/room"\nconfrim = true', "confrim", "confirm"),
    ('path = "/room"', 'path = "/room"\nInternal = true', "Internal", "internal"),
    ("minimum = 1", "minimum = 1\nmaxlength = 1", "maxlength", ""),
    ("[endpoint]", "[auth]\nmodes = []\n[endpoint]", "auth", ""),
)
def test_an_unknown_key_is_an_error_with_the_nearest(old: str, new: str, key: str, near: str) -> None:
    endpoint, (finding,) = parse_endpoint(WHOLE.replace(old, new), "x.toml")
    assert endpoint is None
    assert (finding.rule, finding.severity) == ("D105", "error")
    assert finding.message == f"`{key}` is not a known key"
    assert finding.help == (f"Did you mean `{near}`?" if near else "")


@rows(
    "old, new",
    ('path = "/room"', 'path = "/room"\nscopes = ["booking:room"]'),
    ('path = "/room"', 'path = "/room"\nrequired_scope = "booking:room"'),
    ("confidence = 0.85", 'confidence = 0.85\nrequired_scopes = ["booking:room"]'),
    ("[endpoint]", 'required_scopes = ["booking:room"]\n[endpoint]'),
)
def test_misplaced_scopes_are_refused(old: str, new: str) -> None:
    advice = "Write required_scopes, directly under [endpoint]; this key has no effect, so no scope is required."
    finding = the_error(WHOLE.replace(old, new, 1))
    assert (finding.rule, finding.help) == ("D105", advice)


@rows(
    "old, new, known",
    ("confidence = 0.85", "confidence = 0.85\nidempotent = true", "is_idempotent"),
    *(('path = "/room"', f'path = "/room"\n{word} = []', "input") for word in ("params", "inputs", "parameters")),
)
def test_another_word_for_a_key_is_an_error_with_the_key(old: str, new: str, known: str) -> None:
    endpoint, (finding,) = parse_endpoint(WHOLE.replace(old, new), "x.toml")
    assert endpoint is None
    assert (finding.rule, finding.severity, finding.help) == ("D105", "error", f"Write `{known}`.")


def test_own_key_and_a_method_in_small_letters_are_warnings() -> None:
    endpoint, (finding,) = parse_endpoint(WHOLE.replace("[endpoint]", "[endpoint]\nx-team = 'desk'", 1), "x.toml")
    assert endpoint is not None
    assert (finding.rule, finding.severity) == ("D105", "warning")
    endpoint, (finding,) = parse_endpoint(WHOLE.replace('"BOOK"', '"Book"'), "x.toml")
    assert endpoint.method == "BOOK"
    assert (finding.rule, finding.severity) == ("D117", "warning")


@pytest.mark.requirement("API-12-1")
def test_repeated_parameter_incomplete_deprecation_and_unknown_handler_are_refused() -> None:
    assert the_error(WHOLE.replace('"nights"', '"guest_id"')).rule == "D109"
    assert the_error(WHOLE + '[endpoint.deprecated]\nremoved_in = "2"\n').message == "`deprecated_in` is missing"
    assert the_error(WHOLE.replace('"registered_function"', '"proxy"')).rule == "D106"


@pytest.mark.parametrize(
    "value",
    ["2026-01-01", "12:00:00", "inf", "[nan]", "{ a = 1979-05-27T07:32:00Z }", "0x" + "f" * 17, "0x" + "f" * 9000],
)
def test_a_value_json_cannot_express_is_refused_in_a_schema(value: str) -> None:
    finding = the_error(WHOLE.replace("default = 1", f"default = {value}"))
    assert (finding.rule, finding.location) == ("D110", Location("x.toml", 21, 1))


def test_the_fields_only_agis_has_are_kept() -> None:
    more = """\
confidence_guidance = 0.9
parameter_hints = { guest_id = "ask" }
state_transition = { "room.status" = "FREE -> TAKEN" }
mcp_tool_name = "book_room"
"""
    semantic = good(WHOLE.replace("is_idempotent = false\n", "is_idempotent = false\n" + more)).semantic
    assert (semantic.confidence, semantic.confidence_guidance) == (0.85, 0.9)
    assert semantic.parameter_hints == {"guest_id": "ask"}
    assert (semantic.state_transition, semantic.mcp_tool_name) == ({"room.status": "FREE -> TAKEN"}, "book_room")


def test_a_deprecation_may_name_only_a_new_method() -> None:
    text = WHOLE + '[endpoint.deprecated]\ndeprecated_in = "1"\nsuccessor = { method = "RESERVE" }\n'
    assert good(text).deprecated == Deprecation(deprecated_in="1", successor_method="RESERVE")


COMPOSED = '[endpoint.handler]\ntype = "composition"\nrecipe = "r"\nsteps = [{ method = "QUERY" }]\n'


@pytest.mark.requirement("API-12.1-1", "API-12.2-1")
@rows(
    "old, new, section",
    ('function = "rooms.handlers.book"', 'module = "rooms"\nfunction = "book"', "12.2"),
    (HANDLER, COMPOSED, "12.1"),
)
def test_handler_in_an_unsupported_form_is_refused(old: str, new: str, section: str) -> None:
    finding = the_error(WHOLE.replace(old, new))
    assert finding.rule == "D108"
    assert section in finding.message


@pytest.mark.requirement("API-12.2-1")
@pytest.mark.parametrize("function", ["book", "rooms:book", "rooms..book", "rooms.book()", ".book", "rooms.1"])
def test_function_that_is_not_a_dotted_path_is_refused(function: str) -> None:
    assert the_error(WHOLE.replace("rooms.handlers.book", function)).pointer == "/endpoint/handler/function"


@pytest.mark.requirement("API-12.1-1")
@rows(
    "handler",
    'type = "composition"',
    'type = "registered_function"',
    'type = "external_service"\nmethod = "GET"',
    'recipe = "r"',
)
def test_handler_without_a_required_key_is_refused(handler: str) -> None:
    assert the_error(WHOLE.replace(HANDLER, f"[endpoint.handler]\n{handler}\n")).rule == "D103"


@pytest.mark.requirement("API-12.3-10")
def test_external_service_has_a_default_timeout_of_thirty_seconds() -> None:
    handler = good(WHOLE.replace(HANDLER, EXTERNAL)).handler
    assert handler == ExternalService(url="https://upstream.example/booking", method="POST", timeout_seconds=30.0)


WRONG_TYPES = (
    *("timeout_seconds = 0", 'timeout_seconds = "30"', 'error_map = { gone = "x" }', "headers = { a = [1] }"),
    *("input_transform = 1", 'error_map = { 4xx = "x" }', 'query = "page"', "files = [1]", 'lists = ["page"]'),
    *("body_field = 1", "output_field = []", "header_fields = { a = [1] }", 'cookie_credentials = "x"'),
)
UNKNOWN_CHOICES = ('lists = { page = "tabs" }', 'body = "xml"', 'answer = "html"')


@pytest.mark.requirement("API-12.3-3", "API-12.3-21")
@rows(
    "line, rule",
    ('method = "TRACE"', "D106"),
    ("method = 3", "D104"),
    ("", "D103"),
    *((f'method = "POST"\n{line}', "D104") for line in WRONG_TYPES),
    *((f'method = "POST"\n{line}', "D106") for line in UNKNOWN_CHOICES),
)
def test_a_wrong_field_of_an_external_service_is_refused(line: str, rule: str) -> None:
    assert the_error(WHOLE.replace(HANDLER, EXTERNAL.replace('method = "POST"', line))).rule == rule


def test_places_of_fields_in_an_external_service_are_read() -> None:
    keys = """\
query = ["page"]
lists = { page = "pipe" }
header_fields = { lang = "Accept-Language" }
cookie_fields = { theme = "Theme" }
query_credentials = { api_key = "${KEY}" }
cookie_credentials = { sid = "${SID}" }
body = "multipart"
files = ["photo"]
answer = "text"
output_field = "report"
error_map = { 404 = "gone", 4XX = "wrong", 5XX = "down" }
"""
    assert good(WHOLE.replace(HANDLER, EXTERNAL + keys)).handler == ExternalService(
        url="https://upstream.example/booking",
        method="POST",
        query=("page",),
        lists={"page": "pipe"},
        header_fields={"lang": "Accept-Language"},
        cookie_fields={"theme": "Theme"},
        query_credentials={"api_key": "${KEY}"},
        cookie_credentials={"sid": "${SID}"},
        body="multipart",
        files=("photo",),
        answer="text",
        output_field="report",
        error_map={"404": "gone", "4XX": "wrong", "5XX": "down"},
    )
    handler = good(WHOLE.replace(HANDLER, EXTERNAL + 'body_field = "items"\n')).handler
    assert isinstance(handler, ExternalService)
    assert handler.body_field == "items"


def test_text_that_is_not_toml_is_one_finding_and_thousands_of_faults_are_cut_short() -> None:
    endpoint, findings = parse_endpoint(HEAD + "path = \n", "x.toml")
    assert endpoint is None
    assert [(finding.rule, finding.location) for finding in findings] == [("D102", Location("x.toml", 5, 8))]
    faults = "".join(f"k{number} = 1\n" for number in range(20_000))
    endpoint, findings = parse_endpoint(WHOLE.replace("[endpoint.semantic]", f"{faults}[endpoint.semantic]"), "x.toml")
    assert (endpoint, len(findings), findings[-1].rule) == (None, 101, "D199")


@pytest.mark.parametrize("text", ["", "endpoint = 1", "[[endpoint]]", "[other]\na = 1"])
def test_a_file_without_an_endpoint_table_is_refused(text: str) -> None:
    assert wrong(text)[0].rule in {"D103", "D104"}


TOML_VALUES = st.recursive(
    st.sampled_from(
        ["1", '"x"', "true", "1.5", "nan", "2026-01-01", "12:00:00", "''", str(-(2**63)), "0xffffffffffffffffff"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(["name", "type", "list", "a"]), inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"{key} = {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=5,
)
LINES = [line for line in WHOLE.split("\n") if " = " in line]


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(LINES), st.none() | TOML_VALUES, max_size=4))
def test_any_value_in_any_place_is_read_or_reported(changes: dict[str, Any]) -> None:
    text = WHOLE + '[endpoint.deprecated]\ndeprecated_in = "1"\n'
    for line, value in changes.items():
        text = text.replace(line, "" if value is None else f"{line.partition(' = ')[0]} = {value}")
    endpoint, findings = parse_endpoint(text, "x.toml")
    assert (endpoint is None) == any(finding.severity == "error" for finding in findings)
    assert all(finding.location for finding in findings)


@rows(
    "line, name, value, default",
    ("confirm = true", "confirm", True, None),
    ("confirm = false", "confirm", False, None),
    ('since = "rooms[].updated_at"', "since", "rooms[].updated_at", None),
    ("internal = true", "internal", True, False),
)
def test_optional_setting_is_read(line: str, name: str, value: object, default: object) -> None:
    told = good(WHOLE.replace("[endpoint.semantic]", f"{line}\n[endpoint.semantic]"))
    assert (getattr(told, name), getattr(good(WHOLE), name)) == (value, default)


def test_cost_by_unit_and_the_tool_of_an_mcp_server_are_read() -> None:
    cost = good(WHOLE + '[endpoint.cost]\ntokens = 500\nUSD = "0.02"\ncompute-seconds = 1.5\n').cost
    assert str(cost) == "tokens=500, USD=0.02, compute-seconds=1.5"
    assert good(WHOLE).cost is None
    text = mcp('tool = "book"', 'command = "npx"', 'args = ["-y", "hotel"]', 'env = ["HOTEL_KEY"]')
    server = McpServer(tool="book", command="npx", args=("-y", "hotel"), env=("HOTEL_KEY",))
    assert good(text).handler == McpTool(mcp=server, timeout_seconds=5.0)


@pytest.mark.parametrize("line", ['USD = "2 cents"', "gold = 1", "tokens = true", "tokens = 1.5", "USD = 2020-01-01"])
def test_invalid_cost_is_refused_with_its_location(line: str) -> None:
    finding = the_error(WHOLE + f"[endpoint.cost]\n{line}\n")
    assert (finding.rule, finding.pointer) == ("Y880", f"/endpoint/cost/{line.split(maxsplit=1)[0]}")


def mcp(*lines: str) -> str:
    table = "\n".join(("[endpoint.handler.mcp]", *lines))
    return WHOLE.replace(HANDLER, f'[endpoint.handler]\ntype = "external_service"\ntimeout_seconds = 5\n{table}\n')


@rows(
    "lines, rule, at",
    (['command = "npx"'], "D103", ""),
    (['tool = "book"', 'env = ["HOTEL_KEY=k-48213"]'], "D104", "/env"),
    (['tool = "book"', 'comand = "npx"'], "D105", "/comand"),
)
def test_wrong_key_of_an_mcp_server_is_refused(lines: list[str], rule: str, at: str) -> None:
    finding = the_error(mcp(*lines))
    assert (finding.rule, finding.pointer) == (rule, f"/endpoint/handler/mcp{at}")
    assert "k-48213" not in str(finding)


def test_mcp_server_that_is_not_a_table_and_keys_of_a_url_beside_it_are_refused() -> None:
    text = WHOLE.replace(HANDLER, '[endpoint.handler]\ntype = "external_service"\nmcp = "npx"\n')
    assert the_error(text).pointer == "/endpoint/handler/mcp"
    url = 'url = "https://x.example"\ntimeout_seconds'
    beside = mcp('tool = "book"', 'command = "npx"').replace("timeout_seconds", url)
    assert the_error(beside).pointer == "/endpoint/handler/url"
