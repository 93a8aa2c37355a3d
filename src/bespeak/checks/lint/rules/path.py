"""P3xx: the path of an endpoint keeps the path grammar (AGTP-API 5)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.path_syntax import PathFault, check_leakage, check_structure, parse_template
from bespeak.contract.grammar.template_set import TemplateSet
from bespeak.contract.handler import RegisteredFunction
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.change import Change

STRUCTURE: Final = Rule(
    "P301",
    "path-structure",
    "MUST",
    "AGTP-API 5.1, 5.2",
    "A path begins with a slash, does not end with one, and has only characters a path can carry.",
    fix="safe",
    why="A path is compared character by character: one that no request can carry is never reached.",
    bad='[endpoint]\npath = "/room/"\n',
    good='[endpoint]\npath = "/room"\n',
    notation="toml",
)
LEAKAGE: Final = Rule(
    "P302",
    "method-name-in-path",
    "MUST",
    "AGTP-API 5.1",
    "No literal segment is a verb of the catalog.",
    why="The method says what is done. A verb in the path as well makes two words for one act, which can differ.",
    bad='[endpoint]\nmethod = "BOOK"\npath = "/book/room"\n',
    good='[endpoint]\nmethod = "BOOK"\npath = "/room"\n',
    notation="toml",
)
TEMPLATE: Final = Rule(
    "P303",
    "template-form",
    "MUST",
    "AGTP-API 5.2, 5.3",
    "A parameter is a whole segment of the form {name}.",
    why="Paths are matched segment by segment; a parameter that is part of a segment has no value of its own.",
    bad='[endpoint]\npath = "/room-{room_id}"\n',
    good='[endpoint]\npath = "/room/{room_id}"\n',
    notation="toml",
)
REPEATED: Final = Rule(
    "P304",
    "repeated-parameter",
    "MUST",
    "AGTP-API 5.2",
    "The parameter names of one path are unique.",
    why="Both values would reach the handler under one name, and one of them would be lost.",
    bad='[endpoint]\npath = "/hotel/{id}/room/{id}"\n',
    good='[endpoint]\npath = "/hotel/{hotel_id}/room/{room_id}"\n',
    notation="toml",
)
UNDECLARED: Final = Rule(
    "P305",
    "undeclared-parameter",
    "MUST",
    "AGTP-API 5.3",
    "Each template parameter is a property of input_schema.",
    why=(
        "The value of a path parameter is part of the input, and an input with a field its schema does not know "
        "is refused."
    ),
    bad=(
        '[endpoint]\npath = "/room/{room_id}"\n\n[endpoint.input_schema]\n'
        'type = "object"\nproperties = { nights = { type = "integer" } }\n'
        "additionalProperties = false\n"
    ),
    good=(
        '[endpoint]\npath = "/room/{room_id}"\n\n[endpoint.input_schema]\n'
        'type = "object"\n'
        'properties = { room_id = { type = "string" }, nights = { type = "integer" } }\n'
        "additionalProperties = false\n"
    ),
    notation="toml",
)
AMBIGUOUS: Final = Rule(
    "P306",
    "ambiguous-path",
    "MUST",
    "AGTP-API 5.4",
    "No request path matches two templates of one method with equally many parameters.",
    why="Which endpoint answers a request would depend on chance, or on the order of files.",
    bad=("endpoints:\n  - method: FIND\n    path: /room/{room_id}\n  - method: FIND\n    path: /room/{name}\n"),
    good=("endpoints:\n  - method: FIND\n    path: /room/{room_id}\n  - method: FIND\n    path: /room/named/{name}\n"),
)
DUPLICATE: Final = Rule(
    "P307",
    "duplicate-endpoint",
    "MUST",
    "AGTP-API 6.1",
    "A method stands on a path once.",
    why="Only one of the two can answer, and nobody can tell which.",
    bad=("endpoints:\n  - method: BOOK\n    path: /room\n  - method: BOOK\n    path: /room\n"),
    good=("endpoints:\n  - method: BOOK\n    path: /room\n  - method: BOOK\n    path: /suite\n"),
)
LOOKALIKE: Final = Rule(
    "P308",
    "parameter-look-alike",
    "SHOULD",
    "AGTP-API 5.2",
    "A segment like :id is a literal; a parameter is {id}.",
    fix="unsafe",
    why=(
        "Other frameworks write parameters like this. Here such a segment stands for itself, and the endpoint is "
        "never found."
    ),
    bad='[endpoint]\npath = "/room/:room_id"\n',
    good='[endpoint]\npath = "/room/{room_id}"\n',
    notation="toml",
)

_LOOKALIKE: Final = re.compile(r":([A-Za-z0-9_]+)|<(?:\w+:)?([A-Za-z0-9_]+)>", re.ASCII)
"""A parameter as other frameworks write it."""

_template: Final = lru_cache(maxsize=1 << 14)(parse_template)
"""An endpoint's path is looked at by itself and beside the others, when it is declared and when it is registered."""

RULES: Final = (STRUCTURE, LEAKAGE, TEMPLATE, REPEATED, UNDECLARED, AMBIGUOUS, DUPLICATE, LOOKALIKE)


def check(endpoint: Endpoint, verbs: Container[str]) -> Iterator[Diagnostic]:
    """Findings about the path of one endpoint."""
    template = _template(endpoint.path)
    fault = check_structure(endpoint.path) if isinstance(template, PathFault) else None
    if fault is not None:
        in_braces = "{" in fault.segment or "}" in fault.segment
        rule = TEMPLATE if in_braces and endpoint.path.startswith("/") else STRUCTURE
        fix = _with_slashes(endpoint.path) if rule is STRUCTURE else None
        yield rule.at(endpoint, "/path", fault.message, _parameter_advice(fault.segment), fix)
        return
    leak = check_leakage(endpoint.path, verbs)
    if leak is not None:
        advice = f"Leave out {brief(leak.segment)}, or name the thing acted on: the method already says what is done."
        yield LEAKAGE.at(endpoint, "/path", leak.message, advice)
    if isinstance(template, PathFault):
        yield REPEATED.at(endpoint, "/path", template.message, "Give each parameter its own name.")
        return
    if "/:" in endpoint.path:
        yield from _check_lookalikes(endpoint)
    properties = endpoint.input_schema.get("properties")
    declared = properties if isinstance(properties, dict) else ()
    for name in template.parameters:
        if name not in declared:
            yield _undeclared(endpoint, name)


def _with_slashes(path: str) -> Fix | None:
    """The path with one slash before it and none behind, if that is all it lacks."""
    meant = "/" + path.strip("/")
    if check_structure(meant) is not None:
        return None
    return Fix(f"Write {brief(meant)[1:-1]}", (Change("replace", "/path", meant),))


def _check_lookalikes(endpoint: Endpoint) -> Iterator[Diagnostic]:
    segments = endpoint.path.split("/")
    for index, segment in enumerate(segments):
        advice = _parameter_advice(segment)
        if advice:
            message = f"{brief(segment)} matches only itself, to the letter"
            meant = "/".join([*segments[:index], f"{{{_parameter_meant(segment)}}}", *segments[index + 1 :]])
            fix = Fix(f"Write {brief(meant)[1:-1]}", (Change("replace", "/path", meant),), safe=False)
            yield LOOKALIKE.at(endpoint, "/path", message, advice, fix)


def _parameter_advice(segment: str) -> str:
    name = _parameter_meant(segment)
    return f"Write a parameter as {{{name}}}." if name else ""


def _parameter_meant(segment: str) -> str:
    match = _LOOKALIKE.fullmatch(segment)
    return match[1] or match[2] if match else ""


def _undeclared(endpoint: Endpoint, name: str) -> Diagnostic:
    handler = endpoint.handler
    if isinstance(handler, RegisteredFunction) and handler.target is not None:
        message, advice = f"the path has {{{name}}}, and the function has no parameter {name}", "Add the parameter"
    else:
        message, advice = f"the path parameter {{{name}}} is no property of input_schema", "Add the property"
    return UNDECLARED.at(
        endpoint, "/path", message, f"{advice} {name!r}: its value reaches the handler with the input."
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
