"""Files of calls: what handlers receive and return, the spool that takes their bytes, and what a call knows of them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import mimetypes
import os
import re
import secrets
import shutil
import stat
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.file_schema import MAX_NAME, UNKNOWN_TYPE, download_schema, upload_schema
from bespeak.protocol.exchange.refusal import Refused

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

IN_MEMORY: Final = 65536  # bytes of a file that is not written to disk
CHUNK: Final = 65536
PART: Final = ".part"  # ending of a file that is still being received, or belongs to a call
DIGEST: Final = "sha256-"
"""Beginning of the id that a file has in the input of a call. Nobody can send it: ids of stored files are random."""
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,63}/[A-Za-z0-9!#$&^_.+-]{1,63}")


def clean_name(name: str) -> str:
    """Return the last part of a file name, without what could lead elsewhere or break a header."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(char for char in last if char.isprintable()).strip()
    return kept[:MAX_NAME] if kept.strip(".") else "file"


def clean_type(media_type: str) -> str:
    """Return a media type without its parameters; `application/octet-stream` if it is not valid."""
    kind = media_type.partition(";")[0].strip()
    return kind.lower() if _MEDIA_TYPE.fullmatch(kind) else UNKNOWN_TYPE


class _File:
    """Content in memory or on disk, with a name and a media type that are safe to use."""

    __slots__ = ("_content", "media_type", "name", "size")

    def __init__(self, content: bytes | Path, name: str, media_type: str) -> None:
        self._content = content
        self.name = clean_name(name)
        self.media_type = clean_type(media_type)
        self.size = len(content) if isinstance(content, bytes) else content.stat().st_size

    def open(self) -> BinaryIO:
        """Open the content for reading, at its beginning."""
        return self._content.open("rb") if isinstance(self._content, Path) else BytesIO(self._content)

    def read(self) -> bytes:
        """Return the whole content."""
        return self._content if isinstance(self._content, bytes) else self._content.read_bytes()

    def describe(self, **more: str) -> dict[str, Any]:
        """Return the JSON form, with the `data` or the `file` that is given."""
        return {"name": self.name, "media_type": self.media_type, "size": self.size, **more}


class Upload(_File):
    """A file that the caller has sent. It is there until the call ends; `save` keeps it.

    `name` and `media_type` are what the caller says; nothing of the content is examined.
    """

    __slots__ = ("sha256",)

    def __init__(
        self, content: bytes | Path, *, name: str = "file", media_type: str = UNKNOWN_TYPE, sha256: str | None = None
    ) -> None:
        """Make an upload of bytes or of a file, as tests of a handler do."""
        super().__init__(content, name, media_type)
        if sha256 is None:
            digest = hashlib.sha256()
            for part in self.chunks():
                digest.update(part)
            sha256 = digest.hexdigest()
        self.sha256 = sha256

    async def aread(self) -> bytes:
        """Return the whole content; a file on disk is read in a thread."""
        return self._content if isinstance(self._content, bytes) else await asyncio.to_thread(self.read)

    def chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """Yield the content in parts."""
        with self.open() as file:
            while part := file.read(size):
                yield part

    async def achunks(self, size: int = CHUNK) -> AsyncIterator[bytes]:
        """Yield the content in parts, each of which is read in a thread."""
        with self.open() as file:
            while part := await asyncio.to_thread(file.read, size):
                yield part

    def save(self, path: str | Path) -> None:
        """Write the content to a file of your own."""
        with self.open() as source, Path(path).open("wb") as target:
            shutil.copyfileobj(source, target)

    def to_download(self) -> Download:
        """Return the file as one that can be sent."""
        return Download(self._content, name=self.name, media_type=self.media_type)

    def __repr__(self) -> str:
        return f"Upload({self.name!r}, {self.media_type!r}, {self.size} bytes)"

    # The methods of a type that describes itself, see `functions.annotations`.

    @classmethod
    def model_json_schema(cls, **_: Any) -> dict[str, Any]:
        return upload_schema()

    @classmethod
    def model_validate(cls, value: Any) -> Upload:
        if isinstance(value, FileValue):
            return value.upload
        raise ValueError("the file is no longer there; send it again")


class FileValue(dict[str, Any]):
    """The JSON form of a file in the input of a call: name, media type and digest, never the content."""

    def __init__(self, upload: Upload) -> None:
        super().__init__(file=f"{DIGEST}{upload.sha256}", name=upload.name, media_type=upload.media_type)
        self.upload = upload


class Download(_File):
    """A file that a handler returns: bytes, or the path of a file that it may show to this caller."""

    __slots__ = ()

    def __init__(self, content: bytes | str | Path, *, name: str | None = None, media_type: str | None = None) -> None:
        content = content if isinstance(content, bytes) else Path(content)
        if isinstance(content, Path) and not stat.S_ISREG(content.stat().st_mode):  # reading a pipe might never end
            raise ValueError(f"{content} is not a file; a Download takes bytes or the path of a file")
        own = content.name if isinstance(content, Path) else "download"
        name = clean_name(own if name is None else name)
        super().__init__(content, name, media_type or mimetypes.guess_type(name)[0] or UNKNOWN_TYPE)

    @classmethod
    def model_json_schema(cls, **_: Any) -> dict[str, Any]:
        return download_schema()

    @classmethod
    def model_validate(cls, value: Any) -> Download:
        raise ValueError("a Download is returned, not received; take an Upload")

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self.describe(data=b64encode(self.read()).decode())


class Spool:
    """Takes the bytes of one file: in memory while they are few, then in a locked file that `close` removes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory = bytearray()
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self.path: Path | None = None  # the file; None while the bytes are in memory
        self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self._hash.update(data)
        if self._file is None and self.size > IN_MEMORY:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path = self._folder / f"{secrets.token_hex(16)}{PART}"
            self._file = create(self.path)
            self._file.write(self._memory)
            self._memory.clear()
        if self._file is None:
            self._memory += data
        else:
            self._file.write(data)

    def upload(self, name: str, media_type: str) -> Upload:
        """Return what was written as an upload, which is there until `close`."""
        if self._file is not None:
            self._file.flush()
        content = bytes(self._memory) if self.path is None else self.path
        return Upload(content, name=name, media_type=media_type, sha256=self._hash.hexdigest())

    def close(self) -> None:
        """Remove what was written; twice does no harm."""
        self._memory.clear()
        if self._file is not None:
            self._file.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def create(path: Path) -> BinaryIO:
    """Create a file that only this user can read, and lock it."""
    file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115
    lock(file)
    return file


def lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed or its process ends; return False if another process holds it."""
    with contextlib.suppress(BlockingIOError):
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


class Kept(NamedTuple):
    """A stored file."""

    upload: Upload
    reference: str
    expires: float  # seconds since 1970


class FileKeeper(Protocol):
    """Where files are stored for an agent, as the faces know it: `server.part("files")`."""

    max_bytes: int
    folder: Path

    def concerns(self, endpoint: Endpoint) -> bool: ...
    def has_room(self) -> bool: ...
    def keep(self, owner: str, content: Upload | Download, *, reference: str | None = None) -> Kept | Refused: ...
    def find(self, owner: str, reference: str) -> Upload | None: ...


@dataclass(slots=True, eq=False)
class CallFiles:
    """What a face and the extension tell each other about the files of one call."""

    uploads: dict[tuple[Any, ...], Upload] = field(default_factory=dict)
    """Files of a form, by the values that its input has for them."""
    digest: str | None = None  # SHA-256 of the form as received; None without one
    raw: bool = False  # True if the caller wants the bytes of a download, not its JSON form
    download: Download | None = None  # what the handler has returned for such a caller
    store: FileKeeper | None = None  # where stored files are, once the caller is known
    owner: str = ""  # whose files the call may name, once the caller is known
