"""Examples of the rules for OpenAPI descriptions break and keep them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.documents.openapi.reading import OK, document
from tests.documents.openapi.reading import rules as ids

from bespeak.documents import rules
from bespeak.documents.openapi.reader import read_description
from bespeak.text.diagnostics.diagnostic import Rule, declared_in
from bespeak.text.diagnostics.report import page_of

ROOM: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}


@pytest.mark.parametrize(
    "rule",
    [rule for name, rule in declared_in(rules).items() if name.startswith("D16") and page_of(rule).bad],
    ids=lambda rule: rule.id,
)
def test_bad_example_breaks_the_rule_and_good_example_keeps_it(rule: Rule) -> None:
    assert rule.id in ids(found_in(page_of(rule).bad))
    assert rule.id not in ids(found_in(page_of(rule).good))


def found_in(piece: str) -> list[Any]:
    """Return the findings about a description that contains a piece."""
    part = yaml.safe_load(piece)
    if "info" in part:
        return read_description(piece, "api.yaml")[1]
    content = {"application/json": part if "schema" in part else {"schema": part}}
    paths: dict[str, Any] = {"/x": {"post": {"requestBody": {"content": content}, "responses": OK}}}
    top: dict[str, Any] = {"components": {"schemas": {"Room": ROOM}}}
    if any(key.startswith("/") for key in part):
        paths = part
        for operation in [operation for item in part.values() for operation in item.values()]:
            operation.setdefault("responses", OK)
    elif not {"schema", "type"} & part.keys():
        top = part
        paths["/x"]["post"].pop("requestBody")
    return read_description(json.dumps(document(paths, "3.1.0") | top), "api.json")[1]
