"""Reading of `multipart/form-data` (RFC 7578) while it arrives: files go to spools, everything has a bound."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from bespeak.contract.schema.file_schema import FileField
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Malformed
from bespeak.runtime.functions.files import CallFiles, FileValue, Spool

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
