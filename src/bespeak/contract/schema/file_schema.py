"""Files in a contract: how a schema says that a value is a file, what it may be, and where a value has files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.schema.subschemas import inline, nodes
from bespeak.errors import ContractError
from bespeak.text.source.pointer import child

MAX_BYTES: Final = 10_000_000  # limit of a file that declares none
UNKNOWN_TYPE: Final = "application/octet-stream"
MAX_NAME: Final = 255
MOST_FILES: Final = 20  # files for one list in a form
_SIZE, _TYPES = "x-max-bytes", "x-media-types"
_PATTERN: Final = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


class FileField(NamedTuple):
    """What a contract admits as a file."""

    max_bytes: int = MAX_BYTES
    media_types: tuple[str, ...] = ()  # such as `image/*`; empty for any
    many: int = 0  # most files in a form for a list of files; 0 if it is one file

    def admits(self, media_type: str) -> bool:
        """Return True for a media type that is declared, or if none is declared. The content is not examined."""
        kind = media_type.partition("/")[0]
        return not self.media_types or media_type in self.media_types or f"{kind}/*" in self.media_types


def FileLimits(*, max_bytes: int = MAX_BYTES, media_types: Sequence[str] = ()) -> msgspec.Meta:  # noqa: N802 - reads as a type in `Annotated`
    """Limit an upload: `Annotated[Upload, FileLimits(max_bytes=5_000_000, media_types=["image/*"])]`.

    The media type is that which the caller declares; the content is not examined.
    """
    if max_bytes < 1:
        raise ContractError(f"max_bytes of FileLimits must be at least 1; got {max_bytes}")
    for one in media_types:
        if _PATTERN.fullmatch(one) is None:
            raise ContractError(f"{one!r} in FileLimits is not a media type; write it like application/pdf or image/*")
    return msgspec.Meta(extra_json_schema=_limits(max_bytes, media_types))


def _limits(max_bytes: int, media_types: Sequence[str]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "maxLength": -(-max_bytes // 3) * 4,
        "description": f"The content in base64, at most {max_bytes} bytes of it. Send it in place of `file`.",
    }
    found: dict[str, Any] = {_SIZE: max_bytes, "properties": {"data": data}}
    if media_types:
        found[_TYPES] = list(media_types)
        found["properties"]["media_type"] = {"description": f"The media type: {' or '.join(media_types)}."}
        if len(media_types) == 1 and not media_types[0].endswith("*"):
            data["contentMediaType"] = media_types[0]
    return found


def upload_schema(max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the JSON form of an upload of any type."""
    limits = _limits(max_bytes, ())
    return {
        "type": "object",
        "format": "file",
        _SIZE: limits[_SIZE],
        "properties": {
            "file": {"type": "string", "maxLength": 128, "description": "The id of a file uploaded with POST /files."},
            "data": {"type": "string", "contentEncoding": "base64", **limits["properties"]["data"]},
            "name": {"type": "string", "maxLength": MAX_NAME, "description": "The file name, without folders."},
            "media_type": {"type": "string", "maxLength": 127, "description": "The media type, such as image/png."},
        },
        "oneOf": [{"required": ["file"]}, {"required": ["data"]}],
        "additionalProperties": False,
    }


def download_schema() -> dict[str, Any]:
    """Return the JSON form of a download: a small file has `data`, another one has `file`."""
    return {
        "type": "object",
        "format": "file",
        "properties": {
            "name": {"type": "string"},
            "media_type": {"type": "string"},
            "size": {"type": "integer", "minimum": 0},
            "data": {"type": "string", "contentEncoding": "base64", "description": "The content of a small file."},
            "file": {"type": "string", "description": "The id of a larger one; read it with GET /files/ID."},
        },
        "required": ["name", "media_type", "size"],
    }


def is_file(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("format") == "file" and schema.get("type") == "object"


def file_fields(schema: Mapping[str, Any]) -> dict[str, FileField]:
    """Return the properties of an input that are files or lists of files; a form can fill these."""
    found: dict[str, FileField] = {}
    properties = schema.get("properties")
    for name, declared in properties.items() if isinstance(properties, Mapping) else ():
        for option in _options(declared, schema):
            item = inline(option.get("items"), schema) if option.get("type") == "array" else option
            if is_file(item):
                most = 0 if item is option else option.get("maxItems", MOST_FILES)
                found[name] = _field(item)._replace(many=min(most, MOST_FILES))
    return found


def _field(schema: Any) -> FileField:
    size, types = schema.get(_SIZE), schema.get(_TYPES)
    return FileField(
        size if isinstance(size, int) and size > 0 else MAX_BYTES,
        tuple(one for one in types if isinstance(one, str)) if isinstance(types, list | tuple) else (),
    )


def has_files(schema: Mapping[str, Any]) -> bool:
    """Return True if a value of the schema may hold a file at any depth."""
    return any(is_file(node) for _, node in nodes(dict(schema)))


def find_files(
    value: Any, schema: Any, root: Mapping[str, Any], at: str = "", depth: int = 0
) -> Iterator[tuple[Any, str | int, str, FileField]]:
    """Yield each file in a valid value: what contains it, its name or index there, its pointer and its limits."""
    if depth > 32 or not isinstance(value, dict | list):
        return
    for option in _options(schema, root):
        parts: list[tuple[Any, Any]] = [(index, option.get("items")) for index in range(len(value))]
        if isinstance(value, dict):
            parts = [(name, declared) for name, declared in option.get("properties", {}).items() if name in value]
        for key, declared in parts:
            files = [one for one in _options(declared, root) if is_file(one)]
            if files and isinstance(value[key], dict):
                yield value, key, child(at, key), _field(files[0])
            elif not files:
                yield from find_files(value[key], declared, root, child(at, key), depth + 1)


def _options(schema: object, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a schema, itself if it has none."""
    found = inline(schema, root)
    if not isinstance(found, Mapping):
        return []
    several = () if is_file(found) else found.get("anyOf") or found.get("oneOf") or ()
    options = [inline(one, root) for one in several]
    return [one for one in options if isinstance(one, Mapping)] or [found]
