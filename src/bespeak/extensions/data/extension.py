"""The extension: data sets of the manifest, which compositions and negotiated endpoints read."""

from __future__ import annotations

import os
from typing import Final

from bespeak.extensions.data.endpoints import open_data
from bespeak.runtime.extension import Extension

data: Final = Extension(name="data", sources=lambda service, base: open_data(service.data_manifest, base, os.environ))
