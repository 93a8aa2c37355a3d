"""Checks of an upstream handler's description before the first call (AGTP-API 12.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import httpx

from bespeak.checks.lint.rules.handler import UPSTREAM_SETUP
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, fill_placeholders
from bespeak.protocol.exchange.headers import is_header_name, is_header_value
from bespeak.runtime.bindings.upstream_request import Credentials
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.pointer import child

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
# RFC 3986 appendix B: everything before the path.
_AUTHORITY: Final = re.compile(r"[^:/?#]+://[^/?#]*")


def check_setup(endpoint: Endpoint, handler: ExternalService) -> list[Diagnostic]:
    """Check the URL and the names of fields."""
    return [*_check_url(endpoint, handler), *_check_transforms(endpoint, handler)]


def upstream_url(handler: ExternalService) -> httpx.URL | None:
    """Parse the URL with a sample value for each field; return None if it is not valid."""
    try:
        url = httpx.URL(fill_placeholders(handler.url, lambda _: "1"))
    except httpx.InvalidURL:
        return None
    return url if url.host else None


def resolve_credentials(
    endpoint: Endpoint, handler: ExternalService, environment: Mapping[str, str]
) -> Credentials | list[Diagnostic]:
    """Resolve the configured headers, parameters and cookies from the environment, or return the findings."""
    findings: list[Diagnostic] = []

    def resolve(member: str, what: str, templates: Mapping[str, str]) -> dict[str, str]:
        values: dict[str, str] = {}
        for name, template in templates.items():
            missing = [variable for variable in _VARIABLE.findall(template) if variable not in environment]
            value = _VARIABLE.sub(lambda match: environment.get(match.group(1), ""), template)
            fault, advice = f"the {what} {name!r} cannot be sent", _ADVICE[what]
            if missing:
                fault = f"the {what} {name!r} needs the environment variable {missing[0]!r}, which is not set"
                advice = "Set it before the server starts."
            if missing or not _is_sendable(what, name, value):
                findings.append(UPSTREAM_SETUP.at(endpoint, child(f"/handler/{member}", name), fault, advice))
            values[name] = value
        return values

    credentials = Credentials(
        headers=resolve("headers", "header", handler.headers),
        query=resolve("query_credentials", "parameter", handler.query_credentials),
        cookies=resolve("cookie_credentials", "cookie", handler.cookie_credentials),
    )
    return findings or credentials


_ADVICE: Final = {
    "header": "Use printable ASCII on one line.",
    "parameter": "Use printable characters on one line, and a name.",
    "cookie": "Use printable ASCII without blanks, quotes, commas and semicolons.",
}
_COOKIE_VALUE: Final = re.compile(r"[!#-+\--:<-\[\]-~]*")
"""RFC 6265 4.1.1: cookie-octets."""


def _is_sendable(what: str, name: str, value: str) -> bool:
    if what == "parameter":
        return bool(name) and is_header_value(value)
    if what == "cookie":
        return is_header_name(name) and _COOKIE_VALUE.fullmatch(value) is not None
    return is_header_name(name) and is_header_value(value) and value.isascii()


def _check_url(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    at = "/handler/url"
    shown = handler.url[:200]
    authority = _AUTHORITY.match(handler.url)
    if authority is None or upstream_url(handler) is None:
        yield UPSTREAM_SETUP.at(endpoint, at, f"{shown!r} is not a usable URL", "Write https://host/path.")
        return
    if fill_placeholders(authority.group(), lambda _: "") != authority.group():
        yield UPSTREAM_SETUP.at(
            endpoint,
            at,
            f"the host of {shown!r} depends on the input",
            "Put placeholders into the path: a caller must not choose the host.",
        )
        return
    properties = endpoint.input_schema.get("properties", {})
    for name in handler.path_fields:
        if name not in properties:
            message = f"the URL needs {name!r}, which the input schema does not declare"
            yield UPSTREAM_SETUP.at(endpoint, at, message, "Declare it.")


def _check_transforms(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    # A name may be in the query and in the body, but not twice in one of them.
    with_body = handler.body_form != "none" and handler.body_field is None
    places = [(with_body and name not in handler.query, theirs) for name, theirs in handler.input_transform.items()]
    returned = list(handler.output_transform.values())
    for member, names in (("input_transform", places), ("output_transform", returned)):
        if len(set(names)) < len(names):
            yield UPSTREAM_SETUP.at(
                endpoint,
                f"/handler/{member}",
                f"{member} gives two fields the same upstream name, so one of them would be lost",
                "Give each its own.",
            )
