"""A description as endpoints in front of its upstream: one for each operation, with every guess."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import UPSTREAM_METHODS, ExternalService
from bespeak.documents.adoption.candidate import READING, Candidate
from bespeak.documents.adoption.error_names import shape_errors
from bespeak.documents.adoption.facade import Facade
from bespeak.documents.adoption.field_signs import change_signs, program_field
from bespeak.documents.adoption.guess import Guess, LeftOut
from bespeak.documents.adoption.judgement import Judgement, choose_scopes, judge_all
from bespeak.documents.adoption.path_choice import PathChoice
from bespeak.documents.openapi.credentials import CredentialChoice
from bespeak.documents.openapi.description import Description, Operation
from bespeak.documents.openapi.input_shape import InputShape, shape_input
from bespeak.documents.openapi.output_shape import Known, shape_output
from bespeak.documents.openapi.schema_fit import SchemaFitter
from bespeak.documents.openapi.siblings import Siblings
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.text.diagnostics.brief import brief

_TIMEOUT: Final = 30.0
_JOB_ID: Final = re.compile(r"(?:job|task|operation|run|execution|batch)_?id", re.IGNORECASE)
"""Fields of an answer that name work which goes on."""
_SAFE: Final = "/{}:@!$&'()*+,;=-._~%"


def make_facades(description: Description, catalog: Catalog) -> tuple[list[Facade], list[LeftOut]]:
    """Make the endpoints of a description, in its order, and list the operations that cannot be called."""
    maker = _Maker(description)
    usable: list[Operation] = []
    left_out: list[LeftOut] = []
    for operation in description.operations:
        reason = _unusable(operation)
        if reason:
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
    """Return the schemas of an operation's parameters and of the fields of its body, by their names."""
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
    if "{" in parts.netloc:
        return "the address of its server contains a variable; give one with --server"
    return ""


class _Maker:
    """Makes the endpoints of one description."""

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
        semantic, is_sent = judgement.semantic, credentials.is_sent
        errors = shape_errors(judgement.candidate, has_credential=is_sent)
        scopes, scope_guess = choose_scopes(self._title, semantic.impact, has_credential=is_sent)
        url, url_guess = _url(operation, judgement.path, given)
        fixed, fixed_guess = _fixed(given.headers)
        handler = ExternalService(
            url=url,
            method=operation.method,
            headers={**fixed, **credentials.headers},
            query_credentials=credentials.query,
            cookie_credentials=credentials.cookies,
            input_transform=given.transform,
            error_map=errors.error_map,
            timeout_seconds=_TIMEOUT,
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
        guesses = (
            *judgement.guesses,
            *credentials.guesses,
            *url_guess,
            *fixed_guess,
            *scope_guess,
            *given.guesses,
            *returned.guesses,
            *errors.guesses,
            *self._deprecation(operation),
        )
        return Facade(
            judgement.candidate, endpoint, guesses, credentials.variables, judgement.path.reasons, operation.rate
        )

    def _deprecation(self, operation: Operation) -> Sequence[Guess]:
        if not operation.deprecated:
            return ()
        text, why = f"deprecated in {self._version}", "the description does not say since when"
        return (Guess(at="/deprecated", text=text, why=why, confidence=0.5),)


def _fixed(headers: Mapping[str, str]) -> tuple[dict[str, str], list[Guess]]:
    """Return the headers of every request. Only generated ones contain `${...}`, which reads a variable of this
    server.
    """
    kept = {name: value for name, value in headers.items() if "${" not in value and is_header_value(value)}
    why, otherwise = "its described value cannot be sent", "a value of your own"
    return kept, [_doubt(f"without the header {name}", why, otherwise) for name in headers if name not in kept]


def _doubt(text: str, why: str, otherwise: str) -> Guess:
    return Guess(at="/handler/url", text=text, why=why, confidence=0.3, otherwise=otherwise, risk="high")


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
    query = "&".join(filter(None, (quote(choice.url_path(own), safe=_SAFE), *pairs)))
    return f"{base}{path if path.startswith('/') or not path else '/' + path}{'?' + query if query else ''}", guesses
