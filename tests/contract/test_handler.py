from __future__ import annotations

import pytest

from bespeak.contract.handler import ExternalService, fill_placeholders, is_upstream_status


@pytest.mark.parametrize(
    ("method", "body", "body_field", "form"),
    [
        ("GET", None, None, "none"),
        ("DELETE", None, None, "none"),
        ("DELETE", "json", None, "json"),
        ("DELETE", None, "it", "json"),
        ("POST", None, None, "json"),
        ("POST", "none", None, "none"),
        ("PUT", "multipart", None, "multipart"),
    ],
)
def test_body_form_is_declared_or_derived_from_the_method(
    method: str, body: str | None, body_field: str | None, form: str
) -> None:
    handler = ExternalService(url="https://u.example", method=method, body=body, body_field=body_field)
    assert handler.body_form == form


def test_the_fields_of_a_url_are_named_once_each() -> None:
    handler = ExternalService(url="https://u.example/{a}/x-{b}.json?c={a}", method="GET")
    assert handler.path_fields == ("a", "b")


def test_placeholders_are_filled_once() -> None:
    assert fill_placeholders("/{a}/{b}/{not this}", {"a": "{b}", "b": "2"}.__getitem__) == "/{b}/2/{not this}"


@pytest.mark.parametrize("text", ["404", "100", "599", "4XX", "5XX"])
def test_a_status_or_one_of_two_ranges_is_a_key_of_an_error_map(text: str) -> None:
    assert is_upstream_status(text)


@pytest.mark.parametrize("text", ["", "4xx", "2XX", "3XX", "600", "40", "default", "4XX ", "٤٠٤"])
def test_anything_else_is_not_an_upstream_status(text: str) -> None:
    assert not is_upstream_status(text)
