"""REVIEW.md leads with what could hurt, and is short."""

from __future__ import annotations

import re
from typing import Any

from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.adoption.deployment import Entries, review_text, used_variables
from bespeak.documents.adoption.facade import ImportOrigin
from bespeak.documents.adoption.guess import RISKS, Guess, LeftOut
from bespeak.documents.openapi.description import Description, Operation, SecurityScheme
from bespeak.documents.openapi.facade import make_facades

NOUNS = (
    "user",
    "team",
    "role",
    "plan",
    "task",
    "file",
    "note",
    "list",
    "shop",
    "item",
    "cart",
    "card",
    "form",
    "page",
    "site",
    "host",
    "disk",
    "node",
    "pool",
    "zone",
)


def crud(noun: str) -> list[Operation]:
    """Return five ordinary operations on one resource."""
    paths = {"GET": f"/{noun}s", "POST": f"/{noun}s", "PUT": f"/{noun}s/{{id}}", "DELETE": f"/{noun}s/{{id}}"}
    return [operation(method, path) for method, path in paths.items()] + [operation("GET", f"/{noun}s/{{id}}")]


def operation(method: str, path: str, **fields: Any) -> Operation:
    return Operation(method=method, path=path, base="https://x.example", pointer="", **fields)


def origin(title: str = "Acme") -> ImportOrigin:
    return ImportOrigin(command="openapi", form="an OpenAPI description", title=title)


def entries(*operations: Operation, **fields: Any) -> Entries:
    facades, _ = make_facades(
        Description(openapi="3.0.3", title="Acme", operations=operations, **fields), load_bundled()
    )
    return [(f"endpoints/e{index}.toml", facade) for index, facade in enumerate(facades)]


def test_what_could_hurt_comes_first_the_worst_first() -> None:
    made = entries(
        operation("GET", "/pets"),
        operation("POST", "/pets/search", summary="Search pets"),
        operation("POST", "/messages", summary="Send a message"),
        operation("DELETE", "/pets/{id}"),
        operation("POST", "/payments", summary="Create a payment"),
    )
    text = review_text(origin(), made, [], [])
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


def test_equal_guesses_are_one_entry_with_their_number() -> None:
    made = entries(*(operation("GET", f"/{name}") for name in ("pets", "cats", "dogs", "birds", "fish")))
    text = review_text(origin(), made, [], [])
    (entry,) = [line for line in text.splitlines() if "`semantic.confidence`" in line]
    assert entry.endswith("5 endpoints: `LIST /pets`, `LIST /cats`, `LIST /dogs` and 2 more")
    assert entry.startswith("- [ ] (0.5) `semantic.confidence`: confidence 0.9. ")


def test_guesses_about_the_service_name_their_file() -> None:
    guess = Guess(at="/server/contact", text="contact https://x.example", why="none is named", confidence=0.2)
    text = review_text(origin(), [], [], [guess])
    assert "- [ ] (0.2) `server.contact`: contact https://x.example. None is named. `bespeak.toml`" in text


def test_five_hundred_ordinary_operations_fit_on_a_few_pages() -> None:
    nouns = [f"{first}{second}" for first in ("red", "blue", "old", "new", "big") for second in NOUNS]
    made = entries(*(one for noun in nouns for one in crud(noun)))
    assert len(made) == 500
    text = review_text(origin(), made, [], [])
    assert len(text.splitlines()) <= 300
    assert all(f"REMOVE /{noun}s/{{id}}" in text for noun in nouns[:50])


def test_left_out_operations_are_grouped_by_their_reason() -> None:
    left = [LeftOut(f"GET /{n}", "its answer is image/jpeg; only text") for n in range(5)]
    text = review_text(origin(), [], [*left, LeftOut("GET /a", "no")], [])
    assert "- its answer is image/jpeg; only text, 5 operations: GET /0, GET /1, GET /2 and 2 more\n" in text
    assert "- GET /a: no\n" in text


def test_summary_counts_endpoints_and_guesses() -> None:
    made = entries(operation("POST", "/pets"))
    counts = [sum(guess.risk == risk for guess in made[0][1].guesses) for risk in RISKS]
    text = review_text(origin(), made, [LeftOut("GET /a", "no")], [])
    assert f"- guesses: {counts[0]} of high risk, {counts[1]} of medium risk, {counts[2]} of low risk" in text
    assert "- endpoints: 1\n" in text
    assert "- GET /a: no" in text


def test_credentials_and_other_paths_are_listed() -> None:
    scheme = SecurityScheme(name="b", kind="http", scheme="bearer")
    made = entries(operation("GET", "/v1/a|b/search", security=({"b": ()},)), schemes={"b": scheme})
    text = review_text(origin(), made, [], [])
    assert list(used_variables(made)) == ["UPSTREAM_ACME_TOKEN"]
    assert "- `UPSTREAM_ACME_TOKEN`: " in text
    assert "`GET /v1/a|b/search`" in text


def test_texts_of_a_description_are_not_interpreted_as_markup() -> None:
    hostile = operation("GET", "/pets", operation_id="getPets", summary="x")
    text = review_text(origin("<img src=x>`\x1b[31m"), entries(hostile), [LeftOut("<b>", "`\n# Heading")], [])
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\n# Heading" not in text
