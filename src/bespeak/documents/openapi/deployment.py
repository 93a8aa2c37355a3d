"""A description as the files of a deployment: configuration, endpoint files with their guesses, REVIEW.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bespeak.contract.catalog.bundled import load_bundled
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.openapi.credentials import Variable
from bespeak.documents.openapi.description import Description
from bespeak.documents.openapi.facade import Facade, make_facades, upstream_hosts
from bespeak.documents.openapi.guess import RISKS, Guess, LeftOut
from bespeak.documents.openapi.naming import hyphenated
from bespeak.documents.openapi.plain_text import plain_text
from bespeak.documents.openapi.review import MADE_OF, review_text, used_variables
from bespeak.documents.projections.deployment_files import configuration_data, endpoint_data, function_names
from bespeak.documents.toml_text import Written, toml_text
from bespeak.text.diagnostics.printable import printable

REVIEW: Final = "REVIEW.md"
ENVIRONMENT: Final = ".env.example"
ENDPOINTS: Final = "endpoints"


@dataclass(frozen=True, slots=True)
class Imported:
    """The files of a deployment by their paths, and what there is to say about them."""

    files: dict[str, str]
    facades: tuple[Facade, ...]
    left_out: tuple[LeftOut, ...]
    """Operations that have no endpoint."""
    notes: tuple[LeftOut, ...]
    """Parts of the description that were read otherwise than they are written, or not at all."""
    variables: tuple[Variable, ...]
    guesses: dict[str, int]
    """How many of each risk."""


def import_description(description: Description, notes: Sequence[LeftOut] = ()) -> Imported:
    """The deployment of a description. `notes` is what the reader could not take over."""
    facades, skipped = make_facades(description, load_bundled())
    names = function_names([facade.endpoint for facade in facades])
    entries = [(f"{ENDPOINTS}/{name.replace('_', '-')}.toml", one) for name, one in zip(names, facades, strict=True)]
    service, general = _service(description, facades)
    files = {"bespeak.toml": _configuration(service, general, description)}
    written: Written = {}
    files.update((file, _endpoint_file(facade, description, written)) for file, facade in entries)
    files[REVIEW] = review_text(description.title, entries, skipped, general, notes)
    variables = used_variables(entries)
    if variables:
        lines = [f"# {MADE_OF}: what the upstream knows this server by. Set these, and keep them out of the folder."]
        lines += [f"# {printable(one.what)}\n{one.name}=" for one in variables.values()]
        files[ENVIRONMENT] = "\n".join(lines) + "\n"
    guesses = [*general, *(guess for facade in facades for guess in facade.guesses)]
    counts = {str(risk): sum(guess.risk == risk for guess in guesses) for risk in RISKS}
    return Imported(files, tuple(facades), tuple(skipped), tuple(notes), tuple(variables.values()), counts)


def _service(description: Description, facades: Sequence[Facade]) -> tuple[Service, list[Guess]]:
    hosts = upstream_hosts(facade.operation for facade in facades)
    title = plain_text(description.title, 100).text
    slug = hyphenated(title) or "upstream"
    host = hosts[0] if hosts else f"{slug}.example"
    source = description.source if description.source.startswith(("https://", "http://")) else ""
    guesses = [
        _guess("server_id", f"server_id {host}", "the host of the upstream", 0.4, "the name this server is reached by"),
        _guess("operator", f"operator {title or host}", "no description says who operates this server", 0.3, ""),
    ]
    if not description.contact:
        guesses.append(_guess("contact", f"contact https://{host}", "the description names nobody", 0.2, ""))
    if len(hosts) > 1:
        why = f"the description names {len(hosts)} hosts"
        guesses.append(_guess("server_id", f"all of {', '.join(hosts[:5])} are called", why, 0.6, ""))
    documentation = source or f"https://{host}"
    if not source:
        why = "the description came from a file"
        guesses.append(Guess(at="/apis", text=f"http_documentation {documentation}", why=why, confidence=0.3))
    api = {"name": title or slug, "type": "openapi", "version": description.version or "1"}
    service = Service(
        identity=ServerIdentity(
            server_id=host,
            operator=title or host,
            contact=plain_text(description.contact, 200).text or f"https://{host}",
            name=title,
        ),
        description=plain_text(description.description, 400).text,
        document_version=plain_text(description.version, 60).text or None,
        apis=({**api, "http_documentation": documentation},),
    )
    return service, guesses


def _guess(key: str, text: str, why: str, confidence: float, otherwise: str) -> Guess:
    return Guess(at=f"/server/{key}", text=text, why=why, confidence=confidence, otherwise=otherwise, risk="medium")


def _configuration(service: Service, guesses: Sequence[Guess], description: Description) -> str:
    comments: dict[str, list[str]] = {"": [f"{MADE_OF} of {_shown(description.source) or 'a description'}."]}
    for guess in guesses:
        comments.setdefault(guess.at, []).append(_shown(guess.comment))
    return toml_text(configuration_data(service), comments)


def _endpoint_file(facade: Facade, description: Description, written: Written) -> str:
    operation = facade.operation
    named = f" ({_shown(operation.operation_id)})" if operation.operation_id else ""
    origin = f"{operation.method} {_shown(operation.path)}{named}"
    comments: dict[str, list[str]] = {"": [f"{MADE_OF} of {origin}, {_shown(description.title)}."]}
    for guess in facade.guesses:
        comments.setdefault(f"/endpoint{guess.at}", []).append(_shown(guess.comment))
    return toml_text({"endpoint": endpoint_data(facade.endpoint, "")}, comments, written)


def _shown(text: str) -> str:
    """A text in a comment: one line of visible characters."""
    return printable(" ".join(text.split()))[:300]
