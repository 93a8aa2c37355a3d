"""Items 1 and 9: every published endpoint is complete and states its purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import jsonschema_rs

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    all_of,
    could_not_tell,
    failed,
    faults,
    not_applicable,
    warned,
)
from bespeak.app.conformance.published import mapping, objects, path_parameters, properties, strings
from bespeak.app.conformance.subject import Subject
from bespeak.contract.grammar.method_syntax import is_method_name
from bespeak.contract.grammar.path_syntax import check_path
from bespeak.contract.handler import COMPOSITION_FAILED, UPSTREAM_ERRORS, Composition, ExternalService
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS
from bespeak.contract.schema.compile import DIALECT, compile_schema
from bespeak.contract.semantic import CAPABILITIES, IMPACTS
from bespeak.protocol.fault import Fault

_REQUIRED: Final[Mapping[str, type]] = {
    "method": str,
    "path": str,
    "description": str,
    "semantic": dict,
    "input_schema": dict,
    "output_schema": dict,
    "errors": list,
    "handler": dict,
}

_MANDATORY_ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    Composition.type: (COMPOSITION_FAILED,),
    ExternalService.type: UPSTREAM_ERRORS,
}


def _named(endpoint: Mapping[str, Any]) -> str:
    return f"{endpoint.get('method')} {endpoint.get('path')}"


async def _is_complete(subject: Subject) -> Outcome:
    published = subject.manifest.get("endpoints")
    if not isinstance(published, list):
        return failed("the manifest has no `endpoints` array")
    if not published:
        return not_applicable("the manifest has no endpoints")
    wrong = [f"entry {at} is not an object" for at, entry in enumerate(published) if not isinstance(entry, dict)]
    for endpoint in objects(published):
        wrong += [
            f"{_named(endpoint)} has no {name} of type {kind.__name__}"
            for name, kind in _REQUIRED.items()
            if not isinstance(endpoint.get(name), kind)
        ]
    return faults(wrong)


def _each(find: Callable[[Mapping[str, Any]], Iterable[str]]) -> Callable[[Subject], Any]:
    """Check every endpoint of the manifest with a function that finds its faults."""

    async def run(subject: Subject) -> Outcome:
        if not subject.endpoints:
            return not_applicable("the manifest has no endpoints")
        return faults(f"{_named(endpoint)}: {fault}" for endpoint in subject.endpoints for fault in find(endpoint))

    return run


def _name_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    method = endpoint["method"]
    if not is_method_name(method):
        yield f"{method!r} is not 3 to 32 capital letters"
    # Every catalog has the floor; of its other verbs we cannot be sure.
    fault = check_path(endpoint["path"], FLOOR_METHODS)
    if fault is not None:
        yield fault.message
    for name, count in Counter(path_parameters(endpoint)).items():
        if count > 1:
            yield f"the parameter {name} occurs twice"


async def _names_are_well_formed(subject: Subject) -> Outcome:
    legacy = subject.method_policy.get("legacy")
    opted = LEGACY_VERBS if legacy == "*" else strings(legacy)
    found = [await _each(_name_faults)(subject)]
    for endpoint in subject.endpoints:
        if endpoint["method"] in LEGACY_VERBS:
            # 3.6 forbids them in new definitions only, and nothing says which are new.
            judge = warned if endpoint["method"] in opted else failed
            found.append(judge(f"{_named(endpoint)}: {endpoint['method']} is a legacy verb"))
    return all_of(found)


def _input_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    schema = mapping(endpoint.get("input_schema"))
    if schema.get("type") != "object":
        yield "input_schema is not of type object"
    if schema.get("additionalProperties") is not False:
        yield "input_schema does not set additionalProperties to false"
    for name in path_parameters(endpoint):
        if name not in properties(endpoint):
            yield f"the path parameter {name} is not declared in input_schema"


async def _schemas_are_valid(subject: Subject) -> Outcome:
    found = [await _each(_input_faults)(subject)]
    for endpoint in subject.endpoints:
        for which in ("input_schema", "output_schema"):
            schema = mapping(endpoint.get(which))
            compiled = compile_schema(schema)
            if isinstance(compiled, Fault):
                # A schema may be valid and still beyond what our validator supports.
                judge = could_not_tell if _is_valid_schema(schema) else failed
                found.append(judge(f"{_named(endpoint)}: {which} is not a valid JSON Schema: {compiled.message}"))
    return all_of(found)


def _is_valid_schema(schema: Mapping[str, Any]) -> bool:
    try:
        return jsonschema_rs.meta.is_valid({**schema, "$schema": DIALECT}) and schema.get("$schema", DIALECT) in (
            DIALECT,
            DIALECT + "#",
        )
    except ValueError:
        return False


def _output_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    schema = mapping(endpoint.get("output_schema"))
    further = schema.get("additionalProperties")
    if schema.get("type", "object") == "object" and further is not True and not isinstance(further, dict):
        yield "output_schema does not set additionalProperties to true"


def _error_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    declared = strings(endpoint.get("errors"))
    if isinstance(endpoint.get("errors"), list) and len(declared) != len(endpoint["errors"]):
        yield "errors has entries that are not strings"
    for name in _MANDATORY_ERRORS.get(str(mapping(endpoint.get("handler")).get("type")), ()):
        if name not in declared:
            yield f"errors lacks {name}"


def _semantic_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    block = mapping(endpoint.get("semantic"))
    for name in ("intent", "actor", "outcome"):
        if not isinstance(block.get(name), str) or not block[name].strip():
            yield f"semantic.{name} is missing or empty"
    if block.get("capability") not in CAPABILITIES:
        yield f"semantic.capability is {block.get('capability')!r}"
    confidence = block.get("confidence")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        yield f"semantic.confidence is {confidence!r}"
    if block.get("impact") not in IMPACTS:
        yield f"semantic.impact is {block.get('impact')!r}"
    if not isinstance(block.get("is_idempotent"), bool):
        yield f"semantic.is_idempotent is {block.get('is_idempotent')!r}"


async def _pairs_are_unique(subject: Subject) -> Outcome:
    if not subject.endpoints:
        return not_applicable("the manifest has no endpoints")
    counts = Counter(_named(endpoint) for endpoint in subject.endpoints)
    return faults(f"{name} is published {count} times" for name, count in counts.items() if count > 1)


CHECKS: Final = (
    Check("13.1-01a", "every endpoint has its eight required fields", "6.2", _is_complete),
    Check("13.1-01b", "methods and paths are well formed", "3.2, 3.6, 5.1, 5.2", _names_are_well_formed),
    Check(
        "13.1-01c",
        "input schemas are closed objects that declare the path parameters",
        "5.3, 6.3",
        _schemas_are_valid,
    ),
    Check("13.1-01d", "output schemas are open", "6.3", _each(_output_faults), "SHOULD"),
    Check("13.1-01e", "errors has names, and those required by the handler type", "6.3, 12.3", _each(_error_faults)),
    Check("13.1-01f", "each pair of method and path is published once", "6.1", _pairs_are_unique),
    Check("13.1-09a", "every semantic block is complete and has valid values", "7.1", _each(_semantic_faults)),
)
