"""llms.txt: the service as a short page of Markdown, with links to the full documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import http_route
from bespeak.contract.service import Service
from bespeak.documents.ai.param_notation import cut
from bespeak.documents.deployment.http_settings import HttpSettings

PATH: Final = "/llms.txt"
MOST_ENDPOINTS: Final = 200
"""Maximum number of listed endpoints; the documents have all."""

_LONGEST: Final = 160
_HOW: Final = (
    "Call an endpoint by POST with a JSON object; those marked GET also take it as a query. `compact=true` and "
    "`fields=a,b.c` make answers smaller. Errors are problem+json."
)
_MARKUP: Final = re.compile(r"[\\`*\[\]<>]")
_UNSAFE: Final = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})


def project_llms(
    service: Service, endpoints: Iterable[Endpoint], settings: HttpSettings, documents: Mapping[str, str]
) -> str:
    """Write the page; `documents` describes the other served documents by path."""
    base = settings.url or settings.prefix
    identity = service.identity
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    listed.sort(key=lambda endpoint: endpoint.deprecated is not None)
    lines = [f"# {_plain(identity.name or identity.server_id)}", ""]
    if service.description.strip():
        lines += [f"> {_plain(service.description, 300)}", ""]
    lines += [_HOW, "", "## Endpoints", ""]
    lines += [_line(endpoint, base) for endpoint in listed[:MOST_ENDPOINTS]]
    if len(listed) > MOST_ENDPOINTS:
        lines.append(f"- {len(listed) - MOST_ENDPOINTS} more: see the documents below.")
    lines += ["", "## Documents", ""]
    lines += [f"- [{path}]({base}{path.translate(_UNSAFE)}): {about}" for path, about in documents.items()]
    return "\n".join(lines) + "\n"


def _line(endpoint: Endpoint, base: str) -> str:
    route = http_route(endpoint)
    about = _plain(endpoint.semantic.intent or endpoint.description)
    notes = ["GET"] if route.preferred == "GET" else []
    if endpoint.required_scopes:
        notes.append(f"needs {_plain(', '.join(endpoint.required_scopes))}")
    if endpoint.deprecated is not None:
        notes.append("deprecated")
    remarks = f" ({'; '.join(notes)})" if notes else ""
    return f"- [{endpoint.method} {_plain(endpoint.path)}]({base}{route.path.translate(_UNSAFE)}): {about}{remarks}"


def _plain(text: str, most: int = _LONGEST) -> str:
    """Return a text on one line without markup."""
    return _MARKUP.sub(lambda found: f"\\{found[0]}", cut(text, most))
