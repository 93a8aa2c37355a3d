"""The files that agents have uploaded to name them in calls, and downloads that are too large for an answer.

A file is `OWNER.ID` in one folder, beside `OWNER.ID.json` with its name and media type. The owner is a part of the
name, so that the id of another agent's file is like one that does not exist.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import secrets
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.file_schema import has_files
from bespeak.errors import ConfigError
from bespeak.extensions.files.settings import FileSettings
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.functions.files import PART, Download, Kept, Upload, create, lock

_REFERENCE: Final = re.compile(r"[A-Za-z0-9_-]{32}")
_MOST_FILES: Final = 10_000
_MOST_OF_ONE: Final = 1_000  # so that one agent leaves places to others
_GRACE: Final = 600  # seconds for which an expired file stays, for calls that read it already
_ABANDONED: Final = 10  # seconds after which a part that nobody has locked is one of a process that was killed


NO_ROOM: Final = Refused(
    status.UNAVAILABLE, "no-room-for-files", "This server has no room for more files; try again later."
)
_logger = logging.getLogger(__name__)


class _Meta(msgspec.Struct):
    name: str
    media_type: str
    sha256: str


def new_reference() -> str:
    return secrets.token_urlsafe(24)


class FileStore:
    def __init__(self, settings: FileSettings, server_id: str) -> None:
        self.settings = settings
        self.max_bytes = settings.max_bytes
        self._counted = (0.0, 0)  # when the files were counted last, and their bytes
        self._known: dict[int, tuple[Endpoint, bool]] = {}
        private = hashlib.sha256(server_id.encode()).hexdigest()[:16]
        user = os.getuid() if hasattr(os, "getuid") else 0
        self.folder = settings.folder or Path(tempfile.gettempdir()) / f"bespeak-files-{user}-{private}"

    def concerns(self, endpoint: Endpoint) -> bool:
        """Return True if the input or the output of an endpoint has files."""
        known = self._known.get(id(endpoint))
        if known is None or known[0] is not endpoint:
            if len(self._known) >= _MOST_FILES:  # endpoints that were replaced
                self._known.clear()
            found = has_files(endpoint.input_schema) or has_files(endpoint.output_schema)
            known = self._known[id(endpoint)] = (endpoint, found)
        return known[1]

    def start(self) -> None:
        """Create the folder, and remove what has expired or was left by a process that was killed."""
        try:
            self._list()
            found = self.folder.lstat()
        except OSError as error:
            raise ConfigError(f"[files] folder {self.folder} cannot be used: {error.strerror or error}") from None
        # Anybody may have made a folder of this name among the temporary files.
        foreign = hasattr(os, "getuid") and found.st_uid != os.getuid()
        if self.settings.folder is None and (not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077 or foreign):
            raise ConfigError(f"{self.folder} is not a private folder of this user; set `folder` in [files]")

    def keep(self, owner: str, content: Upload | Download, *, reference: str | None = None) -> Kept | Refused:
        """Store a file for an agent, or refuse it if there is no room. Call it in a thread: it writes to disk."""
        mine = _owner(owner)
        reference = reference or new_reference()
        target = self.folder / f"{mine}.{reference}"
        part = target.with_name(f"{target.name}{PART}")
        digest = hashlib.sha256()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with content.open() as source, create(part) as copy:
                copy.truncate(content.size)  # before the files are counted: of two at the same time, one counts both
                refused = self._refuse(mine)
                if refused is not None:
                    return refused
                while piece := source.read(1 << 20):
                    digest.update(piece)
                    copy.write(piece)
            meta = _Meta(content.name, content.media_type, digest.hexdigest())
            target.with_name(f"{target.name}.json").write_bytes(msgspec.json.encode(meta))
            part.replace(target)
            upload = Upload(target, name=meta.name, media_type=meta.media_type, sha256=meta.sha256)
            return Kept(upload, reference, target.stat().st_mtime + self.settings.ttl)
        except OSError as error:
            _logger.error("could not store a file in %s: %s", self.folder, error.strerror or error)
            return NO_ROOM
        finally:
            part.unlink(missing_ok=True)

    def _refuse(self, mine: str) -> Refused | None:
        """Refuse an agent whose files, the new one included, are more than the quotas admit."""
        sizes, most = self._list(), self.settings.per_agent
        used = [size for name, size in sizes.items() if name.startswith(mine)]
        if sum(used) > most or len(used) > _MOST_OF_ONE:
            message = f"One agent may have {_MOST_OF_ONE} files with {most} bytes together; wait until some expire."
            return Refused(status.RATE_LIMITED, "too-many-files", message)
        return NO_ROOM if sum(sizes.values()) > self.settings.total or len(sizes) > _MOST_FILES else None

    def has_room(self) -> bool:
        """Return False while all files together, those of calls included, have reached the limit."""
        if time.monotonic() > self._counted[0] + 1:
            self._counted = (time.monotonic(), sum(self._list().values()))
        return self._counted[1] < self.settings.total

    def find(self, owner: str, reference: str) -> Upload | None:
        """Return a file of an agent; None if there is none with this id, it has expired or belongs to another agent."""
        if _REFERENCE.fullmatch(reference) is None:
            return None
        path = self.folder / f"{_owner(owner)}.{reference}"
        try:
            if self._is_old(path.stat().st_mtime):
                return None
            meta = msgspec.json.decode(path.with_name(f"{path.name}.json").read_bytes(), type=_Meta)
            return Upload(path, name=meta.name, media_type=meta.media_type, sha256=meta.sha256)
        except (OSError, msgspec.DecodeError):
            return None

    def _is_old(self, written: float, grace: float = 0) -> bool:
        return written + self.settings.ttl + grace < time.time()

    def _list(self) -> dict[str, int]:
        """Return the sizes of all files by their names; remove those that have expired."""
        sizes: dict[str, int] = {}
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # it is gone, or Windows does not let it go
                    found = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(PART) and found.st_mtime + _ABANDONED < time.time():
                        with Path(entry.path).open("rb") as file:
                            if lock(file):
                                Path(entry.path).unlink()
                    if self._is_old(found.st_mtime, _GRACE) and _is_ours(entry.name):
                        Path(entry.path).unlink()
                    elif not entry.name.endswith(".json"):
                        sizes[entry.name] = found.st_size
        return sizes


def _owner(agent_id: str) -> str:
    return hashlib.sha256(agent_id.encode(errors="surrogatepass")).hexdigest()[:32]


def _is_ours(name: str) -> bool:
    """Return True for the name of a stored file: an operator may have put another one into the folder."""
    owner, _, reference = name.removesuffix(".json").partition(".")
    return len(owner) == 32 and _REFERENCE.fullmatch(reference) is not None
