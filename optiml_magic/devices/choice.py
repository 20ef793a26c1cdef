"""Which device a name means. ``auto`` says what it took and why; nothing else ever falls back."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from optiml_magic.chips import CHIPS, DEFAULT_CHIP, Chip, chip
from optiml_magic.devices import probe
from optiml_magic.devices.base import is_emulated
from optiml_magic.devices.driver import advice, driver_release
from optiml_magic.errors import MachineError, UsageError

_FIX = "choose auto, cuda, cuda:INDEX, emulated or emulated:CHIP"


@dataclass(frozen=True)
class Choice:
    """A device that exists here: its full name, its chip, and why it was taken."""

    name: str
    chip: Chip
    reason: str
    driver: int = 0  # the CUDA release that its driver knows; 0 where none is needed
    card: str = ""  # its UUID as hex digits; empty where there is no card, or it has none

    @property
    def is_emulated(self) -> bool:
        """Whether its times are estimates."""
        return is_emulated(self.name)


def names() -> tuple[str, ...]:
    """What may be asked for here."""
    cards = ("cuda", "cuda:0") if probe.has_driver() else ()
    return ("auto", *cards, "emulated", *(f"emulated:{name}" for name in CHIPS))


def choose(asked: str) -> Choice:
    """The device for a name; UsageError where unknown, MachineError where it is not here."""
    family, _, rest = asked.partition(":")
    if asked == "auto":
        return _automatic()
    if family == "cuda" and (not rest or rest.isdigit()):
        index = int(rest or 0)
        found, uuid = _card(index)
        why = f"as asked: {found.title}"
        return Choice(f"cuda:{index}", found, why, driver_release(), uuid)
    if family != "emulated":
        raise UsageError(f"no device named {asked!r}", fix=_FIX)
    found = chip(rest or DEFAULT_CHIP)
    return _emulated(found, "as asked")


def _automatic() -> Choice:
    lacking = _no_gpu()
    if not lacking:
        found, uuid = _card(0)
        why = f"auto chose it: {found.title} answers"
        return Choice("cuda:0", found, why, driver_release(), uuid)
    return _emulated(chip(DEFAULT_CHIP), f"auto chose it: {lacking}")


def _emulated(found: Chip, why: str) -> Choice:
    return Choice(f"emulated:{found.name}", found, f"{why}; times are estimated for {found.title}")


def _no_gpu() -> str:
    """Why no GPU can be used here; empty where one can."""
    if not probe.has_driver():
        return "no NVIDIA driver answers here"
    try:
        _card(0)
    except MachineError as error:
        return error.message
    return ""


@lru_cache(maxsize=8)
def _card(index: int) -> tuple[Chip, str]:
    """The chip of a card: published rates where it is a known one, else what the driver says.

    And the card's UUID.
    """
    told, lacking = probe.properties(index)
    if lacking:
        raise MachineError(
            f"cuda:{index} does not answer: {lacking}",
            fix=f"{advice(driver_release())}; see optiml doctor",
        )
    found = json.loads(told)
    return _from_properties(found), found["uuid"]


def _from_properties(found: dict[str, Any]) -> Chip:
    capability = (found["major"], found["minor"])
    title = found["name"]
    known = next((c for n, c in CHIPS.items() if n in title.lower().replace(" ", "")), None)
    base = known or min(
        CHIPS.values(),
        key=lambda c: (c.capability != capability, abs(c.sms - found["multiProcessorCount"])),
    )
    return replace(
        base,
        name=known.name if known else title.lower().replace(" ", "-"),
        title=title,
        capability=capability,
        sms=found["multiProcessorCount"],
        l2_bytes=found["l2CacheSize"],
        shared_bytes_per_sm=found["sharedMemPerMultiprocessor"],
        shared_bytes_per_block=found["sharedMemPerBlockOptin"],
        warps_per_sm=found["maxThreadsPerMultiProcessor"] // 32,
        memory_bytes=found.get("totalGlobalMem", 0),
    )
