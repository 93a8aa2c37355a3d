"""The page that a browser shows for a service: what it does, how to call it, where its documents are.

Everything a contract says is escaped. The page has no script, and its one style sheet is allowed by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import as_text, http_route
from bespeak.contract.policy import Policies
from bespeak.contract.schema.view import sample
from bespeak.contract.service import Service
from bespeak.documents.ai.param_notation import cut
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.text.diagnostics.diagnostic import printable

MOST_SHOWN: Final = 200  # endpoints on the page; the documents have all
_LONGEST: Final = 300  # characters of one text
_LONGEST_COMMAND: Final = 600
_MOST_SCOPES: Final = 10
_AGENT: Final = "0a3f" * 16  # an agent for a service that believes its callers
_SCOPE: Final = "service:use"  # for a policy that wants any scope, where no endpoint names one
_IMPACTS: Final = {
    "informational": "only reads",
    "reversible": "changes something that can be undone",
    "irreversible": "cannot be undone",
}
_STYLE: Final = """
:root { color-scheme: light dark; --line: #d5d9df; --soft: #5b6470; --tint: #f4f6f8; --link: #0b57d0; --warn: #a3340a }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a4049; --soft: #a5afbb; --tint: #1c2026; --link: #8ab4f8; --warn: #ffb08a }
  body { background: #111418; color: #e6e9ed }
}
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 }
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; overflow-wrap: anywhere }
h1 { margin: 0 0 .5rem; line-height: 1.2 }
h2 { margin: 2.5rem 0 .5rem; font-size: 1.2rem }
p { margin: .3rem 0 }
a { color: var(--link) }
code, pre { font-family: ui-monospace, monospace; font-size: .93em }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 6px; padding: .8rem }
pre { white-space: pre-wrap }
ul { list-style: none; margin: 0; padding: 0 }
li { border-top: 1px solid var(--line); padding: .7rem 0 }
.soft { color: var(--soft) }
li > code + code { display: inline-block; margin-left: .8rem }
.irreversible { color: var(--warn); font-weight: 600 }
"""
POLICY: Final = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of the page."""


def project_page(
    service: Service,
    endpoints: Iterable[Endpoint],
    web: HttpSettings,
    modes: Sequence[str],
    documents: Mapping[str, str],
    *,
    policies: Policies,
    notes: Sequence[str] = (),
) -> str:
    """Write the page. `documents` describes the documents to link by path, `modes` are those of [auth]."""
    identity = service.identity
    listed = sorted((one for one in endpoints if one.is_listed), key=lambda endpoint: endpoint.deprecated is not None)
    name = _text(identity.name or identity.server_id)
    about = f"<p>{_text(service.description)}</p>\n" if service.description.strip() else ""
    by = " · ".join(_text(one) for one in (identity.server_id, identity.operator, identity.contact) if one)
    left = len(listed) - MOST_SHOWN
    rest = f"<p>{left:,} more endpoints are not shown; the documents below have all of them.</p>\n" if left > 0 else ""
    links = "".join(
        # Paths only, so that a link stays on the host that the reader came to.
        f'<li><a href="{escape(quote(web.prefix + path))}">{escape(path)}</a><br>'
        f'<span class="soft">{escape(text)}</span></li>\n'
        for path, text in documents.items()
    )
    remarks = "".join(f'<li class="soft">{escape(note)}</li>\n' for note in notes)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{name}</h1>\n{about}<p class="soft">{by}</p>\n'
        f"<h2>Endpoints</h2>\n{_list(listed, policies)}{rest}{_how(listed, policies, web, modes)}"
        f"<h2>For programs</h2>\n<ul>\n{links}{remarks}</ul>\n</main>\n</body>\n</html>\n"
    )


def _text(text: str) -> str:
    """Escape a text of the contract. What has no glyph is shown as code: it could reorder what is beside it."""
    return escape(printable(" ".join(cut(text, _LONGEST).split())))


def _list(listed: Sequence[Endpoint], policies: Policies) -> str:
    if not listed:
        return "<p>This service lists no endpoints in public.</p>\n"
    items = "".join(
        f"<li><code><b>{_text(one.method)}</b> {_text(one.path)}</code>"
        f' <code class="soft">{_text(f"{http_route(one).preferred} {http_route(one).path}")}</code>\n'
        f"<p>{_text(one.semantic.intent or one.description)}</p>\n"
        f'<p class="soft">{"; ".join(_remarks(one, policies))}</p></li>\n'
        for one in listed[:MOST_SHOWN]
    )
    return f"<ul>\n{items}</ul>\n"


def _remarks(endpoint: Endpoint, policies: Policies) -> Iterator[str]:
    impact = endpoint.semantic.impact
    yield f'<span class="{escape(impact)}">{_IMPACTS.get(impact, escape(impact))}</span>'
    if needs_confirmation(endpoint, policies):
        yield "waits until somebody else confirms it"
    if scopes := [f"<code>{_text(scope)}</code>" for scope in endpoint.required_scopes[:_MOST_SCOPES]]:
        left = len(endpoint.required_scopes) - len(scopes)
        more = f" and {left} more" if left else ""
        yield f"needs the scope{'s' if len(scopes) > 1 else ''} {', '.join(scopes)}{more}"
    if endpoint.deprecated is not None:
        yield "deprecated"


def _how(listed: Sequence[Endpoint], policies: Policies, web: HttpSettings, modes: Sequence[str]) -> str:
    """Show a command that calls an endpoint: if possible one that only reads and needs no scope."""
    if not listed:
        return ""
    shown = min(listed, key=lambda one: (http_route(one).preferred != "GET", bool(one.required_scopes)))
    scopes = shown.required_scopes
    if policies.scope_required_for_invocation and not scopes:
        scopes = next((one.required_scopes for one in listed if one.required_scopes), (_SCOPE,))
    if (command := _command(shown, scopes, web, modes)) is None:
        return ""
    return (
        f"<h2>Call one</h2>\n<pre>{escape(printable(command))}</pre>\n"
        '<p class="soft">POST takes the input as a JSON object. Endpoints that only read often take GET with a query. '
        "A refusal is problem+json and says what to do.</p>\n"
    )


def _command(endpoint: Endpoint, scopes: Sequence[str], web: HttpSettings, modes: Sequence[str]) -> str | None:
    given = sample(endpoint.input_schema)
    route = http_route(endpoint)
    given = given if isinstance(given, dict) else {}

    def fill(found: re.Match[str]) -> str:
        return quote(as_text(given.pop(found[1])), safe="") if found[1] in given else found[1].upper()

    url = (web.url or "https://this-host") + re.sub(r"\{(\w+)\}", fill, route.path)
    words = ["curl"]
    if route.preferred == "GET":
        url += f"?{urlencode({name: as_text(value) for name, value in given.items()})}" if given else ""
    else:
        words += ["--json", msgspec.json.encode(given).decode()]
    if "open" in modes or not modes:
        if scopes:
            words += ["-H", f"Agent-ID: {_AGENT}", "-H", f"Authority-Scope: {', '.join(scopes)}"]
    elif "key" in modes or "token" in modes:
        words += ["-H", f"Authorization: Bearer YOUR-{'KEY' if 'key' in modes else 'TOKEN'}"]
    elif "mtls" in modes:
        words += ["--cert", "agent.pem", "--key", "agent.key"]
    else:
        # curl cannot sign a request.
        words = ["bespeak", "call", web.url or "https://this-host", endpoint.method, endpoint.path]
        words += ["-d", msgspec.json.encode(given).decode()] if given else []
        url = "--agent-key=agent.pem"
    command = shlex.join([*words, url])
    return command if len(command) <= _LONGEST_COMMAND else None
