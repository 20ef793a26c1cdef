"""The variables of a module, read from its PTX. Source: PTX ISA, "State Spaces" and "Arrays"."""

from __future__ import annotations

import math
import re

from optiml_magic.model.build import ModuleVariable

_DECLARATION = re.compile(
    r"^\s*(?:\.(?:visible|extern|weak|common)\s+)*\.(?P<space>const|global)\s+"
    r"(?:\.align\s+\d+\s+)?\.(?P<type>[a-z]+)(?P<bits>\d+)\s+(?P<name>[\w$%]+)(?P<extents>(?:\[\d*\])*)",
    re.MULTILINE,
)


def module_variables(ptx: str) -> tuple[ModuleVariable, ...]:
    """Name, size and space of each; the compiler's own, whose names hold a ``$``, are left out."""
    return tuple(
        ModuleVariable(
            match["name"],
            int(match["bits"])
            // 8
            * math.prod(int(extent or 0) for extent in re.findall(r"\[(\d*)\]", match["extents"])),
            "constant" if match["space"] == "const" else "device",
        )
        for match in _DECLARATION.finditer(ptx)
        if "$" not in match["name"]
    )
