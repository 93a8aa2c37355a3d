"""Credentials belong to the operator: variables in headers, queries and cookies, nothing from the caller."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.openapi.description import Description, Operation, SecurityScheme
from bespeak.documents.openapi.facade import CredentialChoice, Credentials

SCHEMES = {
    "bearer": SecurityScheme(name="bearer", kind="http", scheme="bearer"),
    "basic": SecurityScheme(name="basic", kind="http", scheme="Basic"),
    "header": SecurityScheme(name="header", kind="apiKey", place="header", parameter="X-Key"),
    "query": SecurityScheme(name="query", kind="apiKey", place="query", parameter="key"),
    "cookie": SecurityScheme(name="cookie", kind="apiKey", place="cookie", parameter="sid"),
    "digest": SecurityScheme(name="digest", kind="http", scheme="digest"),
    "tls": SecurityScheme(name="tls", kind="mutualTLS"),
    "oauth": SecurityScheme(name="oauth", kind="oauth2"),
    "broken": SecurityScheme(name="broken", kind="apiKey", place="header", parameter="no name"),
}


def chosen(
    *security: dict[str, Any], names: tuple[str, ...] = tuple(SCHEMES), title: str = "Acme Notes"
) -> Credentials:
    description = Description(openapi="3.0.3", title=title, schemes={name: SCHEMES[name] for name in names})
    operation = Operation(method="GET", path="/x", base="", pointer="", security=security)
    return CredentialChoice(description).choose(operation)


def test_a_token_is_a_header() -> None:
    found = chosen({"bearer": ()}, names=("bearer",))
    assert found.headers == {"Authorization": "Bearer ${UPSTREAM_ACME_NOTES_TOKEN}"}
    assert [variable.name for variable in found.variables] == ["UPSTREAM_ACME_NOTES_TOKEN"]
    assert found.is_sent


@pytest.mark.parametrize("name", ["oauth"])
def test_oauth2_and_openid_tokens_are_bearer_tokens(name: str) -> None:
    assert chosen({name: ()}, names=(name,)).headers == {"Authorization": "Bearer ${UPSTREAM_ACME_NOTES_TOKEN}"}


def test_user_and_password_are_given_as_base64() -> None:
    found = chosen({"basic": ()}, names=("basic",))
    assert found.headers == {"Authorization": "Basic ${UPSTREAM_ACME_NOTES_BASIC}"}
    assert "base64" in found.variables[0].what


def test_api_key_is_sent_in_its_declared_place() -> None:
    found = chosen({"header": (), "query": (), "cookie": ()})
    assert found.headers == {"X-Key": "${UPSTREAM_ACME_NOTES_HEADER_API_KEY}"}
    assert found.query == {"key": "${UPSTREAM_ACME_NOTES_QUERY_API_KEY}"}
    assert found.cookies == {"sid": "${UPSTREAM_ACME_NOTES_COOKIE_API_KEY}"}
    assert found.parameters == {("header", "X-Key"), ("query", "key"), ("cookie", "sid")}


@pytest.mark.parametrize("name", ["digest", "tls", "broken", "unknown"])
def test_unsupported_scheme_is_a_high_risk(name: str) -> None:
    found = chosen({name: ()})
    assert not found.is_sent
    assert [guess.risk for guess in found.guesses] == ["high"]
    assert name in found.guesses[0].otherwise


def test_first_supported_scheme_is_used_and_reported() -> None:
    found = chosen({"tls": ()}, {"bearer": (), "header": ()}, {"basic": ()})
    assert found.headers.keys() == {"Authorization", "X-Key"}
    assert [guess.confidence for guess in found.guesses] == [0.8]


def test_no_credential_is_sent_if_anonymous_calls_are_allowed() -> None:
    assert not chosen().is_sent
    assert not chosen({}, {"bearer": ()}).is_sent
    assert chosen({"bearer": ()}, {}).guesses


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("", "UPSTREAM_TOKEN"),
        ("7 Notes", "UPSTREAM_7_NOTES_TOKEN"),
        ("日本", "UPSTREAM_TOKEN"),
        ("GitHub", "UPSTREAM_GIT_HUB_TOKEN"),
    ],
)
def test_variable_has_a_unique_name_that_is_valid_in_shells(title: str, name: str) -> None:
    assert chosen({"bearer": ()}, names=("bearer",), title=title).variables[0].name == name
