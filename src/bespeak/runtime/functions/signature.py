"""The parameters of a handler function, and calls with JSON values converted to the annotated Python types.

A function gets its input in one of four ways, decided once, when the endpoint is registered:

- it takes only the Context (`def handler(context)`): the input is `context.input`;
- it takes one parameter that is not a property of the input, without annotation or annotated as a dict
  (`def handler(input)`): the whole input;
- one parameter is marked as the whole input (`order: Annotated[Order, Body()]`), and others may stand beside it;
- otherwise each parameter is the property of the same name.

All may take the Context among their parameters, and parameters that providers fill (`Needs`).
"""

from __future__ import annotations

import inspect
import re
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from types import FunctionType
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from bespeak.contract.handler import Body, Needs
from bespeak.contract.schema.validation import Violation, shorten
from bespeak.errors import BespeakError, ContractError
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.functions.annotations import adapt, has_foreign, show_type, validate_foreign
from bespeak.text.source.pointer import pointer

MISSING: Final = inspect.Parameter.empty

_KEYWORD_ONLY: Final = inspect.Parameter.KEYWORD_ONLY
_VAR_POSITIONAL: Final = inspect.Parameter.VAR_POSITIONAL
_VAR_KEYWORD: Final = inspect.Parameter.VAR_KEYWORD
_ITERATORS: Final = (abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator, Iterator, Iterable, abc.Generator)
CONTEXT_NAMES: Final = frozenset({"context", "ctx"})  # names of an unannotated parameter that receives the Context


@dataclass(frozen=True, slots=True)
class HandlerParameter:
    name: str
    annotation: Any  # the resolved annotation, or MISSING
    default: Any  # the default, or MISSING
    keyword_only: bool


@dataclass(frozen=True, eq=False)
class Signature:
    """The parameters of a handler, with the Context separate from those of the input."""

    name: str  # name of the handler
    parameters: tuple[HandlerParameter, ...]
    context: HandlerParameter | None
    context_at: int  # number of positional parameters before the Context
    takes_rest: bool  # True if `**rest` receives all further properties
    returns: Any  # the resolved return annotation, or MISSING
    needs: Mapping[str, Needs]  # parameters that providers fill
    yields: bool = False  # True for a generator, whose calls are streams of items

    @property
    def item(self) -> Any:
        """Annotation of the items of a function that yields. Raises ContractError if it is not declared."""
        items = get_args(self.returns)
        if get_origin(self.returns) in _ITERATORS and items and items[0] not in (Any, object):
            return _adapted(items[0], "the type of the items")
        shown = "has no return annotation" if self.returns is MISSING else f"returns {show_type(self.returns)}"
        raise ContractError(
            f"the function yields its results and {shown}; write -> AsyncIterator[Item], or Iterator[Item] without "
            "async, with a type for Item"
        )

    @cached_property
    def struct(self) -> type[msgspec.Struct]:
        """Struct that the input is converted to: a field per parameter, in order. Built on first use."""
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for parameter in self.parameters:
            annotation = Any if parameter.annotation is MISSING else parameter.annotation
            if parameter.default is MISSING:
                fields.append((parameter.name, annotation))
            else:
                fields.append((parameter.name, annotation, parameter.default))
        try:
            return msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=False)
        except TypeError as error:
            raise ContractError(f"a parameter of {self.name}() cannot be read from JSON: {error}") from None

    def check_defaults(self) -> None:
        """Refuse a default that a struct cannot have, such as a list shared by all calls."""
        if any(parameter.default is not MISSING for parameter in self.parameters):
            _ = self.struct

    @cached_property
    def body(self) -> HandlerParameter | None:
        """The parameter that is the whole input. Raises ContractError if there are two, or if it has a default."""
        marked = [item for item in self.parameters if _is_body(item.annotation)]
        if len(marked) > 1:
            raise ContractError(f"{_listed([one.name for one in marked])} are marked as the whole input: mark one")
        if marked and (marked[0].default is not MISSING or self.takes_rest):
            raise ContractError(f"{marked[0].name!r} is the whole input: remove its default, and **rest")
        return marked[0] if marked else None

    @property
    def annotations(self) -> list[Any]:
        return [parameter.annotation for parameter in self.parameters if parameter.annotation is not MISSING]

    @cached_property
    def has_foreign_types(self) -> bool:
        """True if some type validates itself. Raises ContractError for a type that cannot be read from JSON."""
        try:
            return has_foreign(self.annotations)
        except ContractError:
            self.blame(lambda annotation: has_foreign([annotation]))
            raise

    def blame(self, check: Callable[[Any], object]) -> None:
        """Raise the ContractError of a check again for the first parameter that fails it, with its name."""
        for parameter in self.parameters:
            try:
                check(parameter.annotation)
            except ContractError as error:
                shown = show_type(parameter.annotation)
                message = f"the parameter {parameter.name!r} is annotated with {shown}, which {error}"
                raise ContractError(message) from None


def _is_body(annotation: Any) -> bool:
    return any(extra is Body or isinstance(extra, Body) for extra in getattr(annotation, "__metadata__", ()))


def read_signature(function: Callable[..., Any], properties: Iterable[str] = ()) -> Signature:
    """Read a function. An unannotated `context` is the Context, unless the input has a property of that name."""
    read = _read_once if isinstance(function, FunctionType) else _read  # other callables need not be hashable
    return read(function, CONTEXT_NAMES.difference(properties))


def _read(function: Callable[..., Any], context_names: frozenset[str]) -> Signature:
    # First, because it detects a function that wraps itself, on which get_type_hints would not end.
    listed = list_parameters(function)
    hints = read_hints(function)
    parameters: list[HandlerParameter] = []
    context: HandlerParameter | None = None
    context_at = 0
    takes_rest = False
    needs: dict[str, Needs] = {}
    for name, kind, default in listed:
        if kind is _VAR_KEYWORD:
            takes_rest = True
            continue
        if kind is _VAR_POSITIONAL:
            raise ContractError(f"*{name} cannot be filled: an input has names, not positions")
        annotation = hints.get(name, MISSING)
        if (need := find_need(annotation)) is not None:
            needs[name] = need
            continue
        if isinstance(default, Needs):
            provider = function_name(default.provider)
            raise ContractError(f"Needs is not a default: write {name}: Annotated[..., Needs({provider})]")
        annotation = _adapted(annotation, f"the parameter {name!r}")
        parameter = HandlerParameter(name, annotation, default, kind is _KEYWORD_ONLY)
        # What an extension gives its functions in place of a Context says so itself.
        asks = annotation in (Context, Context | None) or getattr(annotation, "is_context", None) is True
        is_context = name in context_names if annotation is MISSING else asks
        if not is_context:
            parameters.append(parameter)
        elif context is not None:
            raise ContractError(f"{context.name!r} and {parameter.name!r} both ask for the Context: one is enough")
        else:
            context, context_at = parameter, len(parameters)
    yields = _is_generator(function)
    returns = hints.get("return", MISSING)
    returns = returns if yields else _adapted(returns, "the return annotation")
    name = function_name(function)
    return Signature(name, tuple(parameters), context, context_at, takes_rest, returns, needs, yields)


def _is_generator(function: Callable[..., Any]) -> bool:
    while isinstance(function, partial):
        function = function.func
    plain = inspect.unwrap(function if inspect.isroutine(function) else type(function).__call__)
    return inspect.isasyncgenfunction(plain) or inspect.isgeneratorfunction(plain)


def find_need(annotation: Any) -> Needs | None:
    """Return the `Needs` of a parameter's annotation, if it has one."""
    return next((one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, Needs)), None)


_read_once: Final = lru_cache(maxsize=1 << 14)(_read)
"""Cached `_read`: a function is read when it is declared and when it is bound, and may serve many endpoints."""


def list_parameters(function: Callable[..., Any]) -> Iterable[tuple[str, object, Any]]:
    """List name, kind and default of each parameter. For a plain function this avoids the slow `inspect.signature`."""
    if not isinstance(function, FunctionType) or function.__dict__:
        try:
            listed = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise ContractError(f"its parameters cannot be read: {error}") from None
        return [(raw.name, raw.kind, raw.default) for raw in listed]
    code, defaults, named = function.__code__, function.__defaults__ or (), function.__kwdefaults__ or {}
    names = iter(code.co_varnames)
    required = code.co_argcount - len(defaults)
    found: list[tuple[str, object, Any]] = [(name, None, MISSING) for name in islice(names, required)]
    found += [(name, None, default) for default, name in zip(defaults, names, strict=False)]
    found += [(name, _KEYWORD_ONLY, named.get(name, MISSING)) for name in islice(names, code.co_kwonlyargcount)]
    for flag, kind in ((inspect.CO_VARARGS, _VAR_POSITIONAL), (inspect.CO_VARKEYWORDS, _VAR_KEYWORD)):
        if code.co_flags & flag:
            found.append((next(names), kind, MISSING))
    return found


def _adapted(annotation: Any, what: str) -> Any:
    try:
        return adapt(annotation)
    except ContractError as error:
        raise ContractError(f"{what} cannot be used: {error}") from None


def read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolve the annotations. They may be strings, so their names must exist at run time."""
    target: Any = function
    while isinstance(target, partial):
        target = target.func
    if not inspect.isroutine(target):
        # mypy: a subclass may have another `__init__`, but this class itself is called
        target = target.__init__ if isinstance(target, type) else type(target).__call__  # type: ignore[misc]
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise ContractError(
            f"an annotation cannot be resolved: {error}. "
            "Define or import the type at module level, not only for the type checker."
        ) from None
    except (TypeError, ValueError, AttributeError, SyntaxError) as error:
        raise ContractError(f"an annotation is not a type: {error}") from None


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or the class name of a callable object."""
    return getattr(function, "__name__", type(function).__name__)


def dotted_name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function_name(function))}"


HandlerCall = Callable[[dict[str, Any], Context], Any]  # `(validated input, context) -> output`, or a coroutine of it

_PLACE: Final = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class ConversionError(BespeakError):
    """An input that is valid by its schema but not for the handler's types, such as the 31st of February."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = violations
        super().__init__("; ".join(f"{violation.pointer}: {violation.message}" for violation in violations))


def plan_call(function: Callable[..., Any], input_schema: Mapping[str, Any]) -> HandlerCall:
    """Plan how to call a function with inputs of a schema. Raises ContractError if the two do not fit.

    If providers fill some of its parameters, the call returns the other arguments by name instead.
    """
    properties: Mapping[str, Any] = input_schema.get("properties", {})
    required = input_schema.get("required", ())
    try:
        signature = read_signature(function, properties)
        called = function
        if signature.needs:
            called, signature = dict, _by_keyword(signature, properties)
        if _takes_whole_input(signature, properties):
            return _call_with_input(called, signature)
        if not signature.parameters and signature.context is not None and not signature.takes_rest:
            name = signature.context.name
            if signature.context.keyword_only:
                return lambda _, context: called(**{name: context})
            return lambda _, context: called(context)
        return _plan_fields(called, signature, properties, required)
    except ContractError as error:
        raise ContractError(f"{function_name(function)}(): {error}") from None


def _by_keyword(signature: Signature, properties: Mapping[str, Any]) -> Signature:
    """Return the signature of a handler whose arguments are joined by name with those that providers make."""
    taken = [name for name in signature.needs if name in properties]
    if taken:
        raise ContractError(f"the input has {_listed(taken)}, which a provider fills; rename the parameter")
    named = tuple(replace(parameter, keyword_only=True) for parameter in signature.parameters)
    context = signature.context and replace(signature.context, keyword_only=True)
    return replace(signature, parameters=named, context=context)


def _plan_fields(
    function: Callable[..., Any], signature: Signature, properties: Mapping[str, Any], required: Any
) -> HandlerCall:
    """Plan a call with a parameter for each field; a `Body` among them gets the fields that no other one takes."""
    if (body := signature.body) is None:
        return _call_by_name(function, _fitted(signature, properties, required))
    others = {item.name for item in signature.parameters} - {body.name}
    fitted = {name: schema for name, schema in properties.items() if name in others} | {body.name: {}}
    call = _call_by_name(function, _fitted(signature, fitted, (*required, body.name)))
    return _call_with_body(call, body.name, others)


def _call_with_body(call: HandlerCall, name: str, others: set[str]) -> HandlerCall:
    """Give a call the fields of the whole input in one argument, without those of its other parameters."""

    def call_with_body(values: dict[str, Any], context: Context) -> Any:
        given = {key: values[key] for key in others if key in values}
        given[name] = {key: value for key, value in values.items() if key not in others}
        try:
            return call(given, context)
        except ConversionError as error:
            # The caller knows the fields, not the parameter that holds them.
            raise ConversionError([_move_up(one, pointer((name,))) for one in error.violations]) from None

    return call_with_body


def _move_up(violation: Violation, start: str) -> Violation:
    is_below = f"{violation.pointer}/".startswith(f"{start}/")
    return msgspec.structs.replace(violation, pointer=violation.pointer[len(start) :]) if is_below else violation


def _takes_whole_input(signature: Signature, properties: Mapping[str, Any]) -> bool:
    if len(signature.parameters) != 1 or signature.takes_rest:
        return False
    only = signature.parameters[0]
    kind = get_origin(only.annotation) or only.annotation
    return only.name not in properties and kind in (MISSING, Any, dict, Mapping, MutableMapping)


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


def _converted_default(parameter: HandlerParameter, default: Any) -> Any:
    annotation = Any if parameter.annotation is MISSING else parameter.annotation
    try:
        return msgspec.convert(default, annotation, dec_hook=validate_foreign)
    except (msgspec.ValidationError, TypeError, NotImplementedError) as error:
        message = f"the schema's default of {parameter.name!r} does not fit its annotation: {error}"
        raise ContractError(message) from None


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
    context_name = signature.context.name if signature.context else None
    # `**rest` must not replace what the caller has no say in.
    known = frozenset((*(parameter.name for parameter in signature.parameters), context_name, *signature.needs))

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
            raise ConversionError(_all_violations(signature, values) or _violations(error)) from None

    return convert


def _all_violations(signature: Signature, values: dict[str, Any]) -> list[Violation]:
    """Convert each parameter on its own: msgspec stops at the first that cannot be converted."""
    found: list[Violation] = []
    for parameter in signature.parameters:
        if parameter.name in values and parameter.annotation is not MISSING:
            try:
                msgspec.convert(_whole(values[parameter.name]), parameter.annotation, dec_hook=validate_foreign)
            except msgspec.ValidationError as error:
                found += _violations(error, parameter.name)
    return found


def _whole(value: Any) -> Any:
    if type(value) is dict:  # a file stays what it is
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _violations(error: msgspec.ValidationError, *start: str) -> list[Violation]:
    found = _PLACE.fullmatch(str(error))
    message, place = (found[1], found[2]) if found else (str(error), "")
    at: list[str | int] = [*start]
    at += [name or int(index) for name, index in _STEP.findall(place.partition("[...]")[0])]
    report = getattr(error.__cause__, "errors", None)
    if callable(report):
        return [
            Violation(pointer((*at, *entry["loc"])), "", str(entry["type"]), shorten(str(entry["msg"])))
            for entry in report()
        ]
    return [Violation(pointer(at), "", "conversion", shorten(message))]


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:10])
