"""The names that operations and schemas go by in an OpenAPI document."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote

from bespeak.contract.endpoint import Endpoint

_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_PLAIN: Final = re.compile(r"(?!by$)[a-z0-9]+|\{[a-z0-9]+\}")
_NO_COMPONENT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def operation_ids(endpoints: Iterable[Endpoint]) -> dict[tuple[str, str], str]:
    """An id for each endpoint, made of its method and path alone: `BOOK /room/{room_id}` is `book_room_by_room_id`.

    Where two paths come to the same words, the one of plain segments keeps the id and the other says which it is, so
    that nothing is renamed by what is registered beside it.
    """
    alike: defaultdict[str, list[Endpoint]] = defaultdict(list)
    for endpoint in endpoints:
        alike[_id(endpoint)].append(endpoint)
    return {
        endpoint.key: name if len(group) == 1 or _is_plain(endpoint.path) else f"{name}_{_digest(endpoint)}"
        for name, group in alike.items()
        for endpoint in group
    }


def component_name(text: str) -> str:
    """A text as the key of a component, which holds letters, digits, `.`, `-` and `_` only."""
    return _NO_COMPONENT.sub("_", text).strip("_") or "schema"


def type_name(operation_id: str) -> str:
    """The id of an operation as the beginning of a type's name: `BookRoom`."""
    return "".join(word[0].upper() + word[1:] for word in operation_id.split("_") if word)


def tag_of(endpoint: Endpoint) -> str:
    """What an endpoint is grouped by: its namespace, else the first thing in its path."""
    if endpoint.namespace:
        return endpoint.namespace
    first = unquote(endpoint.path[1:].partition("/")[0])
    return first if first and not first.startswith("{") else "service"


def unique_in(taken: Mapping[str, object], name: str) -> str:
    """The name, or the name with a number behind it where it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{number}"
    return free


def _id(endpoint: Endpoint) -> str:
    words = [endpoint.method.lower()]
    for segment in endpoint.path.split("/"):
        found = [word.lower() for word in _WORD.findall(segment if "%" not in segment else unquote(segment))]
        words += ["by", *found] if segment.startswith("{") else found
    return "_".join(words)


def _is_plain(path: str) -> bool:
    return path == "/" or all(_PLAIN.fullmatch(segment) for segment in path[1:].split("/"))


def _digest(endpoint: Endpoint) -> str:
    return hashlib.sha256(str(endpoint).encode()).hexdigest()[:8]
