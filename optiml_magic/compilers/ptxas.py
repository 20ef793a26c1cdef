"""What ``ptxas -v`` reports of each kernel; NVRTC and nvcc pass its log on alike."""

from __future__ import annotations

import re

from optiml_magic.model.build import Resources

_FUNCTION = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def resources(log: str) -> dict[str, Resources]:
    """Resources by lowered name."""
    found: dict[str, Resources] = {}
    for section in re.split(r"(?=ptxas info\s*: Compiling entry function)", log):
        name, stack, used = _FUNCTION.search(section), _STACK.search(section), _USED.search(section)
        if name and stack and used:
            found[name["name"]] = Resources(
                registers=int(used[1]),
                shared_bytes=int(used[2] or 0),
                local_bytes=int(stack[1]),
                spill_store_bytes=int(stack[2]),
                spill_load_bytes=int(stack[3]),
            )
    return found
