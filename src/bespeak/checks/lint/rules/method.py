"""M2xx: the method of an endpoint is a word of the catalog (AGTP-API 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bespeak.contract.catalog.bundled import versions_with
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.method_syntax import is_method_name
from bespeak.contract.policy import MethodPolicy
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.change import Change

SYNTAX: Final = Rule(
    "M201",
    "method-syntax",
    "MUST",
    "AGTP-API 3.2",
    "A method is 3 to 32 capital letters A to Z and nothing else.",
    why="Requests, catalogs and logs know a method as one word in capitals; anything else matches none of them.",
    bad='[endpoint]\nmethod = "BOOK_ROOM"\npath = "/reservation"\n',
    good='[endpoint]\nmethod = "BOOK"\npath = "/reservation/room"\n',
    notation="toml",
)
UNKNOWN: Final = Rule(
    "M202",
    "unknown-method",
    "MUST",
    "AGTP-API 3.2, 4.5",
    "A method is in the catalog the server uses, or a custom method of its policy; a removed verb is neither.",
    fix="unsafe",
    why="An agent picks a verb by what the catalog says of it, and a server refuses every verb it does not know.",
    bad='[endpoint]\nmethod = "CONJURE"\npath = "/room"\n',
    good='[endpoint]\nmethod = "CREATE"\npath = "/room"\n',
    notation="toml",
)
LEGACY: Final = Rule(
    "M203",
    "legacy-method",
    "MUST",
    "AGTP-API 3.6",
    "An endpoint is not declared with an HTTP verb.",
    fix="unsafe",
    why=(
        "HTTP verbs tell how data moves and not what a caller wants done. Servers map them for old callers by "
        "themselves."
    ),
    bad='[endpoint]\nmethod = "GET"\npath = "/room"\n',
    good='[endpoint]\nmethod = "FETCH"\npath = "/room"\n',
    notation="toml",
)
DEPRECATED: Final = Rule(
    "M204",
    "deprecated-method",
    "SHOULD",
    "AGTP-API 4.2",
    "An endpoint moves on from a verb the catalog deprecates.",
    fix="unsafe",
    why="The next catalog may do without the verb, and the endpoint is then refused.",
    bad='[endpoint]\nmethod = "AUDITLOG"\npath = "/payment"\n',
    good='[endpoint]\nmethod = "LOG"\npath = "/payment"\n',
    notation="toml",
)
NOT_ADMITTED: Final = Rule(
    "M205",
    "unreachable-method",
    "SHOULD",
    "AGTP-API 9.2",
    "The server's policy admits the method; otherwise every call of the endpoint is answered with 405.",
    why="An endpoint that its own server refuses is a promise nobody can call in.",
    bad=(
        '{\n  "endpoints": [{"method": "BOOK", "path": "/room"}],\n'
        '  "policies": {"methods": {"disallow": ["BOOK"]}}\n}\n'
    ),
    good=('{\n  "endpoints": [{"method": "BOOK", "path": "/room"}],\n  "policies": {"methods": {"disallow": []}}\n}\n'),
    notation="json",
)

RULES: Final = (SYNTAX, UNKNOWN, LEGACY, DEPRECATED, NOT_ADMITTED)


def check(endpoint: Endpoint, catalog: Catalog, policy: MethodPolicy) -> Iterator[Diagnostic]:
    """Findings about the method of one endpoint."""
    method = endpoint.method
    if method.upper() in catalog.legacy:
        preferred = catalog.legacy[method.upper()].preferred
        advice = f"Declare {preferred}; a server that opts in maps legacy requests by itself."
        message = f"{method} is an HTTP verb, for old callers only"
        yield LEGACY.at(endpoint, "/method", message, advice, _instead(preferred))
        return
    if not is_method_name(method):
        yield SYNTAX.at(
            endpoint,
            "/method",
            f"{brief(method)} is no method: a method is 3 to 32 capital letters",
            _suggest(method, catalog),
        )
        return
    verb = catalog.verbs.get(method)
    if verb is None and method not in policy.custom:
        known_in = versions_with(method)
        once = f" (catalog {known_in[-1]} has it)" if known_in else ""
        message = f"{method} is not in catalog {catalog.version}{once}, and no custom method of this server"
        advice = _suggest(method, catalog) or "Choose a verb of the catalog, or declare it in policies.methods.custom."
        near = catalog.near(method)
        yield UNKNOWN.at(endpoint, "/method", message, advice, _instead(near[0]) if len(near) == 1 else None)
        return
    if verb is not None and verb.deprecated_in is not None:
        going = f" and goes in {verb.removed_in}" if verb.removed_in else ""
        message = f"{method} is deprecated since catalog {verb.deprecated_in}{going}"
        advice, fix = (f"Use {verb.successor}.", _instead(verb.successor)) if verb.successor else ("", None)
        yield DEPRECATED.at(endpoint, "/method", message, advice, fix)
    if not policy.admits(method):
        message = f"the method policy of this server does not admit {method}, so every call gets 405"
        yield NOT_ADMITTED.at(endpoint, "/method", message, "Allow the method or remove the endpoint.")


def _instead(method: str) -> Fix:
    return Fix(f"Write {method}", (Change("replace", "/method", method),), safe=False)


def _suggest(method: str, catalog: Catalog) -> str:
    near = catalog.near(method)
    return f"Did you mean {' or '.join(near)}?" if near else ""
