"""P3xx: the path of an endpoint keeps the path grammar (AGTP-API 5)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.grammar.path_syntax import PathFault, check_leakage, check_structure, parse_template
from bespeak.grammar.template_set import TemplateSet
from bespeak.lint.rule import Rule

STRUCTURE: Final = Rule(
    "P301",
    "path-structure",
    "MUST",
    "AGTP-API 5.1, 5.2",
    "A path begins with a slash, does not end with one, and has only characters a path can carry.",
)
LEAKAGE: Final = Rule(
    "P302", "method-name-in-path", "MUST", "AGTP-API 5.1", "No literal segment is a verb of the catalog."
)
TEMPLATE: Final = Rule(
    "P303", "template-form", "MUST", "AGTP-API 5.2, 5.3", "A parameter is a whole segment of the form {name}."
)
REPEATED: Final = Rule(
    "P304", "repeated-parameter", "MUST", "AGTP-API 5.2", "The parameter names of one path are unique."
)
UNDECLARED: Final = Rule(
    "P305",
    "undeclared-parameter",
    "MUST",
    "AGTP-API 5.3",
    "Each template parameter is a property of input_schema.",
)
AMBIGUOUS: Final = Rule(
    "P306",
    "ambiguous-path",
    "MUST",
    "AGTP-API 5.4",
    "No request path matches two templates of one method with equally many parameters.",
)
DUPLICATE: Final = Rule("P307", "duplicate-endpoint", "MUST", "AGTP-API 6.1", "A method stands on a path once.")

_template: Final = lru_cache(maxsize=1 << 14)(parse_template)
"""An endpoint's path is looked at by itself and beside the others, when it is declared and when it is registered."""

RULES: Final = (STRUCTURE, LEAKAGE, TEMPLATE, REPEATED, UNDECLARED, AMBIGUOUS, DUPLICATE)


def check(endpoint: Endpoint, verbs: Container[str]) -> Iterator[Diagnostic]:
    """Findings about the path of one endpoint."""
    template = _template(endpoint.path)
    fault = check_structure(endpoint.path) if isinstance(template, PathFault) else None
    if fault is not None:
        rule = TEMPLATE if "{" in fault.segment or "}" in fault.segment else STRUCTURE
        yield rule.at(endpoint, "/path", fault.message)
        return
    leak = check_leakage(endpoint.path, verbs)
    if leak is not None:
        yield LEAKAGE.at(endpoint, "/path", leak.message, "Name the thing acted on: /rooms, not /book.")
    if isinstance(template, PathFault):
        yield REPEATED.at(endpoint, "/path", template.message, "Give each parameter its own name.")
        return
    properties = endpoint.input_schema.get("properties")
    declared = properties if isinstance(properties, dict) else ()
    for name in template.parameters:
        if name not in declared:
            yield UNDECLARED.at(
                endpoint,
                "/path",
                f"the path parameter {{{name}}} is no property of input_schema",
                f"Add the property {name!r}: its value reaches the handler with the input.",
            )


class PathClaims:
    """Which paths the endpoints of a service have taken so far, method by method."""

    def __init__(self) -> None:
        self._templates: dict[str, TemplateSet] = {}
        self._places: dict[tuple[str, str], Endpoint] = {}

    def claim(self, endpoint: Endpoint) -> Diagnostic | None:
        """Take the endpoint's path for its method, or say which earlier endpoint stands in the way."""
        template = _template(endpoint.path)
        if isinstance(template, PathFault):
            return None
        rival = self._templates.setdefault(endpoint.method, TemplateSet()).add(template)
        if rival is None:
            self._places[endpoint.key] = endpoint
            return None
        earlier = self._places[endpoint.method, rival.path]
        where = f" ({earlier.location})" if earlier.location else ""
        if rival.path == endpoint.path:
            message = f"this method and path are already declared{where}"
            return DUPLICATE.at(endpoint, "/path", message, "Remove one of the two.")
        message = f"the path is ambiguous with {rival.path}{where}: some request matches both equally well"
        return AMBIGUOUS.at(endpoint, "/path", message, "Make one of the two more specific.")


def check_together(endpoints: Iterable[Endpoint]) -> Iterator[tuple[Endpoint, Diagnostic]]:
    """The endpoints that collide with an earlier one, each with its finding."""
    claims = PathClaims()
    for endpoint in endpoints:
        finding = claims.claim(endpoint)
        if finding is not None:
            yield endpoint, finding
