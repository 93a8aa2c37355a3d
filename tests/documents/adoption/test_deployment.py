"""Facades of any kind of upstream become a deployment that can be read back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.documents.adoption.deployment import (
    Entries,
    code,
    counted,
    grouped,
    kind_of,
    make_deployment,
    plain,
    review_lines,
    shown,
    used_variables,
    wrapped,
)
from bespeak.documents.adoption.facade import MARKER, RISKS, Candidate, Facade, Guess, ImportOrigin, LeftOut, Variable
from bespeak.documents.adoption.judgement import judge_all
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.openapi.description import Description, Operation, SecurityScheme
from bespeak.documents.openapi.facade import make_facades
from bespeak.documents.replacement import write_folder
from bespeak.text.language.sentence import word_set

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


def test_hosts_are_named_once_and_names_that_lint_would_take_for_verbs_are_allowed() -> None:
    made = make_deployment(ORIGIN, [facade("a"), facade("b", "https://other.example"), facade("c")], [])
    assert "all of rooms.example, other.example are called: the description names 2 hosts" in made.files["bespeak.toml"]
    made = make_deployment(ORIGIN, [facade("list_rooms", path="/rooms/starred"), facade("book_room")], [])
    assert 'allowed-segments = ["starred"]' in made.files["bespeak.toml"]


@rows(
    "guess, comment",
    (Guess("/method", "BOOK", "by POST alone", 0.4, "SUBMIT"), "# review (0.4): BOOK: by POST alone; else SUBMIT"),
    (Guess("/semantic/impact", "a", "b", 0.4), "# review (0.4): a: b"),
    (Guess("/semantic/outcome", "a", "b", 0.5), None),
    (Guess("/semantic/impact", "a", "b", 0.95, risk="high"), "# review (0.9): a: b"),
    (Guess("/semantic/is_idempotent", "a", "b", 0.8, risk="medium"), "# review (0.8): a: b"),
    (Guess("/semantic/intent", "a", "b", 0.9), None),
    (Guess("/semantic/confidence", "a", "b", 0.5), None),
)
def test_guess_is_a_comment_with_its_marker_unless_it_is_minor(guess: Guess, comment: str | None) -> None:
    made = make_deployment(ORIGIN, [replace(facade("book_room"), guesses=(guess,))], [])
    marked = [line for line in made.files["endpoints/book-room.toml"].splitlines() if MARKER.fullmatch(line)]
    assert marked == ([comment] if comment else [])


NOUNS = sorted(
    word_set("user team role plan task file note list shop item cart card form page site host disk node pool zone")
)


def crud(noun: str) -> list[Operation]:
    """Return five ordinary operations on one resource."""
    paths = {"GET": f"/{noun}s", "POST": f"/{noun}s", "PUT": f"/{noun}s/{{id}}", "DELETE": f"/{noun}s/{{id}}"}
    return [operation(method, path) for method, path in paths.items()] + [operation("GET", f"/{noun}s/{{id}}")]


def operation(method: str, path: str, **fields: Any) -> Operation:
    return Operation(method=method, path=path, base="https://x.example", pointer="", **fields)


def review(made: Entries, left_out: Sequence[LeftOut] = (), general: Sequence[Guess] = (), title: str = "Acme") -> str:
    origin = ImportOrigin(command="openapi", form="an OpenAPI description", title=title)
    return "\n".join(review_lines(origin, made, left_out, general, ())) + "\n"


def entries(*operations: Operation, **fields: Any) -> Entries:
    description = Description(openapi="3.0.3", title="Acme", operations=operations, **fields)
    facades, _ = make_facades(description, load_bundled())
    return [(code(str(facade.endpoint)), facade) for facade in facades]


def test_what_could_hurt_comes_first_the_worst_first() -> None:
    made = entries(
        operation("GET", "/pets"),
        operation("POST", "/pets/search", summary="Search pets"),
        operation("POST", "/messages", summary="Send a message"),
        operation("DELETE", "/pets/{id}"),
        operation("POST", "/payments", summary="Create a payment"),
    )
    text = review(made)
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert titles == [
        "What moves money: 1 endpoint",
        "What deletes: 1 endpoint",
        "What cannot be undone: 1 endpoint",
        "What counts as reading, although its HTTP method changes things: 1 endpoint",
        "Other guesses",
        "Changed paths",
    ]
    deleting = text[text.index("## What deletes") : text.index("## What cannot")]
    assert "- [ ] (0.9) impact irreversible. Deleted data is lost." in deleting
    assert "  `REMOVE /pets/{id}`\n" in deleting


def test_doubts_come_first_beside_what_the_upstream_says_of_itself_and_minor_guesses_are_folded() -> None:
    one = operation("GET", "/pets/{id}/release", operation_id="petRelease", summary="Release a pet")
    text = review(entries(operation("GET", "/pets"), one))
    assert re.findall(r"^## (.*)$", text, re.MULTILINE)[0] == "In doubt: 1 endpoint"
    assert "for GET /pets/{id}/release (petRelease): Release a pet\n  - (0.4) " in text
    assert "`semantic.confidence`" not in text
    assert "semantic.confidence (2)" in text


def test_equal_guesses_are_counted_name_their_file_and_left_out_operations_their_reason() -> None:
    made = entries(*(operation("POST", f"/{name}") for name in ("pets", "cats", "dogs", "birds", "fish")))
    text = review(made)
    (entry,) = [line for line in text.splitlines() if "`required_scopes`" in line]
    assert entry.endswith("5 endpoints: `CREATE /pets`, `CREATE /cats`, `CREATE /dogs` and 2 more")
    assert entry.startswith("- [ ] (0.5) `required_scopes`: scope acme:write. ")
    guess = Guess(at="/server/contact", text="contact https://x.example", why="none is named", confidence=0.2)
    text = review([], general=[guess])
    assert "- [ ] (0.2) `server.contact`: contact https://x.example. None is named. `bespeak.toml`" in text
    left = [LeftOut(f"GET /{n}", "its answer is image/jpeg; only text") for n in range(5)]
    text = review([], [*left, LeftOut("GET /a", "no")])
    assert "- its answer is image/jpeg; only text, 5 operations: GET /0, GET /1, GET /2 and 2 more\n" in text
    assert "- GET /a: no\n" in text


def test_five_hundred_ordinary_operations_fit_on_a_few_pages() -> None:
    nouns = [f"{first}{second}" for first in ("red", "blue", "old", "new", "big") for second in NOUNS]
    made = entries(*(one for noun in nouns for one in crud(noun)))
    assert len(made) == 500
    text = review(made)
    assert len(text.splitlines()) <= 300
    assert all(f"REMOVE /{noun}s/{{id}}" in text for noun in nouns[:50])


def test_summary_counts_endpoints_and_guesses() -> None:
    made = entries(operation("POST", "/pets"))
    counts = [sum(guess.risk == risk for guess in made[0][1].guesses) for risk in RISKS]
    text = review(made, [LeftOut("GET /a", "no")])
    assert f"- guesses: {counts[0]} of high risk, {counts[1]} of medium risk, {counts[2]} of low risk" in text
    assert "- endpoints: 1\n" in text
    assert "- GET /a: no" in text


def test_credentials_and_other_paths_are_listed() -> None:
    scheme = SecurityScheme(name="b", kind="http", scheme="bearer")
    made = entries(operation("GET", "/v1/a|b/search", security=({"b": ()},)), schemes={"b": scheme})
    text = review(made)
    assert list(used_variables(made)) == ["UPSTREAM_ACME_TOKEN"]
    assert "- `UPSTREAM_ACME_TOKEN`: " in text
    assert "`GET /v1/a|b/search`" in text


def test_texts_of_a_description_are_not_interpreted_as_markup() -> None:
    hostile = operation("GET", "/pets", operation_id="getPets", summary="x")
    text = review(entries(hostile), [LeftOut("<b>", "`\n# Heading")], title="<img src=x>`\x1b[31m")
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\n# Heading" not in text


@rows(
    "one, other",
    ("operationId says 'get'", "operationId says 'list'"),
    ("{petId} is renamed to {pet_id}", "{id} is renamed to {pet}"),
    ("from CREATE and the path", "from LIST and the path"),
    ("its description says: a", "its description says: b"),
    ("names 3 hosts", "names 4 hosts"),
    ("as LIST /rooms/{id} is taken", "as FETCH /teams is taken"),
)
def test_reasons_that_differ_only_in_details_are_of_one_kind(one: str, other: str) -> None:
    assert kind_of(one) == kind_of(other)
    assert "…" in kind_of(one)


def test_reasons_are_grouped_in_order_shortened_and_plain() -> None:
    assert kind_of("PUT repeats like that in HTTP") != kind_of("reading can be repeated")
    assert "HTTP" in kind_of("PUT repeats like that in HTTP")
    assert grouped(["b1", "a1", "b2"], lambda one: one[0]) == [["b1", "b2"], ["a1"]]
    assert shown(["a", "b"], 2) == "a, b"
    assert shown(["a", "b", "c"], 2) == "a, b and 1 more"
    assert counted(["x", "y", "x"]) == "x (2), y (1)"
    assert counted(["x", "x"]) == "x"
    assert plain("a\n<b>`\x1b") == "a &lt;b>'\\x1b"
    assert code("a`b") == "`a'b`"


def test_many_names_are_wrapped_between_names() -> None:
    names = [f"`FETCH /number/{n}`" for n in range(20)]
    lines = list(wrapped(names, 15))
    assert all(len(line) <= 116 + len(" and 5 more") for line in lines)
    assert " ".join("".join(lines).split()).count("`FETCH") == 15
    assert lines[-1].endswith(" and 5 more")
    assert list(wrapped(["`a`"], 5)) == ["  `a`"]
