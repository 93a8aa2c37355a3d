"""A document is checked before anybody may answer for it, and only what keeps the rules is served."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.agis_documents import booking, documents
from tests.service import Bench

from bespeak.app.authoring.agis_contract import AgisContract, draft, open_agis
from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.handler import ExternalService, RegisteredFunction
from bespeak.documents.agis.document import read_agis
from bespeak.errors import ConfigError, ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import MAX_BYTES, Location, Tree

HERE = Location("handlers.py", 3)


def opened(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> AgisContract:
    document = booking()
    change(document)
    path = folder / "rooms.agis"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2))
    return open_agis(path, load_bundled())


def refused(path: Path) -> list[Diagnostic]:
    with pytest.raises(ContractError, match=r"cannot be served") as caught:
        open_agis(path, load_bundled())
    findings = [finding for finding in caught.value.findings if isinstance(finding, Diagnostic)]
    assert findings
    assert all(finding.location and finding.location.file == str(path) for finding in findings)
    return findings


def function(target: Callable[..., Any]) -> RegisteredFunction:
    return RegisteredFunction(function="handlers.function", target=target)


def book(room_id: str) -> dict[str, str]:
    return {}


def add(method: str, path: str = "/room", **parts: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        first = document["endpoints"][0]
        semantic = {**first["semantic"], **parts.pop("semantic", {})}
        document["endpoints"].append({**first, "method": method, "path": path, "semantic": semantic, **parts})
        if method.isalpha() and method not in document["vocabulary"]["declared_verbs"]:
            document["vocabulary"]["declared_verbs"].append(method)

    return change


def test_an_endpoint_is_served_once_it_is_bound(tmp_path: Path) -> None:
    contract = opened(tmp_path)
    assert contract.endpoints == ()
    [finding] = contract.findings
    assert (finding.rule, finding.severity) == ("H705", "error")
    assert finding.location is not None
    assert finding.location.line
    assert contract.bind("book", "/room", function(book), HERE) == []
    [endpoint] = contract.endpoints
    assert endpoint.handler == function(book)
    assert contract.findings == []


def test_a_handler_need_not_be_a_function(tmp_path: Path) -> None:
    contract = opened(tmp_path)
    upstream = ExternalService(url="https://rooms.example/book", method="POST")
    assert contract.bind("BOOK", "/room", upstream, HERE) == []
    assert contract.endpoints[0].handler is upstream


def test_handler_of_an_undeclared_endpoint_gets_suggestions(tmp_path: Path) -> None:
    contract = opened(tmp_path)
    [finding] = contract.bind("BOOK", "/rooms", function(book), HERE)
    assert (finding.rule, finding.location) == ("H706", HERE)
    assert "rooms.agis does not declare BOOK /rooms" in finding.message
    assert finding.help == "Did you mean BOOK /room?"
    [finding] = contract.bind("X" * 5000, "/" + "y" * 5000, function(book), HERE)
    assert len(str(finding)) < 1000


def test_an_endpoint_has_one_handler(tmp_path: Path) -> None:
    contract = opened(tmp_path)
    contract.bind("BOOK", "/room", function(book), HERE)
    [finding] = contract.bind("BOOK", "/room", function(book), HERE)
    assert (finding.rule, finding.severity) == ("D109", "error")
    assert str(HERE) in finding.message


def test_mismatched_function_is_reported_with_the_location_of_the_input(tmp_path: Path) -> None:
    contract = opened(tmp_path)
    [finding] = contract.bind("BOOK", "/room", function(lambda guest, nights: {}), HERE)
    assert (finding.rule, finding.location) == ("H703", HERE)
    assert finding.help.startswith("The input is declared at ")
    assert "rooms.agis:" in finding.help
    assert contract.endpoints == ()


WRONG: dict[str, Callable[[dict[str, Any]], None]] = {
    "a method that is not an action": add("AVAILABLE", semantic={"intent": "Says that a room is available."}),
    "a method of HTTP": add("GET"),
    "a path with a verb": add("BOOK", "/book-room"),
    "no intent": add("BOOK", "/bed", semantic={"intent": ""}),
    "a schema that is none": add("BOOK", "/bed", input={"type": "objekt"}),
    "the same endpoint again": add("BOOK"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_invalid_endpoint_is_skipped_and_others_are_served(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    contract = opened(tmp_path, change)
    assert contract.errors
    assert {finding.severity for finding in contract.errors} == {"error"}
    assert all(finding.pointer.startswith("/endpoints/1") for finding in contract.errors)
    assert [endpoint.key for endpoint in contract.service.endpoints] == [("BOOK", "/room")]
    assert contract.bind("BOOK", "/room", function(book), HERE) == []
    assert len(contract.endpoints) == 1


def test_skipped_endpoint_adds_no_error_and_verbs_beyond_the_catalog_are_custom_methods(tmp_path: Path) -> None:
    contract = opened(tmp_path, add("AVAILABLE"))
    assert contract.bind("AVAILABLE", "/room", function(book), HERE) == []
    assert contract.endpoints == ()
    contract = opened(tmp_path, add("TIDY", semantic={"intent": "Tidies a room."}))
    assert (contract.errors, contract.service.policies.methods.custom) == ((), ("TIDY",))


FATAL: dict[str, Callable[[dict[str, Any]], object]] = {
    "no vocabulary": lambda document: document.pop("vocabulary"),
    "a verb that is not declared": lambda document: document["vocabulary"].update(declared_verbs=["FIND", "BOOK"]),
    "no service": lambda document: document.update(service=""),
    "no endpoints": lambda document: document.update(endpoints=[]),
    "endpoints that are no list": lambda document: document.update(endpoints={"BOOK /room": {}}),
    "negotiation about nothing": lambda document: document["vocabulary"].update(negotiable=True),
}


@pytest.mark.parametrize("change", FATAL.values(), ids=FATAL)
def test_document_level_error_prevents_serving(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(ContractError, match="is not valid") as caught:
        opened(tmp_path, change)
    assert caught.value.findings


BROKEN = {
    "a list": b"- agis\n- '1.0'\n",
    "nothing": b"",
    "a sentence": b"hello",
    "broken YAML": b"agis: [1\nservice: x\n",
    "broken JSON": b'{"agis": "1.0", ',
    "a picture": b"\x89PNG\r\n\x1a\n\x00\x00",
    "control characters": b"agis: \x00\x01\x02",
    "an anchor that feeds on itself": b"a: &a [*a]\n",
    "far too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_invalid_document_is_refused_with_its_location(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.agis"
    path.write_bytes(content)
    refused(path)


def test_oversized_or_missing_document_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.agis"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert refused(path)[0].rule == "D101"
    assert refused(tmp_path / "none.agis")[0].rule == "D101"


def test_document_without_handlers_gets_a_draft(tmp_path: Path) -> None:
    error = opened(tmp_path).unserved()
    assert isinstance(error, ConfigError)
    assert '[handlers."BOOK /room"]' in str(error)
    assert '@app.handler("BOOK", "/room")' in str(error)
    assert 'App.from_agis("rooms.agis")' in str(error)


def test_document_without_valid_endpoints_reports_its_errors(tmp_path: Path) -> None:
    def only(document: dict[str, Any]) -> None:
        document["endpoints"][0]["path"] = "/Book"

    contract = opened(tmp_path, only)
    error = contract.unserved()
    assert isinstance(error, ContractError)
    assert error.findings == contract.errors


def test_verbs_allowed_for_lint_are_allowed(tmp_path: Path) -> None:
    change = add("BOOKNIG", semantic={"intent": "Booknigs a room."})
    assert opened(tmp_path, change).errors
    (tmp_path / "bespeak.toml").write_text('[lint]\nallowed-verbs = ["BOOKNIG"]\n')
    assert opened(tmp_path, change).errors == ()


def test_document_with_too_many_errors_is_not_served(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["endpoints"] = [{**document["endpoints"][0], "path": f"/r{index}", "input": 7} for index in range(150)]

    with pytest.raises(ContractError, match="is not valid") as caught:
        opened(tmp_path, change)
    assert len(caught.value.findings) == 100


def test_many_warnings_do_not_hide_an_error(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        [first] = document["endpoints"]
        hidden = {f"p{number}": {"type": "string", "description": "a\u200bb"} for number in range(105)}
        first["input"]["properties"] |= hidden
        document["endpoints"] = [{**first, "path": f"/room/r{index}"} for index in range(100)]
        document["endpoints"].append({**first, "path": "/Room/Book"})

    contract = opened(tmp_path, change)
    assert {finding.pointer.split("/")[2] for finding in contract.errors} == {"100"}
    assert len(contract.service.endpoints) == 100


@settings(deadline=None, max_examples=60)
@given(documents())
def test_valid_document_is_served_and_published_unchanged(document: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.agis"
        path.write_bytes(msgspec.json.encode(document))
        try:
            contract = open_agis(path, load_bundled())
        except ContractError:
            return
    for endpoint in contract.service.endpoints:
        assert contract.bind(*endpoint.key, function(lambda values: values), None) == []
    service = replace(contract.service, endpoints=contract.endpoints)
    bench = Bench(assemble(service))
    told = bench.send("DISCOVER", "/", accept="application/agis").json
    served = {key for key, endpoint in bench.routes.endpoints.items() if not endpoint.builtin}
    assert {(entry["method"], entry["path"]) for entry in told["endpoints"]} == served


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_arbitrary_bytes_are_refused_without_a_crash(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.agis"
        path.write_bytes(content)
        with pytest.raises(ContractError):
            open_agis(path, load_bundled())


INPUTS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"room_id": {"type": "string"}}, "required": ["room_id"]},
    {
        "type": "object",
        "properties": {
            "note": {},
            "nights": {"type": "integer", "default": 1},
            "guests": {"type": "array", "items": {"type": "string"}},
            "either": {"type": ["string", "null"]},
            "rate": {"type": "number"},
        },
        "required": ["guests", "either"],
    },
    {"type": "object", "properties": {"room-id": {"type": "string"}, "values": {"type": "string"}}, "required": []},
    {"type": "object", "properties": {"class": {"type": "string"}}, "required": []},
    {"type": "object", "properties": {name: {} for name in ("a b", "value", "give", "whole_input")}, "required": []},
    {"type": "object", "properties": {}},
]


def drafted(folder: Path, schema: dict[str, Any]) -> dict[str, str]:
    """The files of a draft by their names; the document stands beside them."""
    document = booking()
    document["endpoints"][0]["input"] = schema
    text = msgspec.json.encode(document).decode()
    (folder / "rooms.agis").write_text(text)
    tree = parse_json(text, "rooms.agis")
    assert isinstance(tree, Tree)
    read, _ = read_agis(tree)
    assert read is not None
    text = draft("rooms.agis", read.endpoints[0].endpoint)
    parts = re.split(r"^# (\S+)$", text.replace("or write this file and serve it:", ""), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("schema", INPUTS)
@pytest.mark.parametrize("files", [("bespeak.toml", "handlers.py"), ("rooms.py",)], ids=["toml", "python"])
def test_copied_draft_binds_the_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], files: tuple[str, ...]
) -> None:
    texts = drafted(tmp_path, schema)
    for name in files:
        # Modules are kept by their names, and every case has its own.
        text = texts[name].replace('"handlers.', f'"handlers_{tmp_path.name}.')
        (tmp_path / name.replace("handlers", f"handlers_{tmp_path.name}")).write_text(text)
    monkeypatch.setattr("sys.path", [*sys.path])
    target = load_target(str(tmp_path / "rooms.agis"))
    assert [endpoint.key for endpoint in target.service.endpoints] == [("BOOK", "/room")]
    assert not [finding for finding in target.findings if finding.severity == "error"]
