"""The extension: data of other systems."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.integrate.methods import import_rows
from bespeak.runtime.extension import Extension

integrate: Final = Extension(name="integrate", methods={"IMPORT": import_rows})
