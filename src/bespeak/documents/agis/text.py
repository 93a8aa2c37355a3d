"""AGIS documents as text: canonical YAML for people and canonical JSON for programs (AGIS 10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from bespeak.documents.agis.canonical import canonical
from bespeak.documents.yaml_writer import Comments, yaml_text

_SPACED: Final = frozenset({"/endpoints"})


def write_yaml(data: Mapping[str, Any], comments: Comments | None = None) -> str:
    """Write a document as YAML. Comments are keyed by the pointers of the canonical document."""
    return yaml_text(canonical(data), comments, _SPACED)


def write_json(data: Mapping[str, Any]) -> str:
    """Write a document as indented JSON."""
    return json.dumps(canonical(data), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
