"""The garbage collector, kept from looking through thousands of endpoints again and again while they are loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collections inside: what a server loads stays, so that there is next to nothing to find.

    What was made inside is old at once; otherwise the next collection would look through all of it after all.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()
