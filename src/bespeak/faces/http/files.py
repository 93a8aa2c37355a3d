"""Files over HTTP: forms to endpoints, downloads as bytes, and the files that agents store at `/files`."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from bespeak.contract.schema.file_schema import FileField, file_fields, is_file
from bespeak.faces.http.asgi import FilePart, Headers, HttpResponse, Receive, Scope
from bespeak.faces.http.dispatched import PRINCIPAL, DispatchBackend
from bespeak.faces.http.face import READ_FORM, HttpFace, connection_of, refusal
from bespeak.faces.http.site import NO_STORE
from bespeak.faces.http.translation import RequestTarget, read_body, to_request, without_prefix
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import ACCEPT, AGENT_SIGNATURE, MEDIA_JSON
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall, sees
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.functions.files import CallFiles, Download, FileKeeper, FileValue, Spool, Upload
from bespeak.runtime.gates.authority import identity_gate, scope_gate
from bespeak.runtime.route import Route

if TYPE_CHECKING:
    from bespeak.faces.http.reader import HttpHead

# The parser itself admits eight headers of 4 KiB in a part. It logs each malformed form, which anybody can send.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

FORM: Final = "multipart/form-data"
MAX_PARTS: Final = 100
MAX_TEXT: Final = 65536  # bytes of all parts that are not files
_AROUND: Final = 1_000_000  # bytes of headers, boundaries and what is around all parts


class _RefusedForm(Exception):
    """Raised out of the parser to end reading."""

    def __init__(self, fault: Malformed) -> None:
        super().__init__(fault.message)
        self.fault = fault


class FormReader:
    """Reads the bytes of a form into files and an input in JSON. It only writes to its spools; `close` removes them."""

    def __init__(self, content_type: str, fields: Mapping[str, FileField], folder: Path) -> None:
        """Read a form whose files fill `fields`. Raises ValueError if the content type names no valid boundary."""
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if not boundary or len(boundary) > 70:
            raise ValueError("a form needs a boundary of 1 to 70 characters in its Content-Type")
        self._fields = fields
        self._folder = folder
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._take_name,
                "on_header_value": self._take_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_head,
                "on_part_data": self._take_data,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )
        files = sum(field.max_bytes * (field.many or 1) for field in fields.values())
        self.max_bytes = files + MAX_TEXT + _AROUND  # maximum size of the whole form
        self.size = 0
        self.texts: list[tuple[str, str]] = []  # parts that are not files, in order
        self.files = CallFiles()
        self._values: dict[str, Any] = {}
        self._spools: list[Spool] = []
        self._hash = hashlib.sha256()
        self._fault: Malformed | None = None
        self._ended = False
        self._parts = self._text_size = 0
        self._name = b""
        self._value = b""
        self._head: dict[bytes, bytes] = {}
        self._field = ""
        self._text = bytearray()
        self._spool: Spool | None = None
        self._described = ("", "")  # name and media type of the file that is being read

    def check_size(self, size: int) -> Malformed | None:
        """Refuse a form of more bytes than its fields may have together."""
        return _too_large(f"The form is larger than {self.max_bytes} bytes.") if size > self.max_bytes else None

    def feed(self, data: bytes) -> Malformed | None:
        """Read more of the form; return the fault that ends reading."""
        if self._fault is None:
            self.size += len(data)
            self._hash.update(data)
            try:
                self._fault = self.check_size(self.size)
                if self._fault is None:
                    self._parser.write(data)
            except _RefusedForm as refused:
                self._fault = refused.fault
            except FormParserError as error:
                self._fault = invalid_form(f"The form is not valid: {error}.")
            except OSError as error:
                message = f"The server cannot store the file: {error.strerror}."
                self._fault = Malformed(status.UNAVAILABLE, "no-room-for-files", message)
            if self._fault is not None:
                self.close()
        return self._fault

    def finish(self) -> Malformed | None:
        """End the form; return the fault if it is not complete."""
        if self._fault is None and not self._ended:
            self._fault = invalid_form("The form ends before its last boundary.")
            self.close()
        self.files.digest = self._hash.hexdigest()
        return self._fault

    def input(self, coercions: Mapping[str, Callable[[str], Any]]) -> bytes:
        """Return the form as JSON input: texts as a query would give them, and digests of files, for keys to cover."""
        texts = {name: coercions.get(name, str)(text) for name, text in self.texts}
        return msgspec.json.encode(texts | self._values)

    def close(self) -> None:
        for spool in self._spools:
            spool.close()
        self._spools.clear()

    # Callbacks of the parser.

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _RefusedForm(_too_large(f"The form has more than {MAX_PARTS} parts."))
        self._head = {}
        self._text.clear()

    def _take_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _take_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._head[self._name.lower()] = self._value
        self._name = self._value = b""

    def _end_head(self) -> None:
        kind, options = parse_options_header(self._head.get(b"content-disposition"))
        if kind != b"form-data" or b"name" not in options:
            raise _RefusedForm(invalid_form("A part has no Content-Disposition: form-data with a name."))
        self._field = _text(options[b"name"])
        if b"filename" not in options:
            if self._field in self._fields:
                raise _RefusedForm(invalid_form(f"The part {self._field[:80]!r} is a file, so it needs a filename."))
            return
        declared = self._fields.get(self._field)
        if declared is None:
            wanted = ", ".join(self._fields)
            raise _RefusedForm(
                invalid_form(f"The part {self._field[:80]!r} must not be a file. Fields that are files: {wanted}.")
            )
        before = self._values.get(self._field)
        if before is not None and (not declared.many or len(before) >= declared.many):
            raise _RefusedForm(invalid_form(f"The form has more than {declared.many or 1} files for {self._field!r}."))
        media_type = self._head.get(b"content-type", b"").decode("latin-1")
        self._described = (_text(options[b"filename"]), media_type)
        self._spool = Spool(self._folder)
        self._spools.append(self._spool)

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._spool is None:
            self._text_size += end - start
            if self._text_size > MAX_TEXT:
                raise _RefusedForm(_too_large(f"The parts that are not files have more than {MAX_TEXT} bytes."))
            self._text += data[start:end]
            return
        most = self._fields[self._field].max_bytes
        if self._spool.size + end - start > most:
            raise _RefusedForm(_too_large(f"The file {self._field!r} is larger than {most} bytes."))
        self._spool.write(data[start:end])

    def _end_part(self) -> None:
        if self._spool is None:
            self.texts.append((self._field, _text(bytes(self._text))))
            return
        value = FileValue(self._spool.upload(*self._described))
        self._spool = None
        self.files.uploads[tuple(value.values())] = value.upload
        if self._fields[self._field].many:
            self._values.setdefault(self._field, []).append(value)
        else:
            self._values[self._field] = value

    def _end(self) -> None:
        self._ended = True


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _RefusedForm(invalid_form("A name or a value of the form is not UTF-8.")) from None


def invalid_form(message: str) -> Malformed:
    return Malformed(status.BAD_REQUEST, "invalid-form", message)


def _too_large(message: str) -> Malformed:
    return Malformed(status.CONTENT_TOO_LARGE, "content-too-large", message)


STORED: Final = "/files"
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_UNKNOWN: Final = Refused(status.NOT_FOUND, "file-not-found", "This agent has no file with this id, or it has expired.")


class FileFace:
    """The part of an HTTP face for files; only a service with files in its endpoints has one."""

    def __init__(self, face: HttpFace, dispatcher: Dispatcher, store: FileKeeper, prefix: str) -> None:
        self._face = face
        self._dispatcher = dispatcher
        self._server = dispatcher.server
        self._store = store
        self._prefix = prefix
        self._backend = DispatchBackend(dispatcher, dispatcher.server, "http")

    def open_form(
        self, http_method: str, path: str, headers: Mapping[str, str], connection: Connection
    ) -> FormReader | Malformed | None:
        """Begin to read a form, or refuse its caller before the files arrive; return None for any other request."""
        content_type = headers.get("content-type", "")
        if http_method != "POST" or not content_type.lower().startswith(FORM):
            return None
        stored = self._stored(path, headers)
        target = RequestTarget(STORED, "POST", False) if stored is not None else self._target("POST", path, headers)
        route = None if stored is not None or target is None else self._route(target)
        fields = {"file": FileField(self._store.max_bytes)} if stored == "" else {}
        fields = fields if route is None else file_fields(route.endpoint.input_schema)
        if not fields or target is None or self._face.forbids(headers) is not None:
            return None
        # A signature covers the whole form, so its caller is known at the end only. Files to store are not signed.
        verifier = self._server.principals.authenticator
        signs = AGENT_SIGNATURE in headers and verifier is not None and "signed" in verifier.modes
        if route is None or not signs:
            call = Call(Request(target.method, target.path, "", headers, b"", connection), self._server)
            refused = identity_gate(call)
            if refused is None:
                if route is not None and not sees(call, route):
                    return None  # the dispatcher answers as for any endpoint that this caller may not know of
                refused = self._refuse_store(call) if route is None else scope_gate(RoutedCall(call, route))
            if isinstance(refused, Refused):
                return Malformed(refused.status, refused.code, refused.message)
        if not self._store.has_room():
            return Malformed(status.UNAVAILABLE, "no-room-for-files", "This server has no room for more files.")
        try:
            form = FormReader(content_type, fields, self._store.folder)
        except ValueError as error:
            return invalid_form(f"{str(error).capitalize()}.")
        declared = headers.get("content-length", "")
        return (form.check_size(int(declared[:20])) if declared.isdecimal() else None) or form

    def streams(self, head: HttpHead) -> bool:
        """Return True if the answer may be a file."""
        headers = head.headers
        if isinstance(headers, Malformed):
            return False
        target = self._target(head.http_method, head.path, headers)
        return self._stored(head.path, headers) is not None or self._sends_raw(target, headers)

    async def serve(
        self, scope: Scope, receive: Receive, path: str, headers: dict[str, str], connection: Connection
    ) -> HttpResponse | None:
        """Answer a request with a form, for a file or for a stored one; return None for any other."""
        method: str = scope["method"]
        form: FormReader | Malformed | None = scope.get("state", {}).get(READ_FORM)
        try:
            if form is None:
                form = self.open_form(method, path, headers, connection)
                if isinstance(form, FormReader):
                    form = await _receive(form, receive) or form
            if isinstance(form, Malformed):
                return self._face.malformed(form, connection)
            stored = self._stored(path, headers)
            if stored is not None:
                started = perf_counter()
                reply = await self._answer_stored(scope, method, stored, headers, form)
                # Without the id, which is all that protects a file of an anonymous caller.
                shown, principal = f"{STORED}/*" if stored else STORED, scope.get(PRINCIPAL)
                caller = None if principal is None else principal.agent_id
                self._face.log(method, shown, reply, connection, started, known=True, caller=caller)
                return reply
            target = self._target(method, path, headers)
            if target is None or (form is None and not self._sends_raw(target, headers)):
                return None
            if form is not None:
                headers["content-type"] = MEDIA_JSON
            return await self._call(scope, receive, target, headers, form)
        finally:
            if isinstance(form, FormReader):
                form.close()

    async def _call(
        self, scope: Scope, receive: Receive, target: RequestTarget, headers: Mapping[str, str], form: FormReader | None
    ) -> HttpResponse:
        connection = connection_of(scope)
        query = scope["query_string"].decode("latin-1")
        body: bytes | Malformed
        if form is not None:
            route = self._route(target)
            files, body = form.files, form.input({} if route is None else route.coercions)
        else:
            files = CallFiles()
            body = await read_body(receive, self._face.limits.body, headers.get("content-length", ""))
        if isinstance(body, Malformed):
            return self._face.malformed(body, connection)
        files.raw = self._sends_raw(target, headers)
        request = msgspec.structs.replace(to_request(target, query, headers, body, connection), files=files)
        answer = self._dispatcher(request)
        response = answer if isinstance(answer, Response) else await answer
        reply = self._face.to_http_response(response)
        download = self._download(files, response) if files.raw and response.status == status.OK else None
        return reply if download is None else _with_file(reply, download, headers)

    def _download(self, files: CallFiles, response: Response) -> Download | None:
        """Return the file of an answer, also if the answer is a repeated one, which has it in its JSON form."""
        if files.download is not None:
            return files.download
        found = msgspec.json.decode(response.body)
        if "data" in found:
            content = msgspec.convert(found["data"], bytes)  # base64
            return Download(content, name=found["name"], media_type=found["media_type"])
        upload = self._store.find(files.owner, found.get("file", ""))
        return None if upload is None else upload.to_download()

    async def _answer_stored(
        self, scope: Scope, method: str, reference: str, headers: Mapping[str, str], form: FormReader | None
    ) -> HttpResponse:
        forbidden = self._face.forbids(headers)
        if forbidden is not None:
            return forbidden
        allowed = "GET, HEAD" if reference else "POST"
        if method not in allowed.split(", "):
            message = f"Use {allowed.replace(', ', ' or ')} here."
            return refusal(405, "method-not-allowed", message, allow=allowed)
        call = await self._backend.admit(scope, calls=False)
        if isinstance(call, Refused):
            anonymous = Call(Request(method, STORED, "", headers, b"", Connection(face="http")), self._server)
            return self._refusal(anonymous, call)
        refused = self._refuse_store(call)
        if refused is not None:
            return self._refusal(call, refused)
        owner = call.agent_id or ""
        if reference:
            found = self._store.find(owner, reference)
            return self._refusal(call, _UNKNOWN) if found is None else _with_file(_OK, found.to_download(), headers)
        uploads: list[Upload] = [] if form is None else list(form.files.uploads.values())
        if len(uploads) != 1:
            message = "Send one file, as the part `file` of multipart/form-data."
            return self._refusal(call, Refused(status.BAD_REQUEST, "invalid-form", message))
        kept = await asyncio.to_thread(self._store.keep, owner, uploads[0])
        if isinstance(kept, Refused):
            return self._refusal(call, kept)
        more = {"sha256": kept.upload.sha256, "expires": write_instant(kept.expires)}
        body = msgspec.json.encode({"file": kept.reference, **kept.upload.describe(**more)})
        length = (b"content-length", b"%d" % len(body))
        return HttpResponse(201, [(b"content-type", MEDIA_JSON.encode()), length, NO_STORE], body)

    def _refusal(self, call: Call, refused: Refused) -> HttpResponse:
        return self._face.to_http_response(self._dispatcher.refuse(call, refused))

    def _refuse_store(self, call: Call) -> Refused | None:
        """Refuse a caller that has no authority for any endpoint with files."""
        refused: Refused | None = _UNKNOWN
        for route in self._server.routes.steps.values():
            if self._store.concerns(route.endpoint) and sees(call, route):
                refused = scope_gate(RoutedCall(call, route))
                if refused is None:
                    return None
        return refused

    def _stored(self, path: str, headers: Mapping[str, str]) -> str | None:
        """Return the id in a path below `/files`, empty for the path itself; None for any other path."""
        below = without_prefix(path, self._prefix)
        if not below.startswith(STORED) or below[len(STORED) :][:1] not in ("", "/") or "x-agis-method" in headers:
            return None
        return below[len(STORED) + 1 :]

    def _target(self, http_method: str, path: str, headers: Mapping[str, str]) -> RequestTarget | None:
        found = self._face.admit(http_method, path, dict(headers))
        return found if isinstance(found, RequestTarget) and found.reply is None else None

    def _route(self, target: RequestTarget) -> Route | None:
        return self._server.routes.find_public(target.method, target.path)

    def _sends_raw(self, target: RequestTarget | None, headers: Mapping[str, str]) -> bool:
        """Return True for an endpoint that returns a file, unless the caller asks for JSON."""
        route = None if target is None or "json" in headers.get(ACCEPT, "").lower() else self._route(target)
        return route is not None and is_file(route.endpoint.output_schema)


_OK: Final = HttpResponse(status.OK, [NO_STORE], b"")


async def _receive(form: FormReader, receive: Receive) -> Malformed | None:
    while True:
        message = await receive()
        if message["type"] != "http.request":
            form.close()
            return Malformed(status.BAD_REQUEST, "incomplete-message", "The body is incomplete.")
        fault = form.feed(message.get("body", b""))
        if fault is not None:
            return fault
        if not message.get("more_body"):
            return form.finish()


def _with_file(reply: HttpResponse, download: Download, headers: Mapping[str, str]) -> HttpResponse:
    """Put a file in the place of the body, or the part of it that the caller wants."""
    kept: Headers = [pair for pair in reply.headers if pair[0] not in (b"content-type", b"content-length")]
    part = _part(headers.get("range", ""), download.size)
    number = status.OK
    if part is not None:
        number = 206 if part[1] else 416
        shown = f"{part[0]}-{part[0] + part[1] - 1}" if part[1] else "*"
        kept.append((b"content-range", f"bytes {shown}/{download.size}".encode()))
    start, size = part or (0, download.size)
    return HttpResponse(
        number,
        [
            *kept,
            (b"content-type", download.media_type.encode()),
            (b"content-length", b"%d" % size),
            (b"content-disposition", disposition(download.name)),
            (b"x-content-type-options", b"nosniff"),
            (b"accept-ranges", b"bytes"),
        ],
        b"",
        FilePart(download.open, start, size),
    )


def _part(wanted: str, size: int) -> tuple[int, int] | None:
    """Read a range of bytes (RFC 9110 14.2): its start and length, no length if it is outside; None for the whole."""
    found = _RANGE.fullmatch(wanted.strip())
    if found is None or not (found[1] or found[2]):
        return None
    first, last = found[1], found[2]
    if not first:
        length = min(int(last), size)
        return size - length, length
    start, end = int(first), min(int(last) if last else size - 1, size - 1)
    return None if last and int(last) < start else (start, max(0, end - start + 1))


def disposition(name: str) -> bytes:
    """Write Content-Disposition (RFC 6266): a plain name for old clients, and the real one in UTF-8."""
    plain = "".join(char if char.isascii() and char.isprintable() and char not in '"\\%' else "_" for char in name)
    exact = "" if plain == name else f"; filename*=UTF-8''{quote(name, safe='')}"
    return f'attachment; filename="{plain}"{exact}'.encode("ascii")
