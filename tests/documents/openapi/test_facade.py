"""A facade works: calls arrive at a real upstream as its description demands."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.documents.deployment.endpoint_text import parse_endpoint
from tests.documents.openapi.notes_api import NotesApi, described, running_notes
from tests.process import bespeak as command
from tests.process import serving

import bespeak
from bespeak.agent.client.errors import ServiceError
from bespeak.agent.client.synchronous import SyncServiceClient
from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.adoption.facade import Facade
from bespeak.documents.openapi.description import (
    Body,
    Description,
    DocumentedResponse,
    Operation,
    Parameter,
    SecurityScheme,
)
from bespeak.documents.openapi.facade import make_facades

AGENT = "0a3f" * 16
SCOPES = ["acme-notes:read", "acme-notes:write"]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotesApi]:
    with running_notes(tmp_path_factory.mktemp("notes")) as api:
        yield api


@pytest.fixture(scope="module")
def folder(notes: NotesApi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("facade")
    (place / "notes.json").write_text(json.dumps(described(f"https://127.0.0.1:{notes.port}")))
    ended = command("import", "openapi", str(place / "notes.json"), "-o", str(place / "out"))
    assert ended.returncode == 0, ended.stderr
    return place / "out"


@pytest.fixture(scope="module")
def service(notes: NotesApi, folder: Path) -> Iterator[SyncServiceClient]:
    env = {"UPSTREAM_ACME_NOTES_API_KEY": "secret-key", "SSL_CERT_FILE": str(notes.authority)}
    with (
        serving(folder, "--strict", env=env) as served,
        bespeak.connect_sync(served.uri, agent_id=AGENT, scopes=SCOPES) as connected,
    ):
        yield connected


@pytest.mark.process
@pytest.mark.requirement("API-14.1-2")
def test_lint_reports_only_pending_reviews(folder: Path) -> None:
    ended = command("lint", str(folder), "--format", "json")
    found = {entry["rule"] for entry in json.loads(ended.stdout)["findings"]}
    assert (ended.returncode, found) == (0, {"R901"})


@pytest.mark.process
def test_parameters_are_sent_in_their_declared_places(service: SyncServiceClient, notes: NotesApi) -> None:
    reply = service.call(
        "LIST",
        "/notes",
        limit=5,
        sort_by="date",
        tags=["a", "b"],
        author=["x", "y"],
        filter={"a": "1"},
        x_trace_id="t-1",
        theme="dark",
    )
    assert reply == {"items": [{"id": "1", "text": "one"}]}
    seen = notes.last
    assert (seen.method, seen.path) == ("GET", "/v2/notes")
    assert sorted(seen.query) == [
        ("author", "x"),
        ("author", "y"),
        ("filter[a]", "1"),
        ("limit", "5"),
        ("sortBy", "date"),
        ("tags", "a,b"),
    ]
    assert (seen.headers["x-trace-id"], seen.headers["cookie"]) == ("t-1", "theme=dark")


@pytest.mark.process
def test_page_size_is_limited_by_default(service: SyncServiceClient, notes: NotesApi) -> None:
    service.call("LIST", "/notes")
    assert notes.last.query == [("limit", "20")]
    with pytest.raises(ServiceError):
        service.call("LIST", "/notes", limit=1000)


@pytest.mark.process
def test_the_credential_is_the_operators_and_identity_is_not_forwarded(
    service: SyncServiceClient, notes: NotesApi
) -> None:
    service.call("LIST", "/notes")
    assert notes.last.headers["x-api-key"] == "secret-key"
    assert AGENT not in str(notes.last)
    assert "acme-notes:read" not in str(notes.last)
    with pytest.raises(ServiceError) as refused:
        service.call("LIST", "/notes", authorization="Bearer mine")
    assert refused.value.status == 422


@pytest.mark.process
def test_query_and_body_may_have_one_name_upstream(service: SyncServiceClient, notes: NotesApi) -> None:
    service.call(
        "CREATE", "/notes", dry_run=True, note_text="in the query", body_note_text="in the body", meta={"a": 1}
    )
    assert sorted(notes.last.query) == [("dryRun", "true"), ("noteText", "in the query")]
    assert notes.last.json == {"noteText": "in the body", "$meta": {"a": 1}}


@pytest.mark.process
def test_a_path_parameter_is_not_in_the_body(service: SyncServiceClient, notes: NotesApi) -> None:
    reply = service.call("REPLACE", "/notes/7", id="1", text="new", kind=None, parent={"id": "0", "text": "up"})
    assert reply == {"id": "1", "text": "one", "kind": None}
    assert (notes.last.method, notes.last.path) == ("PUT", "/v2/notes/7")
    assert notes.last.json == {"id": "1", "text": "new", "kind": None, "parent": {"id": "0", "text": "up"}}


@pytest.mark.process
@pytest.mark.parametrize(("note", "method", "error"), [("missing", "FETCH", "note_not_found")])
def test_an_upstreams_refusal_has_a_name(service: SyncServiceClient, note: str, method: str, error: str) -> None:
    with pytest.raises(ServiceError) as refused:
        service.call(method, f"/notes/{note}")
    assert refused.value.code == error


@pytest.mark.process
def test_path_value_cannot_change_the_path(service: SyncServiceClient, notes: NotesApi) -> None:
    service.call("FETCH", "/notes/a%20b%3Fx%3D1")
    assert notes.last.path == "/v2/notes/a%20b%3Fx%3D1"


@pytest.mark.process
def test_an_answer_without_a_body_is_an_empty_object(service: SyncServiceClient, notes: NotesApi) -> None:
    assert service.call("REMOVE", "/notes/7") == {}
    assert (notes.last.method, notes.last.body) == ("DELETE", b"")


@pytest.mark.process
def test_text_and_numbers_become_fields(service: SyncServiceClient) -> None:
    assert service.call("FETCH", "/notes/7/text") == {"text": "Grüße"}
    assert service.call("COUNT", "/notes") == {"result": 7}


@pytest.mark.process
def test_a_form_is_sent_as_a_form(service: SyncServiceClient, notes: NotesApi, folder: Path) -> None:
    [file] = [path for path in (folder / "endpoints").iterdir() if "/share" in path.read_text()]
    endpoint, _ = parse_endpoint(file.read_text(), file.name)
    assert endpoint is not None
    path = endpoint.path.replace("{note_id}", "7")
    service.call(endpoint.method, path, **{"with": ["a", "b"], "body_note_id": "8"})
    assert notes.last.headers["content-type"] == "application/x-www-form-urlencoded"
    assert (notes.last.path, notes.last.body) == ("/v2/notes/7/share", b"with=a&with=b&noteId=8")


@pytest.mark.process
def test_a_file_is_sent_as_bytes(service: SyncServiceClient, notes: NotesApi) -> None:
    content = bytes(range(256))
    service.call("SUBMIT", "/notes/7/attachments", file=base64.b64encode(content).decode(), file_name="all.bin")
    assert notes.last.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert content in notes.last.body
    assert b'name="fileName"' in notes.last.body


@pytest.mark.process
def test_body_that_is_not_an_object_is_one_field(service: SyncServiceClient, notes: NotesApi) -> None:
    service.call("SEARCH", "/notes", body=["red", "green"])
    assert (notes.last.path, notes.last.json) == ("/v2/notes/search", ["red", "green"])


@pytest.mark.process
def test_an_unexpected_answer_after_an_effect_does_not_invite_a_repetition(
    service: SyncServiceClient, notes: NotesApi
) -> None:
    before = len(notes.seen)
    for _ in range(2):
        reply = service.request("CREATE", "/notes", {"body_note_text": "surprise"}, idempotency_key="k-1")
        error = reply.json()["error"]
        assert (reply.status, error["code"]) == (422, "upstream-output-invalid")
        assert error["details"] == {"upstream_status": 201, "effect": "possible"}
        assert "do not repeat it without the same Idempotency-Key" in error["message"]
    assert len(notes.seen) == before + 1


@pytest.mark.process
def test_an_unexpected_answer_of_a_trusted_upstream_is_passed_on(notes: NotesApi, folder: Path, tmp_path: Path) -> None:
    trusting = shutil.copytree(folder, tmp_path / "trusting")
    with (trusting / "bespeak.toml").open("a") as file:
        file.write("\n[upstream]\ntrust_answers = true\n")
    env = {"UPSTREAM_ACME_NOTES_API_KEY": "secret-key", "SSL_CERT_FILE": str(notes.authority)}
    with (
        serving(trusting, "--strict", env=env) as served,
        bespeak.connect_sync(served.uri, agent_id=AGENT, scopes=SCOPES) as service,
    ):
        before = len(notes.seen)
        for _ in range(2):
            reply = service.request("CREATE", "/notes", {"body_note_text": "surprise"}, idempotency_key="k-2")
            assert (reply.status, reply.json()) == (200, {"note": 7})
        assert len(notes.seen) == before + 1


@pytest.mark.process
def test_changing_operation_needs_a_scope(notes: NotesApi, folder: Path) -> None:
    env = {"UPSTREAM_ACME_NOTES_API_KEY": "secret-key", "SSL_CERT_FILE": str(notes.authority)}
    with (
        serving(folder, env=env) as served,
        bespeak.connect_sync(served.uri, agent_id=AGENT, scopes=["acme-notes:read"]) as reader,
    ):
        assert reader.call("LIST", "/notes")["items"]
        with pytest.raises(ServiceError) as refused:
            reader.call("REMOVE", "/notes/7")
    assert refused.value.status == 455


@pytest.mark.process
def test_missing_credential_is_named(folder: Path) -> None:
    ended = command("serve", str(folder), "--strict", "--agtp", "127.0.0.1:0")
    assert ended.returncode == 2
    assert "UPSTREAM_ACME_NOTES_API_KEY" in ended.stderr
    assert "UPSTREAM_ACME_NOTES_API_KEY=" in (folder / ".env.example").read_text()


def one(operation: Operation, **fields: Any) -> Facade:
    description = Description(openapi="3.0.3", title="Acme", version="1", operations=(operation,), **fields)
    [facade], left_out = make_facades(description, load_bundled())
    assert left_out == []
    return facade


def an_operation(
    method: str = "GET", path: str = "/pets", base: str = "https://pets.example/v1", **fields: Any
) -> Operation:
    return Operation(method=method, path=path, base=base, pointer="", **fields)


def test_base_path_appears_only_in_the_upstream_url() -> None:
    facade = one(an_operation(path="/pets/{petId}"))
    assert facade.endpoint.path == "/pets/{pet_id}"
    assert facade.endpoint.handler.url == "https://pets.example/v1/pets/{pet_id}"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/#X-Amz-Target=Db.CreateTable", "https://pets.example/v1/"),
        ("/?Action=Run&Version=1", "https://pets.example/v1/?Action=Run&Version=1"),
        ("/pets?id={petId}", "https://pets.example/v1/pets?id={pet_id}"),
    ],
)
def test_a_query_in_a_path_is_sent_as_one_and_a_fragment_is_not_sent(path: str, url: str) -> None:
    assert one(an_operation("POST", path)).endpoint.handler.url == url  # type: ignore[union-attr]


def test_description_cannot_read_environment_variables() -> None:
    accept = Parameter(name="Accept", place="header", required=True, schema={"type": "string", "enum": ["${HOME}/x"]})
    body = Body(media_type="application/${AWS_SECRET}+json", required=True, schema={"type": "object"})
    facade = one(an_operation("POST", parameters=(accept,), body=body))
    assert facade.endpoint.handler.headers == {}  # type: ignore[union-attr]
    lost = [guess.text for guess in facade.guesses if guess.risk == "high" and "header" in guess.text]
    assert lost == ["without the header Accept", "without the header Content-Type"]


def test_plain_http_becomes_https_and_is_a_high_risk() -> None:
    facade = one(an_operation(base="http://pets.example"))
    assert facade.endpoint.handler.url == "https://pets.example/pets"  # type: ignore[union-attr]
    assert [guess.risk for guess in facade.guesses if "plain http" in guess.text] == ["high"]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (an_operation("TRACE"), "TRACE"),
        (an_operation(base=""), "--server"),
        (an_operation(base="https://{region}.pets.example"), "variable"),
        (an_operation(answers=(DocumentedResponse(status="200", media_type="image/png", schema={}),)), "image/png"),
    ],
)
def test_uncallable_operation_is_left_out_with_a_reason(operation: Operation, reason: str) -> None:
    facades, [left_out] = make_facades(Description(openapi="3.0.3", operations=(operation,)), load_bundled())
    assert facades == []
    assert reason in left_out.why


def test_deprecated_operation_becomes_a_deprecated_endpoint() -> None:
    deprecated = one(an_operation(deprecated=True)).endpoint.deprecated
    assert deprecated is not None
    assert deprecated.deprecated_in == "1"


@pytest.mark.parametrize(
    ("method", "security", "scopes"),
    [
        ("GET", (), ()),
        ("GET", ({"key": ()},), ("acme:read",)),
        ("POST", (), ("acme:write",)),
        ("DELETE", ({"key": ()},), ("acme:write",)),
    ],
)
def test_changing_or_credentialed_endpoint_requires_a_scope(
    method: str, security: Any, scopes: tuple[str, ...]
) -> None:
    key = SecurityScheme(name="key", kind="http", scheme="bearer")
    assert one(an_operation(method, security=security), schemes={"key": key}).endpoint.required_scopes == scopes
