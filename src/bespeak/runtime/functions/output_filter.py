"""The output filter: of a result, only what the declared return type has is sent.

A result is copied by the declared type, in C: a Shadow, or the serializer of a pydantic type. What that cannot copy,
such as a mapping in place of a model, is written as JSON data and pruned by the closed schema of the type.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import count
from types import NoneType
from typing import Any, Final, TypedDict

import msgspec

from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.schema.numbers import non_finite
from bespeak.contract.schema.pruning import Pruner
from bespeak.contract.schema.subschemas import nodes
from bespeak.contract.schema.violation import Violation
from bespeak.errors import ContractError
from bespeak.runtime.functions.adapted_type import adapter_of, show_type
from bespeak.runtime.functions.foreign_types import dump_foreign
from bespeak.runtime.functions.hints import closed_output, output_schema
from bespeak.runtime.functions.shadow import Shadow, Unshadowed, declared_dump
from bespeak.text.diagnostics.brief import brief

_logger = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(enc_hook=dump_foreign).encode

_MISFITS: Final = (ValueError, TypeError, AttributeError)
"""Exceptions of msgspec and pydantic for a value of another type."""

_CLOSELY: Final = 100
_SAMPLED: Final = 64
"""Copies by type drop fields silently. The first results of an endpoint, then one in so many, are looked through."""
_MOST_NAMES: Final = 50
"""Dropped fields that the log names for one endpoint."""
_MOST_PARTS: Final = 10_000
"""Objects and lists of one result that are looked through for dropped fields."""


class Unfit(Exception):
    """A result that its declared type does not admit. It names places of the schema, never values."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__()
        self.violations = violations


class OutputFilter:
    """Selects the declared part of the results of one endpoint. It is built at the first result."""

    def __init__(self, endpoint: object, returns: Any, output: object) -> None:
        """Create the filter of an endpoint by its return annotation; `output` is the schema that it publishes."""
        self._endpoint = endpoint
        self._shown = show_type(returns)
        self._returns = _Nothing if returns in (None, NoneType) else returns
        self._output = output
        self._seen = count(1)
        self._named: set[str] = set()
        self.encode: Callable[[Any], bytes | None] = self._encode_first
        """Function that writes the declared part of a result at once; None if it takes more steps, see `select`."""

    def _encode_first(self, result: Any) -> bytes | None:
        self.encode = self._encoder()
        return self.encode(result)

    def _encoder(self) -> Callable[[Any], bytes | None]:
        """Build `encode`: a function of few steps, because it runs for every answer."""
        shadow = self._shadow
        if shadow is None or not shadow.is_exact or shadow.dumps or not self.settles:
            return lambda _: None
        convert, kind, has_numbers, seen = msgspec.convert, shadow.type, shadow.has_numbers, count(1)
        copy, quick = shadow.convert, not shadow.chooses

        def encode(result: Any) -> bytes | None:
            try:
                # Keywords double the time of the conversion, and most mappings hold no objects.
                kept = convert(result, kind) if quick and type(result) is dict else copy(result)
            except msgspec.ValidationError:
                try:
                    kept = copy(result)
                except msgspec.ValidationError:
                    return None
            body = _encode(kept)
            # An object without a single declared field may be anything. JSON writes infinity and NaN as null.
            if len(body) < 3 or (has_numbers and body.find(b"null") >= 0 and non_finite(_write(kept))):
                return None
            number = next(seen)
            if not number % _SAMPLED or number < _CLOSELY:
                self._look_through(result, _write(kept))
            return body

        return encode

    def select(self, result: Any) -> Any:
        """Return the declared part of a result as JSON data. Raises Unfit."""
        written: Any = _NOTHING
        try:
            written = self._copy(result)
            if written != {} and self._closed.is_valid(written):
                number = next(self._seen)
                if not number % _SAMPLED or number < _CLOSELY:
                    self._look_through(result, written)
                return written
        except _MISFITS:
            pass
        if written == {}:
            written = _NOTHING  # any object could be copied by its attributes if none of them is required
        violations = [Violation("", "", "type", f"a {type(result).__name__} is not a {self._shown}")]
        for write in self._ways(written):
            try:
                kept, dropped = self._pruner.prune(write(result))
                if self._closed.is_valid(kept):
                    self._name(dropped)
                    return kept
                violations = self._closed.violations(kept)
            except _MISFITS:
                continue
        raise Unfit(violations)

    @cached_property
    def settles(self) -> bool:
        """True if what the filter selects is valid by the schema of the endpoint."""
        try:
            return bool(output_schema(self._returns) == self._output)
        except ContractError:
            return False

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return closed_output(self._returns)

    @cached_property
    def _closed(self) -> Validator:
        compiled = compile_schema(self._schema)
        assert isinstance(compiled, Validator), "checked when the filter was planned"
        return compiled

    @cached_property
    def _pruner(self) -> Pruner:
        return Pruner(self._schema)

    @cached_property
    def _is_open(self) -> bool:
        """True if some model admits more fields: those of another class must not become such fields."""
        return any(node.get("properties") and node.get("additionalProperties") for _, node in nodes(self._schema))

    @cached_property
    def _shadow(self) -> Shadow | None:
        try:
            return Shadow(self._returns, strict=self._is_open)
        except (Unshadowed, TypeError, NameError):
            return None

    @cached_property
    def _copy(self) -> Callable[[Any], Any]:
        """Function that copies the declared part of a result, and may raise exceptions."""
        shadow = self._shadow
        if adapter_of(self._returns) is not None:
            return declared_dump(self._returns, strict=self._is_open)
        if shadow is None:
            return _write
        return lambda result: _write(shadow.convert(result))

    def _ways(self, written: Any) -> Iterator[Callable[[Any], Any]]:
        """Yield further ways to write a result as JSON data, which may have undeclared fields."""
        adapter = adapter_of(self._returns)
        if written is not _NOTHING:
            yield lambda _: written
        if adapter is None and not (self._is_open and self._shadow and self._shadow.dumps):
            yield _write
        if adapter is not None:
            dump = declared_dump(self._returns, strict=True)
            yield lambda result: dump(adapter.validate_python(result, from_attributes=True, by_name=True))

    def _look_through(self, result: Any, sent: Any) -> None:
        """Find the fields that a result has and that were not sent."""
        if len(self._named) < _MOST_NAMES:
            try:
                self._name(_surplus(msgspec.to_builtins(result, str_keys=True, enc_hook=_dump_all), sent))
            except Exception:  # noqa: BLE001 - of an operator's class, which was copied by its attributes
                return

    def _name(self, dropped: set[str] | frozenset[str]) -> None:
        new = sorted(dropped - self._named)[: _MOST_NAMES - len(self._named)]
        if new:
            self._named.update(new)
            _logger.warning(
                "%s: the handler returned fields that %s does not declare, which were not sent: %s",
                self._endpoint,
                self._shown,
                ", ".join(map(brief, new)),
            )


_NOTHING: Final = object()


class _Nothing(TypedDict):
    """The fields that `-> None` declares."""


def _write(result: Any) -> Any:
    """Write a result by its own class."""
    return msgspec.to_builtins(result, str_keys=True, enc_hook=dump_foreign)


def _dump_all(value: Any) -> Any:
    """Dump a pydantic model with the fields that the classes of its parts add to the declared ones."""
    if hasattr(value, "__pydantic_serializer__"):
        return value.model_dump(mode="json", by_alias=True, serialize_as_any=True)
    return dump_foreign(value)


def _surplus(own: Any, sent: Any) -> set[str]:
    """Return the names of the fields that one JSON value has and the other lacks, at every depth."""
    found: set[str] = set()
    waiting = [(own, sent)]
    for _ in range(_MOST_PARTS):
        if not waiting:
            break
        mine, theirs = waiting.pop()
        if isinstance(mine, dict) and isinstance(theirs, dict):
            found.update(name for name in mine if name not in theirs)
            waiting += [(mine[name], part) for name, part in theirs.items() if name in mine]
        elif isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
            waiting += zip(mine, theirs, strict=False)
    return found
