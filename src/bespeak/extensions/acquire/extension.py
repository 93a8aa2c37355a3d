"""The extension: reading of collections, resources and findings."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.acquire.methods import fetch, find, scan, search
from bespeak.runtime.extension import Extension

acquire: Final = Extension(name="acquire", methods={"FETCH": fetch, "SEARCH": search, "SCAN": scan, "FIND": find})
