"""AGIS documents as text: the canonical YAML for people and the canonical JSON for machines (AGIS 10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from bespeak.documents.agis.canonical import canonical
from bespeak.documents.yaml_writer import Comments, yaml_text

_SPACED: Final = frozenset({"/endpoints"})


def write_yaml(data: Mapping[str, Any], comments: Comments | None = None) -> str:
    """A document as YAML. Comments are by the pointers of the canonical document."""
    return yaml_text(canonical(data), comments, _SPACED)


def write_json(data: Mapping[str, Any]) -> str:
    """A document as JSON, indented; a reader of bytes needs no such text but may get it."""
    return json.dumps(canonical(data), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
