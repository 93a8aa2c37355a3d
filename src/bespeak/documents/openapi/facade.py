"""Import of an OpenAPI description: an endpoint for each operation in front of its upstream, with every guess.

A caller's identity is never forwarded (AGTP-API 12.3): the upstream only gets credentials of this server.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.handler import UPSTREAM_METHODS, ExternalService
from bespeak.contract.schema.view import SchemaView
from bespeak.documents.adoption.deployment import Imported, make_deployment
from bespeak.documents.adoption.evidence import change_signs, program_field, shape_errors, takes_back
from bespeak.documents.adoption.facade import READING, Candidate, Facade, Guess, ImportOrigin, LeftOut, Variable
from bespeak.documents.adoption.judgement import Judgement, choose_scopes, judge_all
from bespeak.documents.adoption.path_choice import PathChoice
from bespeak.documents.adoption.sanitizer import Definitions, SchemaFitter, bound
from bespeak.documents.openapi.description import Description, DocumentedResponse, Operation, SecurityScheme, media_form
from bespeak.documents.openapi.input_shape import InputShape, shape_input
from bespeak.protocol.exchange.headers import is_header_name, is_header_value
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.language.names import singular, words
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.verb_form import two_word_verb

_OPEN: Final[Mapping[str, Any]] = {"type": "object"}
_ONE: Final = "result"
_TEXT: Final = "text"


@dataclass(slots=True)
class OutputShape:
    """An output schema, and the handler settings that turn an answer into an object."""

    schema: dict[str, Any] = field(default_factory=lambda: dict(_OPEN))
    answer: str = "json"
    output_field: str | None = None
    guesses: list[Guess] = field(default_factory=list)


Known = dict[tuple[int, ...], tuple[list[DocumentedResponse], "OutputShape"]]
"""Outputs by the ids of their schemas; the responses are included to keep those ids in use."""


def shape_output(operation: Operation, fitter: SchemaFitter, known: Known) -> OutputShape | str:
    """Build the output of an operation, or return why that is impossible. Operations often share response schemas."""
    answers = operation.answers
    # 200 comes before 201; if no success is documented, the default response counts.
    good = sorted((one for one in answers if one.status.startswith("2")), key=lambda one: one.status.upper())
    good = good or [one for one in answers if one.status == "default" and not _is_problem(one)]
    if operation.method == "HEAD" or (good and all(answer.media_type is None for answer in good)):
        return OutputShape(answer="none")
    with_json = [one for one in good if one.media_type and media_form(one.media_type) in ("json", "json-like", "any")]
    if with_json:
        key = tuple(id(answer.schema) for answer in with_json)
        if key not in known:
            known[key] = (with_json, _json(with_json, fitter))
        return known[key][1]
    if any(answer.media_type and media_form(answer.media_type) == "text" for answer in good):
        schema = {"type": "object", "properties": {_TEXT: {"type": "string"}}, "required": [_TEXT]}
        return OutputShape(schema, "text", _TEXT)
    if not good:
        guess = _guess("any object", "no successful response is documented", 0.5, "the upstream's actual answer")
        return OutputShape(output_field=_ONE, guesses=[guess])
    media = next(answer.media_type for answer in good if answer.media_type) or ""
    if operation.method == "GET":
        return f"its answer is {media[:80]}; only JSON and text can be passed on"
    guess = _guess("nothing", f"an answer of {media[:80]} cannot be passed on", 0.5, "JSON or text")
    return OutputShape(answer="none", guesses=[guess])


def _is_problem(answer: DocumentedResponse) -> bool:
    said = answer.description.lower()
    return "error" in said or "problem" in (answer.media_type or "") or "fail" in said


def _json(answers: list[DocumentedResponse], fitter: SchemaFitter) -> OutputShape:
    shape = OutputShape()
    lost: dict[str, None] = {}
    definitions = Definitions()
    schemas: list[dict[str, Any]] = []
    for answer in answers:
        clean, given_up = fitter.clean(answer.schema or {})
        lost.update(dict.fromkeys(given_up))
        adopted = definitions.adopt(clean)
        if adopted not in schemas:
            schemas.append(adopted)
    if not (said := [schema for schema in schemas if schema]):
        shape.output_field = _ONE
        shape.guesses.append(_guess("any object", "no schema is given", 0.6, "the upstream's actual answer"))
        return shape
    whole = _one(said, definitions.found, shape)
    if definitions.found:
        whole["$defs"] = definitions.found
    fitted, cut = bound(whole)
    lost.update(dict.fromkeys(cut))
    shape.schema = fitted if fitted.get("type") == "object" else {**fitted, "type": "object"}
    shape.guesses += [_guess(f"without {loss}", "an endpoint file cannot express it", 0.7, "your own") for loss in lost]
    return shape


def _one(schemas: list[dict[str, Any]], definitions: Mapping[str, Any], shape: OutputShape) -> dict[str, Any]:
    """Combine all successes into one object; anything else becomes a field of one."""
    kinds = {_kind(schema, definitions) for schema in schemas}
    several = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if kinds == {"object"}:
        return _opened(schemas[0]) if len(schemas) == 1 else {"type": "object", "anyOf": [*map(_opened, schemas)]}
    if "object" in kinds or "any" in kinds:
        # The type is known only at run time: an object passes unchanged, anything else becomes the field.
        shape.output_field = _ONE
        shape.guesses.append(_guess(f"any object, or {_ONE}", "the answer is not always an object", 0.6, ""))
        return {"type": "object", "properties": {_ONE: several}} if "any" not in kinds else dict(_OPEN)
    shape.output_field = "items" if kinds == {"array"} else _ONE
    return {"type": "object", "properties": {shape.output_field: several}, "required": [shape.output_field]}


def _kind(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return `object`, `array` or `scalar`; `any` if it is unknown."""
    view = SchemaView(schema, {"$defs": definitions})
    kinds = {kind if kind in ("object", "array") else "scalar" for kind in view.kinds}
    if view.nullable and not isinstance(view.keywords.get("type"), list):
        kinds.add("scalar")
    return kinds.pop() if len(kinds) == 1 else "any"


def _opened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that allows further fields, as outputs should (AGTP-API 13.3)."""
    opened = {key: value for key, value in schema.items() if key != "additionalProperties" or value is not False}
    opened.pop("unevaluatedProperties", None)
    properties, required = opened.get("properties"), opened.get("required")
    if isinstance(properties, Mapping) and isinstance(required, list):
        parts = {name: part for name, part in properties.items() if isinstance(part, Mapping)}
        # Write-only properties are not returned.
        opened["required"] = [name for name in required if parts.get(name, {}).get("writeOnly") is not True]
    return {"type": "object", **opened} if "type" not in opened else opened


def _guess(text: str, why: str, confidence: float, otherwise: str) -> Guess:
    return Guess("/output_schema", text, why, confidence, otherwise)


_LONGEST_PREFIX: Final = 24
_SUFFIXES: Final = {"bearer": "TOKEN", "basic": "BASIC", "apiKey": "API_KEY"}


@dataclass(slots=True)
class UpstreamCredentials:
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    guesses: list[Guess] = field(default_factory=list)

    @property
    def parameters(self) -> frozenset[tuple[str, str]]:
        """Places and names of the credentials: a described parameter that matches one is not an input."""
        places = {"header": self.headers, "query": self.query, "cookie": self.cookies}
        return frozenset((place, name) for place, names in places.items() for name in names)


class CredentialChoice:
    """Chooses credentials for the operations of one description; each scheme has one variable."""

    def __init__(self, description: Description) -> None:
        self._schemes = description.schemes
        title = "_".join(words(description.title)).upper()[:_LONGEST_PREFIX].strip("_")
        # The title is the description's choice: one called GitHub must not get an existing GITHUB_TOKEN.
        self._prefix = f"UPSTREAM_{title}".rstrip("_")
        kinds = [_scheme_kind(scheme) for scheme in self._schemes.values()]
        self._alone = {kind for kind in kinds if kinds.count(kind) == 1}

    def choose(self, operation: Operation) -> UpstreamCredentials:
        """Choose the first alternative that is supported; none if the upstream admits anonymous calls."""
        alternatives = operation.security
        named = ", ".join(sorted({name for alternative in alternatives for name in alternative}))
        if not all(alternatives) and len(alternatives) > 1:
            why = "the upstream needs none, so agents reach only public data"
            return UpstreamCredentials(guesses=[Guess("/handler/url", "no credential is sent", why, 0.7, named)])
        if not all(alternatives) or not alternatives:
            return UpstreamCredentials()
        for alternative in alternatives:
            if all(self._is_possible(name) for name in alternative):
                return self._meet(tuple(alternative), len(alternatives))
        kinds = {_scheme_kind(self._schemes[name]) for one in alternatives for name in one if name in self._schemes}
        why = f"bespeak cannot send {', '.join(sorted(filter(None, kinds))) or named}"
        otherwise = f"a credential for {named}, without which the upstream refuses every call"
        guess = Guess("/handler/url", "no credential is sent", why, 0.2, otherwise, "high")
        return UpstreamCredentials(guesses=[guess])

    def _is_possible(self, name: str) -> bool:
        if (scheme := self._schemes.get(name)) is None:
            return False
        kind = _scheme_kind(scheme)
        if kind == "apiKey":
            fits = is_header_name(scheme.parameter) if scheme.place != "query" else bool(scheme.parameter)
            return scheme.place in ("header", "query", "cookie") and fits
        return kind in _SUFFIXES

    def _meet(self, names: tuple[str, ...], alternatives: int) -> UpstreamCredentials:
        found = UpstreamCredentials()
        places = {"header": found.headers, "query": found.query, "cookie": found.cookies}
        for name in names:
            scheme = self._schemes[name]
            variable = self._variable(scheme)
            found.variables = (*found.variables, variable)
            value = f"${{{variable.name}}}"
            if _scheme_kind(scheme) == "apiKey":
                places[scheme.place][scheme.parameter] = value
            else:
                found.headers["Authorization"] = f"{'Basic' if _scheme_kind(scheme) == 'basic' else 'Bearer'} {value}"
        if alternatives > 1:
            text, why = f"the credential is {' and '.join(names)}", f"the first of {alternatives} alternatives"
            found.guesses.append(Guess("/handler/url", text, why, 0.8))
        return found

    def _variable(self, scheme: SecurityScheme) -> Variable:
        kind = _scheme_kind(scheme)
        own = "" if kind in self._alone else "_".join(words(scheme.name)).upper()[:_LONGEST_PREFIX]
        name = "_".join(filter(None, (self._prefix, own, _SUFFIXES[kind])))
        what = {
            "bearer": f"the access token ({scheme.kind}) of this server, without the word Bearer",
            "basic": "base64 of user:password",
            "apiKey": f"the key for the {scheme.place} {scheme.parameter}",
        }[kind]
        return Variable(name, what)


def _scheme_kind(scheme: SecurityScheme) -> str:
    """Return the supported form of a scheme: `bearer`, `basic` or `apiKey`; its own name if it is not supported."""
    named = scheme.scheme.lower() if scheme.kind == "http" else scheme.kind
    return "bearer" if named in ("oauth2", "openIdConnect") else named


_CORRECTING: Final = frozenset({"DELETE", "PUT", "PATCH"})  # methods on a thing that take back or correct its creation
_ITEM: Final = "{}"

Shape = tuple[str, ...]


class Siblings:
    """The operations of one description, by the shapes of their paths."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._methods: defaultdict[tuple[str, Shape], set[str]] = defaultdict(set)
        self._of_items: defaultdict[str, set[str]] = defaultdict(set)
        self._commands: defaultdict[Shape, set[str]] = defaultdict(set)
        self._deeds: defaultdict[tuple[Shape, Shape], set[str]] = defaultdict(set)
        for one in operations:
            for thing, word in _deeds(one):
                self._deeds[thing].add(word)
            shape = _shape(one.path)
            self._methods[one.base, shape].add(one.method)
            if len(shape) > 1 and shape[-1] == _ITEM:
                self._of_items[shape[-2]].add(one.method)
            elif one.method in ("POST", "PUT"):
                self._commands[shape[:-1]].add("".join(words(shape[-1])) if shape else "")

    def has_readable_state(self, operation: Operation) -> bool:
        """Return True if a GET returns what this operation overwrites."""
        return "GET" in self._methods[operation.base, _shape(operation.path)]

    def is_undone(self, operation: Operation) -> bool:
        """Return True if another operation deletes, corrects or reverses what this one does."""
        shape = _shape(operation.path)
        if any(takes_back(other, word) for thing, word in _deeds(operation) for other in self._deeds[thing]):
            return True
        if operation.method not in ("POST", "PUT") or not shape:
            return False
        if "DELETE" in self._methods[operation.base, shape]:
            return True
        if operation.method == "PUT" or shape[-1] == _ITEM:
            return False
        ending = (operation_classes(command) for command in self._commands[(*shape, _ITEM)])
        removed = any(classes is not None and classes.of("DELETE") >= 0.5 for classes in ending)
        return removed or not _CORRECTING.isdisjoint(self._of_items[shape[-1]])


def _shape(path: str) -> Shape:
    return tuple(_ITEM if "{" in segment else segment for segment in path.split("/") if segment)


def _deeds(operation: Operation) -> Iterator[tuple[tuple[Shape, Shape], str]]:
    """Yield each word of a name and of a command that may be the verb, with all it is about."""
    shape = _shape(operation.path)
    if operation.method in READING:
        return
    for name, around in ((operation.operation_id, ()), (shape[-1] if shape else "", shape[:-1])):
        parts = tuple(singular(part) for part in words(name))
        for at, part in enumerate(parts):
            if parts[:at] or parts[at + 1 :] or around:
                yield (around, parts[:at] + parts[at + 1 :]), part
            joined = two_word_verb(part, parts[: at + 2], at) if parts[at + 1 :] else None  # powerOff
            if joined:
                yield (around, parts[:at] + parts[at + 2 :]), joined


# Fields of an answer that name work which goes on.
_JOB_ID: Final = re.compile(r"(?:job|task|operation|run|execution|batch)_?id", re.IGNORECASE)
_SAFE: Final = "/{}:@!$&'()*+,;=-._~%"


def make_facades(description: Description, catalog: Catalog) -> tuple[list[Facade], list[LeftOut]]:
    """Make the endpoints of a description, in its order, and list the operations that cannot be called."""
    maker = _EndpointMaker(description)
    usable: list[Operation] = []
    left_out: list[LeftOut] = []
    for operation in description.operations:
        if reason := _unusable(operation):
            left_out.append(LeftOut(f"{operation.method} {operation.path}", reason))
        else:
            usable.append(operation)
    siblings = Siblings(description.operations)
    candidates = [as_candidate(one, siblings) for one in usable]
    facades: list[Facade] = []
    for operation, judgement in zip(usable, judge_all(candidates, catalog), strict=True):
        try:
            facade = maker.make(operation, judgement)
        except Exception as error:  # noqa: BLE001 - one operation must not stop the import of the others
            facade = f"bespeak failed with {type(error).__name__}: {brief(str(error))}; this is a bug, please report it"
        if isinstance(facade, str):
            left_out.append(LeftOut(f"{operation.method} {operation.path}", facade))
        else:
            facades.append(facade)
    return facades, left_out


def as_candidate(operation: Operation, siblings: Siblings) -> Candidate:
    """Convert an operation to the form that the importers' common judgement needs."""
    answers = operation.answers
    good = [one for one in answers if one.status[:1] == "2"]
    fields = _fields(operation)
    reads = operation.method in READING
    return Candidate(
        name=operation.operation_id,
        name_kind="operationId",
        method=operation.method,
        path=operation.path,
        summary=operation.summary,
        description=operation.description,
        tags=operation.tags,
        returns_list=any((one.schema or {}).get("type") == "array" for one in good),
        failures={one.status: one.description for one in answers if one.status[:1] in ("4", "5")},
        successes=frozenset(one.status for one in good),
        starts_job=any(_JOB_ID.fullmatch(name) for one in good for name in (one.schema or {}).get("properties") or ()),
        has_readable_state=siblings.has_readable_state(operation),
        is_undone=siblings.is_undone(operation),
        signs=tuple(change_signs(fields, reads=reads)) if reads or operation.method == "POST" else (),
        program=program_field(fields, operation.description, reads=reads),
    )


def _fields(operation: Operation) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for one in operation.parameters:
        fields[one.name] = {**one.schema, "description": one.description or one.schema.get("description")}
    body = operation.body
    properties = body.schema.get("properties") if body is not None and isinstance(body.schema, Mapping) else None
    return {**properties, **fields} if isinstance(properties, Mapping) else fields


def _unusable(operation: Operation) -> str:
    if operation.method not in UPSTREAM_METHODS:
        return f"bespeak cannot call an upstream with {operation.method}"
    parts = urlsplit(operation.base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "it has no server; give one with --server"
    return "the address of its server contains a variable; give one with --server" if "{" in parts.netloc else ""


class _EndpointMaker:
    def __init__(self, description: Description) -> None:
        self._fitter = SchemaFitter()
        self._outputs: Known = {}
        self._credentials = CredentialChoice(description)
        version = description.version.strip()
        self._version = version if version and ";" not in version and is_header_value(version) else "1"
        self._title = description.title

    def make(self, operation: Operation, judgement: Judgement) -> Facade | str:
        """Make the endpoint of an operation, or return why there is none."""
        credentials = self._credentials.choose(operation)
        given = shape_input(operation, judgement.path, self._fitter, credentials=credentials.parameters)
        if isinstance(given, str):
            return given
        returned = shape_output(operation, self._fitter, self._outputs)
        if isinstance(returned, str):
            return returned
        semantic, is_sent = judgement.semantic, bool(credentials.parameters)
        errors = shape_errors(judgement.candidate, has_credential=is_sent)
        scopes, scope_guess = choose_scopes(self._title, semantic.impact, has_credential=is_sent)
        url, url_guess = _url(operation, judgement.path, given)
        # Only generated headers contain `${...}`, which reads a variable of this server.
        fixed = {name: text for name, text in given.headers.items() if "${" not in text and is_header_value(text)}
        why, otherwise = "its described value cannot be sent", "a value of your own"
        unsent = [_doubt(f"without the header {name}", why, otherwise) for name in given.headers if name not in fixed]
        handler = ExternalService(
            url=url,
            method=operation.method,
            headers={**fixed, **credentials.headers},
            query_credentials=credentials.query,
            cookie_credentials=credentials.cookies,
            input_transform=given.transform,
            error_map=errors.error_map,
            timeout_seconds=30.0,
            query=tuple(given.query),
            lists=given.lists,
            reserved=tuple(given.reserved),
            header_fields=given.header_fields,
            cookie_fields=given.cookie_fields,
            body=given.body if given.body_field is None else None,
            body_field=given.body_field,
            files=given.files,
            part_types=given.part_types,
            answer=returned.answer,
            output_field=returned.output_field,
        )
        endpoint = Endpoint(
            method=judgement.method,
            path=judgement.path.path,
            description=judgement.description,
            semantic=semantic,
            input_schema=given.schema,
            output_schema=returned.schema,
            errors=errors.errors,
            handler=handler,
            required_scopes=scopes,
            deprecated=Deprecation(deprecated_in=self._version) if operation.deprecated else None,
            reviewed=False,
        )
        shaped = (*given.guesses, *returned.guesses, *errors.guesses)
        guesses = (*judgement.guesses, *credentials.guesses, *url_guess, *unsent, *scope_guess, *shaped)
        if operation.deprecated:
            text, why = f"deprecated in {self._version}", "the description does not say since when"
            guesses = (*guesses, Guess("/deprecated", text, why, 0.5))
        rewritten = judgement.path.reasons
        return Facade(judgement.candidate, endpoint, guesses, credentials.variables, rewritten, operation.rate)


def _doubt(text: str, why: str, otherwise: str) -> Guess:
    return Guess("/handler/url", text, why, 0.3, otherwise, "high")


def _url(operation: Operation, choice: PathChoice, given: InputShape) -> tuple[str, Iterable[Guess]]:
    """Build the URL of the upstream. The draft requires https even if the description has http."""
    base = operation.base.rstrip("/")
    guesses: list[Guess] = []
    if base.lower().startswith("http://"):
        base = "https://" + base[len("http://") :]
        otherwise = "another address of the upstream with TLS"
        guesses.append(_doubt(f"{base} instead of plain http", "AGTP-API 12.3 requires https", otherwise))
    described, _, own = operation.path.partition("#")[0].partition("?")
    path = quote(choice.url_path(described), safe=_SAFE)
    pairs = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in given.own_query]
    query = "&".join((*([quote(choice.url_path(own), safe=_SAFE)] if own else ()), *pairs))
    return f"{base}{path if path.startswith('/') or not path else '/' + path}{'?' + query if query else ''}", guesses


def import_description(description: Description, notes: Sequence[LeftOut] = ()) -> Imported:
    """Make the deployment of a description. `notes` lists the parts that the reader skipped or changed."""
    facades, left_out = make_facades(description, load_bundled())
    shared = ("title", "version", "description", "contact", "source", "rate")
    said = {name: getattr(description, name) for name in shared}
    origin = ImportOrigin(command="openapi", form="an OpenAPI description", **said)
    return make_deployment(origin, facades, left_out, notes)
