"""The extension: files in the input of calls are found or decoded, and downloads are sent as each face can."""

from __future__ import annotations

import asyncio
import binascii
import inspect
from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.file_schema import FileField, find_files, has_files
from bespeak.contract.schema.validation import Violation, refuse_input
from bespeak.extensions.files.settings import FileSettings
from bespeak.extensions.files.store import FileStore, new_reference
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY
from bespeak.protocol.exchange.messages import Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import Anchor, Extension, Gate, Opening
from bespeak.runtime.functions.annotations import dump_foreign
from bespeak.runtime.functions.files import CallFiles, Download, FileValue, Upload

PART: Final = "files"


def files_gate(call: RoutedCall) -> Refused | None:
    """Put files in the place of references and of encoded content: what follows sees digests only."""
    store: FileStore = call.server.part(PART)
    endpoint = call.route.endpoint
    if not store.concerns(endpoint):
        return None
    carried = call.request.files
    if carried is None:
        carried = CallFiles()
        call.request = msgspec.structs.replace(call.request, files=carried)
    carried.owner, carried.store = call.agent_id or "", store
    violations = []
    for around, key, at, field in find_files(call.input, endpoint.input_schema, endpoint.input_schema):
        if isinstance(around[key], FileValue):
            continue
        found = _read(around[key], at, carried)
        if isinstance(found, Upload):
            found = _check(found, at, field) or found
        if isinstance(found, Upload):
            around[key] = FileValue(found)
        else:
            violations.append(found)
    return refuse_input(call.method, call.path, violations) if violations else None


def _read(given: dict[str, Any], at: str, carried: CallFiles) -> Upload | Violation:
    """Return the file that a value at a pointer names or holds, or what is wrong with the value."""
    reference = given.get("file")
    if reference is not None:
        assert carried.store is not None
        stored = carried.uploads.get(tuple(given.values())) or carried.store.find(carried.owner, reference)
        message = "this agent has no file with this id, or it has expired"
        return stored or Violation(f"{at}/file", "", "unknown-file", message)
    try:
        content = b64decode(given["data"], validate=True)
    except (binascii.Error, ValueError):
        return Violation(f"{at}/data", "", "contentEncoding", "the content is not valid base64")
    return Upload(content, name=given.get("name", "file"), media_type=given.get("media_type", ""))


def _check(upload: Upload, at: str, field: FileField) -> Violation | None:
    if upload.size > field.max_bytes:
        message = f"the file has {upload.size} bytes; at most {field.max_bytes} are accepted"
        return Violation(f"{at}/data", "", "x-max-bytes", message)
    if not field.admits(upload.media_type):
        message = f"the file is declared as {upload.media_type}; accepted: {', '.join(field.media_types)}"
        return Violation(f"{at}/media_type", "", "x-media-types", message)
    return None


def wrap_handler(endpoint: Endpoint, call: Callable[..., Any]) -> Callable[..., Any]:
    """Let the downloads that a handler returns be sent; leave other handlers as they are."""
    if not has_files(endpoint.output_schema):
        return call

    async def deliver(values: dict[str, Any], context: Context) -> Any:
        result = call(values, context)
        if inspect.isawaitable(result):
            result = await result
        carried = context.request.files
        return result if carried is None or isinstance(result, Refused) else await _deliver(result, context, carried)

    return deliver


async def _deliver(result: Any, context: Context, carried: CallFiles) -> Any:
    # An answer that is kept under a key must have the file, or tell where it is.
    keyed = IDEMPOTENCY_KEY in context.request.headers or "idempotency_key" in context.input
    if isinstance(result, Download) and carried.raw and not keyed:
        carried.download = result
        return result.describe()
    store = carried.store
    assert isinstance(store, FileStore)
    large: dict[str, Download] = {}

    def dump(value: Any) -> Any:
        if isinstance(value, Download) and value.size > store.settings.inline:
            large[reference := new_reference()] = value
            return value.describe(file=reference)
        return dump_foreign(value)

    written = msgspec.to_builtins(result, str_keys=True, enc_hook=dump)
    for reference, download in large.items():
        kept = await asyncio.to_thread(store.keep, carried.owner, download, reference=reference)
        if isinstance(kept, Refused):
            return kept
    return written


def _open(opening: Opening) -> None:
    settings = opening.document.extension_table("files", FileSettings) or FileSettings()
    store = FileStore(settings, opening.server.routes.service.identity.server_id)
    opening.provide(PART, store)
    opening.on_start(store.start)


files: Final = Extension(name="files", gates=(Gate(files_gate, Anchor.READ),), wraps=wrap_handler, open=_open)
