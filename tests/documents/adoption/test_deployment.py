"""Facades of any kind of upstream become a deployment that can be read back."""

from __future__ import annotations

from pathlib import Path

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.documents.adoption.deployment import make_deployment, upstream_hosts
from bespeak.documents.adoption.facade import Candidate, Facade, ImportOrigin, Variable
from bespeak.documents.adoption.guess import LeftOut
from bespeak.documents.adoption.judgement import judge_all
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.replacement import write_folder

ORIGIN = ImportOrigin(command="mcp", form="a list of MCP tools", title="Acme Rooms")


def facade(name: str, url: str = "https://rooms.example/call", path: str | None = None) -> Facade:
    [judgement] = judge_all([Candidate(name=name, path=path)], load_bundled())
    endpoint = Endpoint(
        method=judgement.method,
        path=judgement.path.path,
        description=judgement.description,
        semantic=judgement.semantic,
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        handler=ExternalService(url=url, method="POST"),
    )
    return Facade(judgement.candidate, endpoint, judgement.guesses, (Variable("ROOMS_TOKEN", "the token"),))


def test_folder_of_tools_is_a_deployment_with_a_review(tmp_path: Path) -> None:
    made = make_deployment(ORIGIN, [facade("book_room"), facade("list_rooms")], [LeftOut("x", "no output")])
    write_folder(tmp_path / "out", made.files)
    deployment, findings = read_deployment(tmp_path / "out")
    assert findings == []
    assert [str(endpoint) for endpoint in deployment.endpoints] == ["BOOK /room", "LIST /rooms"]
    assert "derived from a list of MCP tools" in made.files["REVIEW.md"]
    assert "ROOMS_TOKEN=" in made.files[".env.example"]
    assert all("Made by `bespeak import mcp`" in text for text in made.files.values())
    assert "of book_room, Acme Rooms." in made.files["endpoints/book-room.toml"]


def test_hosts_are_named_once() -> None:
    facades = [facade("a"), facade("b", "https://other.example"), facade("c")]
    assert upstream_hosts(facades) == ["rooms.example", "other.example"]


def test_names_that_lint_would_take_for_verbs_are_allowed() -> None:
    made = make_deployment(ORIGIN, [facade("list_rooms", path="/rooms/starred"), facade("book_room")], [])
    assert 'allowed-segments = ["starred"]' in made.files["bespeak.toml"]
