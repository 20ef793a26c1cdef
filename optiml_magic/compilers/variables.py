"""The variables of a module, read from its PTX. Source: PTX ISA, "State Spaces" and "Arrays"."""

from __future__ import annotations

import math
import re
from collections import Counter

from optiml_magic.model.build import ModuleVariable

_DECLARATION = re.compile(
    r"^\s*(?:\.(?:visible|extern|weak|common)\s+)*\.(?P<space>const|global)\s+"
    r"(?:\.align\s+\d+\s+)?\.(?P<type>[a-z]+)(?P<bits>\d+)\s+(?P<name>[\w$%]+)(?P<extents>(?:\[\d*\])*)",
    re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z_$%][\w$]*")


def module_variables(ptx: str) -> tuple[ModuleVariable, ...]:
    """Name, size and space of each; the compiler's own, whose names hold a ``$``, are left out."""
    found = [match for match in _DECLARATION.finditer(ptx) if "$" not in match["name"]]
    named = Counter(_NAME.findall(ptx)) if found else Counter()
    return tuple(
        ModuleVariable(
            match["name"],
            int(match["bits"])
            // 8
            * math.prod(int(extent or 0) for extent in re.findall(r"\[(\d*)\]", match["extents"])),
            "constant" if match["space"] == "const" else "device",
            named[match["name"]] > 1,
        )
        for match in found
    )
