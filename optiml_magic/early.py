"""What a command needs of its device, begun before all of the command is loaded.

On a card its processes take two to three seconds to start, of an emulated device half of one, and
to load a command takes one or two. Whoever opens a session takes what was begun for its device, and
ends the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optiml_magic.child import ahead
from optiml_magic.child.spare import SPARES
from optiml_magic.chips import CHIPS, DEFAULT_CHIP
from optiml_magic.devices import probe
from optiml_magic.errors import UsageError
from optiml_magic.settings import resolve

if TYPE_CHECKING:
    from optiml_magic.profilers.ncu import NcuCounters
    from optiml_magic.profilers.ncu_request import Depth
    from optiml_magic.verifiers.sanitizer import SanitizerInspector

_COUNTED: dict[str, Depth] = {"optimize": "lines", "demo": "lines", "profile": "rules"}
_INSPECTED = ("check",)

_COUNTERS: dict[str, NcuCounters] = {}  # by device
_INSPECTORS: dict[str, SanitizerInspector] = {}


def begin(words: Sequence[str]) -> None:
    """Start the processes of a command line; nothing where there is no such device."""
    try:
        settings = resolve()
    except UsageError:  # which the command tells
        return
    device = _device(_option(words, "device") or settings.device)
    if device is None:
        return
    family, _, index = device.partition(":")
    objects = [str(settings.objects.absolute())] if family == "emulated" else []
    if family == "cuda":
        probe.begin(int(index))
    hosts = {
        "optiml_magic.devices.host": [device, *objects],
        "optiml_magic.compilers.host": [_option(words, "compiler") or settings.compiler],
    }
    for module, arguments in hosts.items():
        if not SPARES.waits(module):  # of an earlier command in this process
            ahead.begin(module, arguments)
    if family == "emulated":
        return
    if words[0] in _INSPECTED:
        from optiml_magic.verifiers.sanitizer import SanitizerInspector

        _INSPECTORS[device] = SanitizerInspector(device)
        _INSPECTORS[device].warm()
    if words[0] in _COUNTED:
        from optiml_magic.findings import TOOLS, wanted
        from optiml_magic.model.vocabulary import default_counters
        from optiml_magic.profilers.ncu import NcuCounters

        metrics = (*default_counters(), *wanted(TOOLS))
        _COUNTERS[device] = NcuCounters(device, metrics=metrics)
        _COUNTERS[device].warm(depth=_COUNTED[words[0]])


def counters(device: str) -> NcuCounters | None:
    """Those that were begun for a device; they are the caller's now."""
    return _COUNTERS.pop(device, None)


def inspector(device: str) -> SanitizerInspector | None:
    """The one that was begun for a device; it is the caller's now."""
    return _INSPECTORS.pop(device, None)


def end() -> None:
    """End what nobody asked for."""
    ahead.end()
    for begun in (_COUNTERS, _INSPECTORS):
        while begun:
            begun.popitem()[1].close()


def _device(asked: str) -> str | None:
    """The device that is chosen for a name, if there may be one."""
    family, _, rest = asked.partition(":")
    if asked == "auto":
        family = "cuda" if probe.has_driver() else "emulated"
    if family == "emulated" and (rest or DEFAULT_CHIP) in CHIPS:
        return f"emulated:{rest or DEFAULT_CHIP}"
    if family == "cuda" and (rest or "0").isdigit() and probe.has_driver():
        return f"cuda:{int(rest or 0)}"
    return None


def _option(words: Sequence[str], name: str) -> str:
    """The value of an option of a command line; empty without it."""
    for at, word in enumerate(words):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
        if word == f"--{name}" and at + 1 < len(words):
            return words[at + 1]
    return ""
