"""Texts of a contract can be published as UTF-8. Readers check files; this checks contracts written in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.source.pointer import child
from bespeak.text.source.span import Location

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ADVICE: Final = "Remove it; text from the command line or the environment may be in another encoding than UTF-8."


def check_endpoint(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Check the texts of an endpoint beside its schemas, which must be JSON in any case."""
    for at, text in _unencodable(replace(endpoint, input_schema={}, output_schema={}), ""):
        yield WRONG_VALUE.at(endpoint, at, f"{brief(text)} contains half a surrogate pair", _ADVICE)


def check_service(service: Service) -> Iterator[Diagnostic]:
    """Check the texts of a service beside its endpoints."""
    for at, text in _unencodable(replace(service, endpoints=()), ""):
        yield WRONG_VALUE.inside(at, f"{brief(text)} contains half a surrogate pair", _ADVICE)


def _unencodable(value: Any, at: str) -> Iterator[tuple[str, str]]:
    """Find texts that UTF-8 cannot encode, with their pointers. Names of files may be such texts."""
    if isinstance(value, str):
        if _SURROGATE.search(value):
            yield at, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _unencodable(key, at)
            yield from _unencodable(inner, child(at, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _unencodable(inner, child(at, index))
    elif is_dataclass(value) and not isinstance(value, Location | type):
        for field in fields(value):
            yield from _unencodable(getattr(value, field.name), child(at, field.name))
