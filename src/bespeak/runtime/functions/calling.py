"""Calls of handler functions: JSON values are converted to the annotated Python types.

A function gets its input in one of three ways, decided once, when the endpoint is registered:

- it takes only the Context (`def handler(context)`): the input is `context.input`;
- it takes one parameter that is not a property of the input, without annotation or annotated as a dict
  (`def handler(input)`): the whole input;
- otherwise each parameter is the property of the same name.

All three may take the Context among their parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, Final, get_origin

import msgspec

from bespeak.contract.schema.violation import Violation, shorten
from bespeak.errors import BespeakError, ContractError
from bespeak.protocol.exchange.context import Context
from bespeak.runtime.functions.foreign_types import validate_foreign
from bespeak.runtime.functions.signature import MISSING, Parameter, Signature, function_name, read_signature
from bespeak.text.source.pointer import pointer

HandlerCall = Callable[[dict[str, Any], Context], Any]
"""`(validated input, context) -> output`, or a coroutine of it."""

_PLACE: Final = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class ConversionError(BespeakError):
    """An input that is valid by its schema but not for the handler's types, such as the 31st of February."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        super().__init__("; ".join(f"{violation.pointer}: {violation.message}" for violation in violations))


def plan_call(function: Callable[..., Any], input_schema: Mapping[str, Any]) -> HandlerCall:
    """Plan how to call a function with inputs of a schema. Raises ContractError if the two do not fit."""
    properties: Mapping[str, Any] = input_schema.get("properties", {})
    try:
        signature = read_signature(function, properties)
        if _takes_whole_input(signature, properties):
            return _call_with_input(function, signature)
        if not signature.parameters and signature.context is not None and not signature.takes_rest:
            return _call_with_context(function, signature.context)
        return _call_by_name(function, _fitted(signature, properties, input_schema.get("required", ())))
    except ContractError as error:
        raise ContractError(f"{function_name(function)}(): {error}") from None


def _takes_whole_input(signature: Signature, properties: Mapping[str, Any]) -> bool:
    if len(signature.parameters) != 1 or signature.takes_rest:
        return False
    only = signature.parameters[0]
    kind = get_origin(only.annotation) or only.annotation
    return only.name not in properties and kind in (MISSING, Any, dict, Mapping, MutableMapping)


def _call_with_context(function: Callable[..., Any], context: Parameter) -> HandlerCall:
    if context.keyword_only:
        return lambda _, context_: function(**{context.name: context_})
    return lambda _, context_: function(context_)


def _call_with_input(function: Callable[..., Any], signature: Signature) -> HandlerCall:
    name = signature.parameters[0].name
    if signature.context is not None:
        context_name = signature.context.name
        return lambda values, context: function(**{name: values, context_name: context})
    if signature.parameters[0].keyword_only:
        return lambda values, _: function(**{name: values})
    return lambda values, _: function(values)


def _fitted(signature: Signature, properties: Mapping[str, Any], required: Any) -> Signature:
    """Return the signature with the schema's defaults, after checking that every valid input can be passed."""
    known = {parameter.name for parameter in signature.parameters}
    lost = [name for name in properties if name not in known]
    if lost and not signature.takes_rest:
        raise ContractError(f"the input has {_listed(lost)}, which the function does not take")
    unknown = [item.name for item in signature.parameters if item.default is MISSING and item.name not in properties]
    if unknown:
        raise ContractError(f"the function needs {_listed(unknown)}, which the input does not have")
    defaults: dict[str, Any] = {}
    for parameter in signature.parameters:
        schema = properties.get(parameter.name, True)
        default = schema.get("default", MISSING) if isinstance(schema, Mapping) else MISSING
        if parameter.default is not MISSING or parameter.name in required:
            continue
        if default is MISSING:
            raise ContractError(f"the input may lack {parameter.name!r}, but the parameter has no default")
        defaults[parameter.name] = _converted_default(parameter, default)
    if not defaults:
        return signature
    parameters = (replace(item, default=defaults.get(item.name, item.default)) for item in signature.parameters)
    return replace(signature, parameters=tuple(parameters))


def _converted_default(parameter: Parameter, default: Any) -> Any:
    annotation = Any if parameter.annotation is MISSING else parameter.annotation
    try:
        return msgspec.convert(default, annotation, dec_hook=validate_foreign)
    except (msgspec.ValidationError, TypeError, NotImplementedError) as error:
        raise ContractError(
            f"the schema's default of {parameter.name!r} does not fit its annotation: {error}"
        ) from None


def _call_by_name(function: Callable[..., Any], signature: Signature) -> HandlerCall:
    convert = _converter(signature)
    context = signature.context
    passed = signature.parameters if context is None else (*signature.parameters, context)
    if signature.takes_rest or any(parameter.keyword_only for parameter in passed):
        return _call_with_keywords(function, convert, signature)
    # Positions are faster than keywords, and this is the hot path: a frame less is worth a line more.
    plain, astuple, struct = msgspec.convert, msgspec.structs.astuple, signature.struct
    if context is None and not signature.has_foreign_types:

        def call_plainly(values: dict[str, Any], _: Context) -> Any:
            try:
                arguments = plain(values, struct)
            except msgspec.ValidationError:
                arguments = convert(values)
            return function(*astuple(arguments))

        return call_plainly
    if context is None:
        return lambda values, _: function(*astuple(convert(values)))
    at = signature.context_at

    def call(values: dict[str, Any], context: Context) -> Any:
        arguments = astuple(convert(values))
        return function(*arguments[:at], context, *arguments[at:])

    return call


def _call_with_keywords(
    function: Callable[..., Any], convert: Callable[[dict[str, Any]], msgspec.Struct], signature: Signature
) -> HandlerCall:
    known = frozenset(parameter.name for parameter in signature.parameters)
    context_name = signature.context.name if signature.context else None

    def call(values: dict[str, Any], context: Context) -> Any:
        arguments = msgspec.structs.asdict(convert(values))
        if context_name is not None:
            arguments[context_name] = context
        arguments.update((name, value) for name, value in values.items() if name not in known)
        return function(**arguments)

    return call


def _converter(signature: Signature) -> Callable[[dict[str, Any]], msgspec.Struct]:
    """Build the conversion from the input to the parameters' struct; it raises ConversionError."""
    plain = msgspec.convert
    signature.check_defaults()
    hook = validate_foreign if signature.has_foreign_types else None

    def convert(values: dict[str, Any]) -> msgspec.Struct:
        try:
            return plain(values, signature.struct) if hook is None else plain(values, signature.struct, dec_hook=hook)
        except msgspec.ValidationError:
            pass
        try:
            # 1.0 is an integer in JSON Schema, but not for msgspec.
            return plain(_whole(values), signature.struct, dec_hook=validate_foreign)
        except msgspec.ValidationError as error:
            raise ConversionError(_violations(error)) from None

    return convert


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _violations(error: msgspec.ValidationError) -> list[Violation]:
    found = _PLACE.fullmatch(str(error))
    message, place = (found[1], found[2]) if found else (str(error), "")
    at = [name or int(index) for name, index in _STEP.findall(place.partition("[...]")[0])]
    report = getattr(error.__cause__, "errors", None)
    if callable(report):
        return [
            Violation(pointer((*at, *entry["loc"])), "", str(entry["type"]), shorten(str(entry["msg"])))
            for entry in report()
        ]
    return [Violation(pointer(at), "", "conversion", shorten(message))]


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:10])
