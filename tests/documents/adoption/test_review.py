"""REVIEW.md lists every guess, the highest risk first."""

from __future__ import annotations

import re
from typing import Any

from bespeak.contract.catalog.bundled import load_bundled
from bespeak.documents.adoption.facade import Origin
from bespeak.documents.adoption.guess import RISKS, LeftOut
from bespeak.documents.adoption.review import Entries, review_text, used_variables
from bespeak.documents.openapi.description import Description, Operation, SecurityScheme
from bespeak.documents.openapi.facade import make_facades


def operation(method: str, path: str, **fields: Any) -> Operation:
    return Operation(method=method, path=path, base="https://x.example", pointer="", **fields)


def origin(title: str = "Acme") -> Origin:
    return Origin(command="openapi", form="an OpenAPI description", title=title)


def entries(*operations: Operation, **fields: Any) -> Entries:
    facades, _ = make_facades(
        Description(openapi="3.0.3", title="Acme", operations=operations, **fields), load_bundled()
    )
    return [(f"endpoints/e{index}.toml", facade) for index, facade in enumerate(facades)]


def test_every_guess_is_a_box_to_tick_with_its_file() -> None:
    made = entries(operation("GET", "/pets"), operation("DELETE", "/pets/{id}"))
    text = review_text(origin(), made, [], [])
    boxes = re.findall(r"^- \[ \] \((\d\.\d)\) .* \((endpoints/e\d\.toml)\)$", text, re.MULTILINE)
    assert len(boxes) == sum(len(facade.guesses) for _, facade in made)


def test_guesses_are_sorted_by_risk_and_irreversible_ones_come_first() -> None:
    text = review_text(origin(), entries(operation("GET", "/pets"), operation("DELETE", "/x/{id}")), [], [])
    assert text.index("## High") < text.index("## Medium") < text.index("## Low")
    low = text[text.index("## Low") :]
    assert low.index("REMOVE /x/{id}") < low.index("LIST /pets")


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
    assert "`GET /v1/a\\|b/search`" in text


def test_texts_of_a_description_are_not_interpreted_as_markup() -> None:
    hostile = operation("GET", "/pets", operation_id="getPets", summary="x")
    text = review_text(origin("<img src=x>`\x1b[31m"), entries(hostile), [LeftOut("<b>", "`\n# Heading")], [])
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\n# Heading" not in text
