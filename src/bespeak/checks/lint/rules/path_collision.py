"""P306 and P307: no two endpoints of a service match the same request (AGTP-API 5.4, 6.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.path_syntax import parse_template
from bespeak.contract.grammar.template_set import TemplateSet
from bespeak.protocol.fault import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule

AMBIGUOUS: Final = Rule(
    ("P306", "ambiguous-path", "MUST", "AGTP-API 5.4"),
    "No request path matches two templates of one method with equally many parameters.",
    why="The endpoint for a request would depend on the order of files.",
    bad=("endpoints:\n  - method: FIND\n    path: /room/{room_id}\n  - method: FIND\n    path: /room/{name}\n"),
    good=("endpoints:\n  - method: FIND\n    path: /room/{room_id}\n  - method: FIND\n    path: /room/named/{name}\n"),
)
DUPLICATE: Final = Rule(
    ("P307", "duplicate-endpoint", "MUST", "AGTP-API 6.1"),
    "A method and path are declared once.",
    why="Only one of the two can handle a request, and it is unclear which.",
    bad=("endpoints:\n  - method: BOOK\n    path: /room\n  - method: BOOK\n    path: /room\n"),
    good=("endpoints:\n  - method: BOOK\n    path: /room\n  - method: BOOK\n    path: /suite\n"),
)


class PathClaims:
    """Paths claimed by the endpoints of a service so far, by method."""

    def __init__(self) -> None:
        self._templates: dict[str, TemplateSet] = {}
        self._places: dict[tuple[str, str], Endpoint] = {}

    def claim(self, endpoint: Endpoint) -> Diagnostic | None:
        """Claim the endpoint's path for its method, or report the earlier endpoint that it collides with."""
        template = parse_template(endpoint.path)
        if isinstance(template, Fault):
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


def check(endpoint: Endpoint, claims: PathClaims) -> Iterator[Diagnostic]:
    """Claim the path of an endpoint; report a collision with an earlier one."""
    finding = claims.claim(endpoint)
    if finding is not None:
        yield finding
