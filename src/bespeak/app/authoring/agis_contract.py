"""An AGIS document as a server contract: check it once, bind handlers to its endpoints, draft missing ones."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Any, Final

from bespeak.app.authoring.declarations import check_fit
from bespeak.checks.lint.config import Configs
from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.rules.handler import NO_ENDPOINT, NO_HANDLER
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import HandlerBinding, RegisteredFunction
from bespeak.contract.policy import Policies
from bespeak.contract.service import Service
from bespeak.documents.agis.document import AgisDocument, agis_service
from bespeak.documents.projections.deployment_files import HANDLERS, function_names, whole_input_name
from bespeak.errors import BespeakError, ConfigError, ContractError
from bespeak.runtime.functions.signature import CONTEXT_NAMES
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors
from bespeak.text.reading.rules import DUPLICATE
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES, Location

_ANNOTATIONS: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}


def draft(document: str, endpoint: Endpoint) -> str:
    """Write the TOML and the Python that bind an endpoint of a document. The text continues a sentence."""
    name = function_names([endpoint])[0]
    properties = endpoint.output_schema.get("properties")
    returned = [name for name in properties if name.isprintable()] if isinstance(properties, Mapping) else []
    what = f"  # with {', '.join(returned[:8])}" if returned else ""
    function = f"def {name}({_parameters(endpoint)}) -> dict:\n    return {{}}{what}"
    return f"""write these files beside the document:

# bespeak.toml
document = {_quoted(document)}

[handlers.{_quoted(str(endpoint))}]
type = "registered_function"
function = "{HANDLERS}.{name}"

# {HANDLERS}.py
{function}

or write this file and serve it:

# {PurePath(document).stem}.py
from bespeak import App

app = App.from_agis({_quoted(document)})


@app.handler({_quoted(endpoint.method)}, {_quoted(endpoint.path)})
{function}"""


def _quoted(text: str) -> str:
    """Quote a string in a form that TOML and Python both accept."""
    return json.dumps(text, ensure_ascii=False)


def _parameters(endpoint: Endpoint) -> str:
    properties = endpoint.input_schema.get("properties", {})
    if not properties:
        return ""
    if not all(one.isidentifier() and not keyword.iskeyword(one) and one not in CONTEXT_NAMES for one in properties):
        # A name that is not a Python identifier: the function takes the whole input.
        return f"{whole_input_name(properties)}: dict"
    required = endpoint.input_schema.get("required", ())
    needed = [_declared(name, properties[name]) for name in properties if name in required]
    optional = [_declared(name, properties[name], optional=True) for name in properties if name not in required]
    return ", ".join((*needed, *optional))


def _declared(name: str, schema: Any, *, optional: bool = False) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    annotation = _ANNOTATIONS.get(kind) if isinstance(kind, str) else None
    if annotation is None:
        return f"{name}=None" if optional else name
    return f"{name}: {annotation} | None = None" if optional else f"{name}: {annotation}"


_OF_ENDPOINT: Final = re.compile(r"/endpoints/[^/]++(?=/|$)")
# Maximum number of findings reported for a document that cannot be served. The reader stops after as many structural
# findings, so the remaining endpoints are unchecked.
_SHOWN: Final = 100

Key = tuple[str, str]


def open_agis(path: Path, catalog: Catalog, policies: Policies | None = None) -> AgisContract:
    """Read and check a document. Raises ContractError if none of its endpoints can be served."""
    text = read_text(path, MAX_BYTES)
    if isinstance(text, Diagnostic):
        raise ContractError(f"{path} cannot be served", [text])
    config = Configs(path.absolute().parent).run
    context = LintContext(
        catalog=catalog,
        policies=policies or Policies(),
        level=config.conformance_level,
        allowed_verbs=frozenset(verb.upper() for verb in config.allowed_verbs),
        allowed_segments=frozenset(config.allowed_segments),
    )
    checked = check_text(text, str(path), context, "agis", most=None)
    errors = [finding for finding in checked.findings if finding.severity == "error"]
    document, structure = (checked.subject.agis, checked.subject.found) if checked.subject else (None, ())
    fatal = [finding for finding in errors if _endpoint_of(finding) is None]
    unread = len(structure) >= _SHOWN and has_errors(structure)
    if document is None or fatal or unread:
        raise ContractError(f"{path} is not valid and cannot be served", (fatal or errors)[:_SHOWN])
    return AgisContract(path, document, catalog, errors)


def _endpoint_of(finding: Diagnostic) -> str | None:
    """Return the endpoint of a finding. Vocabulary findings concern the whole document."""
    found = None if finding.rule.startswith("V") else _OF_ENDPOINT.match(finding.pointer)
    return found[0] if found else None


class AgisContract:
    def __init__(self, path: Path, document: AgisDocument, catalog: Catalog, errors: Sequence[Diagnostic]) -> None:
        """Create the contract without handlers. Endpoints with `errors` are skipped."""
        self.path = path
        self.errors = tuple(errors)
        wrong = {_endpoint_of(finding) for finding in errors}
        usable = tuple(entry for entry in document.endpoints if entry.at not in wrong)
        self._declared = {entry.endpoint.key for entry in document.endpoints}
        self.service: Service = agis_service(replace(document, endpoints=usable), catalog)  # without handlers
        self._usable = {endpoint.key: endpoint for endpoint in self.service.endpoints}
        self._bound: dict[Key, HandlerBinding] = {}
        self._places: dict[Key, Location | None] = {}

    def bind(self, method: str, path: str, handler: HandlerBinding, place: Location | None) -> list[Diagnostic]:
        """Bind a handler to an endpoint; return what prevents it. Handlers of skipped endpoints are accepted."""
        key = (method.upper(), path)
        if key not in self._declared:
            name = " ".join(key)
            known = [" ".join(declared) for declared in sorted(self._declared)]
            near = get_close_matches(name[:100], known, n=3, cutoff=0.5) or known[:5]
            advice = f"Did you mean {' or '.join(near)}?" if near else "It declares no endpoints."
            return [NO_ENDPOINT.found(f"{self.path} does not declare {brief(name)[1:-1]}", place, advice=advice)]
        if key in self._bound:
            message = f"{method} {path} already has a handler, at {self._places[key]}"
            return [DUPLICATE.found(message, place, advice="Remove one of them.")]
        found: list[Diagnostic] = []
        endpoint = self._usable.get(key)
        if endpoint is not None and isinstance(handler, RegisteredFunction) and handler.target is not None:
            advice = f"The input is declared at {endpoint.location}."
            here = replace(endpoint, location=place)
            found = list(check_fit(here, handler.target, inline=handler.inline, advice=advice))
        if not has_errors(found):
            self._bound[key] = handler
            self._places[key] = place
        return found

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(
            replace(endpoint, handler=self._bound[endpoint.key])
            for endpoint in self.service.endpoints
            if endpoint.key in self._bound
        )

    @property
    def findings(self) -> list[Diagnostic]:
        """Findings for the endpoints that are not served: errors, or no handler."""
        advice = 'Write [handlers."{}"] into bespeak.toml, or @app.handler in Python.'
        unbound = [endpoint for endpoint in self.service.endpoints if endpoint.key not in self._bound]
        text = "it has no handler and is skipped"
        return [*self.errors, *(NO_HANDLER.at(one, "", text, advice.format(one)) for one in unbound)]

    def unserved(self, wrong: Sequence[Diagnostic] = ()) -> BespeakError:
        """Build the error for a document without servable endpoints. `wrong` has the findings about its handlers."""
        if wrong:
            return ContractError(f"no endpoint of {self.path} has a handler that can be used", wrong)
        if not self.service.endpoints:
            return ContractError(f"{self.path} has no endpoint that can be served", self.errors[:_SHOWN])
        first, count = self.service.endpoints[0], len(self.service.endpoints)
        what = "an endpoint" if count == 1 else f"{count} endpoints"
        message = f"{self.path} declares {what} without handlers. For {first},"
        return ConfigError(f"{message} {draft(self.path.name, first)}")
