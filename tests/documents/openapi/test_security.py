"""Security requirements of an upstream are read from every version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.documents.openapi.reading import OK, document, read, rules

from bespeak.documents.openapi.description import Description, SecurityScheme

SCHEMES: dict[str, Any] = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "Ask us."},
    "token": {"type": "http", "scheme": "Bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
    "login": {"$ref": "#/components/securitySchemes/oauth"},
    "cert": {"type": "mutualTLS"},
}


def described(schemes: Any, whole: Any = None, own: Any = None) -> tuple[Description, list[str]]:
    operation = {"responses": OK, **({"security": own} if own is not None else {})}
    parts = {"components": {"securitySchemes": schemes}, **({"security": whole} if whole is not None else {})}
    made, found = read(document({"/room": {"get": operation}}, "3.1.0", **parts))
    return made, rules(found)


def test_schemes_are_read_with_their_place() -> None:
    made, found = described(SCHEMES)
    assert made.schemes["key"] == SecurityScheme(
        name="key", kind="apiKey", place="header", parameter="X-Key", description="Ask us."
    )
    assert made.schemes["token"] == SecurityScheme(name="token", kind="http", scheme="bearer")
    assert [made.schemes[name].kind for name in ("oauth", "login", "cert")] == ["oauth2", "oauth2", "mutualTLS"]
    assert found == []


@pytest.mark.parametrize(
    ("whole", "own", "security"),
    [
        (None, None, ()),
        ([{"key": []}], None, ({"key": ()},)),
        ([{"key": []}], [], ()),
        ([{"key": []}], [{}], ({},)),
        (
            [{"key": []}],
            [{"oauth": ["read", 1], "key": []}, {"token": []}],
            ({"oauth": ("read",), "key": ()}, {"token": ()}),
        ),
    ],
)
def test_operation_has_its_own_or_the_global_requirements(whole: Any, own: Any, security: Any) -> None:
    made, found = described(SCHEMES, whole, own)
    assert (made.operations[0].security, found) == (security, [])


@pytest.mark.parametrize(
    "scheme",
    [{"type": "magic"}, {"type": "apiKey", "in": "body", "name": "k"}, {"type": "apiKey", "in": "header"}, {}, "x"],
)
def test_a_scheme_that_cannot_be_used_is_left_out(scheme: Any) -> None:
    made, found = described({"bad": scheme})
    assert (made.schemes, found) == ({}, ["D169"])


@pytest.mark.parametrize(
    ("own", "rule"), [([{"unknown": []}], "D169"), ("key", "D104"), (["key"], "D104"), ({"key": []}, "D104")]
)
def test_invalid_requirement_is_reported(own: Any, rule: str) -> None:
    made, found = described(SCHEMES, own=own)
    assert (made.operations[0].security, found) == ((), [rule])


def test_2_0_has_definitions_and_a_type_of_its_own() -> None:
    definitions = {"login": {"type": "basic"}, "key": {"type": "apiKey", "in": "query", "name": "k"}}
    made, found = read(
        document(
            {"/room": {"get": {"responses": OK}}}, "2.0", securityDefinitions=definitions, security=[{"login": []}]
        )
    )
    assert (made.schemes["login"].kind, made.schemes["login"].scheme) == ("http", "basic")
    assert made.operations[0].security == ({"login": ()},)
    assert found == []
