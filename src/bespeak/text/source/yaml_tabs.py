"""Lines of blanks that contain tabs. YAML 1.2 accepts them, libyaml refuses them where it expects indentation."""

from __future__ import annotations

import re
from typing import Final

_TAB_LINE: Final = re.compile(r"^ *+\t[ \t]*+(?=\r?$)", re.MULTILINE)


def without_tab_lines(text: str, filler: str = "") -> str:
    """Replace the blanks of lines that consist of blanks with tabs; `filler` replaces each of them.

    Without a filler, lines and columns of all other lines stay the same. With a space, offsets stay the same too, but
    such a line must not be longer than the indentation of a block text that begins with it.
    """
    return _TAB_LINE.sub(lambda found: filler * len(found.group()), text)
