"""A lock on the store's file: held by one process alone, or shared by several that cooperate."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bespeak.errors import ConfigError

if sys.platform != "win32":
    import fcntl


class FileLock:
    """A lock held for the lifetime of the process; the system releases it when the process dies."""

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        # Without locks every process takes part as one of several.
        self.exclusive = exclusive and sys.platform != "win32"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"The store needs the file {path} beside it, which cannot be written: {error.strerror}. "
                "Name a file in a folder that can be written with --store."
            ) from error
        try:
            if sys.platform != "win32":
                fcntl.flock(self._descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise ConfigError(
                f"Another server uses the store {str(path).removesuffix('.lock')}. Stop it, name another file with "
                "--store, or let one server run several processes with --workers."
            ) from error
        except OSError as error:
            self.release()
            raise ConfigError(
                f"The file system of {path} has no locks ({error.strerror}), so two servers could use the store "
                "at once. Name a file on a local disk with --store."
            ) from error

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
