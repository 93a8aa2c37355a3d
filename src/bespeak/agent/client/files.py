"""Files in the input of a call: small ones inside the JSON, and forms over HTTP for the others."""

from __future__ import annotations

import mimetypes
from base64 import b64encode
from collections.abc import Mapping
from io import BufferedIOBase, RawIOBase
from pathlib import Path
from typing import Any, Final

from bespeak.errors import ConfigError

INLINE: Final = 700_000  # bytes of a file that fits into the body that servers accept by default, 1 MiB
_FILES: Final = (Path, BufferedIOBase, RawIOBase)


def encode_file(value: object) -> dict[str, str]:
    """Return the JSON form of a path or an open file: the `enc_hook` of inputs."""
    if not isinstance(value, _FILES):
        raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
    name, content, media_type = _read(value)
    if len(content) > INLINE:
        raise ConfigError(
            f"{name} has {len(content)} bytes; inside JSON at most {INLINE} are sent. Call the service over HTTP, or "
            'send the file to its /files and pass {"file": ID}.'
        )
    return {"name": name, "media_type": media_type, "data": b64encode(content).decode()}


def encode_form(given: Mapping[str, Any] | None) -> tuple[bytes, str] | None:
    """Return an input as a form and its content type; None if it has no files, or what a form cannot express."""
    files: list[tuple[str, tuple[str, bytes, str]]] = []
    texts: dict[str, str] = {}
    for name, value in (given or {}).items():
        if isinstance(value, _FILES):
            files.append((name, _read(value)))
        elif isinstance(value, list) and value and all(isinstance(one, _FILES) for one in value):
            files += [(name, _read(one)) for one in value]
        elif isinstance(value, str | bool | int | float):
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            return None
    if not files:
        return None
    import httpx  # noqa: PLC0415 - slow to load, and a client of AGTP does without

    form = httpx.Request("POST", "http://form.invalid", data=texts, files=files)
    return form.read(), form.headers["content-type"]


def _read(source: Path | BufferedIOBase | RawIOBase) -> tuple[str, bytes, str]:
    try:
        content = source.read_bytes() if isinstance(source, Path) else source.read()
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}.") from error
    named = source if isinstance(source, Path) else getattr(source, "name", None)
    name = Path(named).name if isinstance(named, str | Path) else "file"
    return name, content or b"", mimetypes.guess_type(name)[0] or "application/octet-stream"
