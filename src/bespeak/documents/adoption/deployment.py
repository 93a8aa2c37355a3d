"""The files of a deployment in front of an upstream: configuration, endpoint files with their guesses, REVIEW.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from bespeak.contract.handler import ExternalService, HandlerBinding, McpTool
from bespeak.contract.rate import Rate, RateLimits
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.adoption.facade import Facade, Origin, Variable
from bespeak.documents.adoption.guess import RISKS, UNREVIEWED, Guess, LeftOut
from bespeak.documents.adoption.naming import hyphenated
from bespeak.documents.adoption.path_choice import style_fault
from bespeak.documents.adoption.plain_text import plain_text
from bespeak.documents.adoption.review import review_text, used_variables
from bespeak.documents.projections.deployment_files import configuration_data, endpoint_data, function_names
from bespeak.documents.toml_text import Written, toml_text
from bespeak.text.diagnostics.printable import printable
from bespeak.text.language.instruction import instruction

REVIEW: Final = "REVIEW.md"
ENVIRONMENT: Final = ".env.example"
ENDPOINTS: Final = "endpoints"
_RATE: Final = Rate(120, "min", 120)
"""Limit of calls in front of an upstream that states none."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Files of a deployment by path, with a summary of the import."""

    service: Service
    """What the files describe."""
    files: dict[str, str]
    facades: tuple[Facade, ...]
    left_out: tuple[LeftOut, ...]
    """Candidates that have no endpoint."""
    notes: tuple[LeftOut, ...]
    """Parts of the document that were ignored or read differently than written."""
    variables: tuple[Variable, ...]
    guesses: dict[str, int]
    """Number of guesses by risk."""


def make_deployment(
    origin: Origin, facades: Sequence[Facade], left_out: Sequence[LeftOut], notes: Sequence[LeftOut] = ()
) -> Imported:
    """Write the files of facades. `notes` lists what the reader of their document could not use."""
    names = function_names([facade.endpoint for facade in facades])
    entries = [(one.file or _file(name), one) for name, one in zip(names, facades, strict=True)]
    service, general = _service(origin, facades)
    origin = replace(origin, title=service.identity.name)
    files = {"bespeak.toml": _configuration(service, general, origin, _odd_segments(facades))}
    written: Written = {}
    files.update((file, facade.text or _endpoint_file(facade, origin, written)) for file, facade in entries)
    files[REVIEW] = review_text(origin, entries, left_out, general, notes)
    variables = used_variables(entries)
    if variables:
        lines = [f"# {origin.made_by}: credentials for the upstream. Set them, and keep them out of this folder."]
        lines += [f"# {printable(one.what)}\n{one.name}=" for one in variables.values()]
        files[ENVIRONMENT] = "\n".join(lines) + "\n"
    guesses = [*general, *(guess for facade in facades for guess in facade.guesses)]
    counts = {str(risk): sum(guess.risk == risk for guess in guesses) for risk in RISKS}
    service = replace(service, endpoints=tuple(facade.endpoint for facade in facades))
    return Imported(service, files, tuple(facades), tuple(left_out), tuple(notes), tuple(variables.values()), counts)


def _file(name: str) -> str:
    return f"{ENDPOINTS}/{name.replace('_', '-')}.toml"


def upstream_hosts(facades: Iterable[Facade]) -> list[str]:
    """Return the hosts that are called, each once."""
    names = (urlsplit(_address(facade.endpoint.handler)).hostname for facade in facades)
    return list(dict.fromkeys(filter(None, names)))


def _address(handler: HandlerBinding) -> str:
    if isinstance(handler, McpTool):
        return handler.mcp.url
    return handler.url if isinstance(handler, ExternalService) else ""


def _service(origin: Origin, facades: Sequence[Facade]) -> tuple[Service, list[Guess]]:
    hosts = upstream_hosts(facades)
    said = {
        "name": plain_text(origin.title, 100),
        "description": plain_text(origin.description, 400),
        "contact": plain_text(origin.contact, 200),
        "version": plain_text(origin.version, 60),
    }
    title = said["name"].text
    slug = hyphenated(title) or "upstream"
    host = hosts[0] if hosts else f"{slug}.example"
    source = origin.source if origin.source.startswith(("https://", "http://")) else ""
    named = "the host of the upstream" if hosts else "nothing names the host of this server"
    guesses = [
        _guess("server_id", f"server_id {host}", named, 0.4, "the host name of this server"),
        _guess(
            "operator", f"operator {title or host}", "a description does not name the operator of this server", 0.3, ""
        ),
    ]
    for key, one in said.items():
        if one.fault:
            why = f"the upstream's text holds {one.fault}"
            guesses.append(Guess(at=f"/server/{key}", text="left out", why=why, confidence=0.3, risk="high"))
    if not origin.contact:
        guesses.append(_guess("contact", f"contact https://{host}", "the description does not name a contact", 0.2, ""))
    if len(hosts) > 1:
        why = f"the description names {len(hosts)} hosts"
        guesses.append(_guess("server_id", f"all of {', '.join(hosts[:5])} are called", why, 0.6, ""))
    if origin.rate is None:
        # AI 6.3: a service that agents find must not be one that they can overrun.
        text, why = f"at most {_RATE} calls of each agent", "the description states no limit"
        guesses.append(Guess(at="/limits/rate/agent", text=text, why=why, confidence=0.3, risk="medium"))
    documentation = source or f"https://{host}"
    if not source:
        why = "the description does not have an address"
        guesses.append(Guess(at="/apis", text=f"http_documentation {documentation}", why=why, confidence=0.3))
    api = {"name": title or slug, "type": origin.command, "version": said["version"].text or "1"}
    service = Service(
        identity=ServerIdentity(
            server_id=host,
            operator=title or host,
            contact=said["contact"].text or f"https://{host}",
            name=title,
        ),
        description=said["description"].text,
        document_version=said["version"].text or None,
        apis=({**api, "http_documentation": documentation},),
        rate_limits=RateLimits(
            agent=origin.rate or _RATE,
            endpoints={facade.endpoint.key: facade.rate for facade in facades if facade.rate is not None},
        ),
    )
    return service, guesses


def _guess(key: str, text: str, why: str, confidence: float, otherwise: str) -> Guess:
    return Guess(at=f"/server/{key}", text=text, why=why, confidence=confidence, otherwise=otherwise, risk="medium")


def _odd_segments(facades: Sequence[Facade]) -> list[str]:
    """Return the segments that keep the upstream's name, although lint would take it for a verb: /starred."""
    pairs = ((segment, one.endpoint.method) for one in facades for segment in one.endpoint.path[1:].split("/"))
    return sorted({segment for segment, method in pairs if "{" not in segment and style_fault(segment, method)})


def _configuration(service: Service, guesses: Sequence[Guess], origin: Origin, odd: Sequence[str]) -> str:
    comments: dict[str, list[str]] = {"": [f"{origin.made_by} of {_shown(origin.source) or 'a description'}."]}
    for guess in guesses:
        comments.setdefault(guess.at, []).append(_shown(guess.comment))
    data = configuration_data(service)
    if odd:
        data["lint"] = {"allowed-segments": list(odd)}
        comments["/lint/allowed-segments"] = ["Names of the upstream that look like forms of verbs."]
    return toml_text(data, comments)


def _endpoint_file(facade: Facade, origin: Origin, written: Written) -> str:
    candidate = facade.candidate
    named = f" ({_shown(candidate.name)})" if candidate.method and candidate.name else ""
    comments: dict[str, list[str]] = {
        "": [f"{origin.made_by} of {_shown(candidate.origin)}{named}, {_shown(origin.title)}."]
    }
    comments["/endpoint/reviewed"] = [f"{UNREVIEWED} `bespeak review` removes this line when you accept the endpoint."]
    for guess in facade.guesses:
        if guess.is_minor:
            continue
        comments.setdefault(f"/endpoint{guess.at}", []).append(_shown(guess.comment))
    return toml_text({"endpoint": endpoint_data(facade.endpoint, "")}, comments, written)


def _shown(text: str) -> str:
    """Return a text as one line of visible characters, for a comment; models read comments too."""
    return printable(" ".join(text.split()))[:300] if instruction(text, field=True) is None else "(left out)"
