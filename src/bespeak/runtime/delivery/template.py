"""Templates of messages: texts whose variables are filled in, and nothing else."""

from __future__ import annotations

from string import Template
from typing import Any, Final

from bespeak.contract.delivery import TemplateSettings

_LONGEST: Final = 256 * 1024


def fill(template: TemplateSettings, values: Any) -> tuple[str, str] | str:
    """Return the subject and the body with the values of their variables, or what is wrong with the values."""
    if not isinstance(values, dict):
        return "must be an object with the variables of the template."
    subject, body = Template(template.subject), Template(template.body)
    wanted = sorted({*subject.get_identifiers(), *body.get_identifiers()})
    missing = [name for name in wanted if name not in values]
    if missing:
        return f"lacks {', '.join(missing)}, which the template needs."
    wrong = [name for name in wanted if isinstance(values[name], dict | list) or values[name] is None]
    if wrong:
        return f"must have a text or a number for {', '.join(wrong)}."
    # A text that is used often must not become larger than any message may be.
    size = sum(len(str(values[name])) * (template.subject + template.body).count("$") for name in wanted)
    if size + len(template.body) > _LONGEST:
        return f"makes a message of more than {_LONGEST // 1024} KiB."
    texts = {name: str(values[name]) for name in wanted}
    return subject.substitute(texts), body.substitute(texts)
