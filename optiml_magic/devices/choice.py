"""Which device a name means. ``auto`` says what it took and why; nothing else ever falls back."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.chips import DEFAULT_CHIP, Chip, chip
from optiml_magic.errors import UsageError


@dataclass(frozen=True)
class Choice:
    """A device that exists here: its full name, its chip, and why it was taken."""

    name: str
    chip: Chip
    reason: str


def choose(asked: str) -> Choice:
    """The device for ``auto``, ``emulated`` or ``emulated:CHIP``; UsageError for anything else."""
    if asked == "auto":
        found = chip(DEFAULT_CHIP)
        reason = (
            f"auto chose it: this version runs kernels on the emulated device alone; "
            f"times are estimated for an {found.title}"
        )
        return Choice(f"emulated:{found.name}", found, reason)
    family, _, name = asked.partition(":")
    if family != "emulated":
        raise UsageError(f"no device named {asked!r}", fix="devices: auto, emulated, emulated:CHIP")
    found = chip(name or DEFAULT_CHIP)
    return Choice(
        f"emulated:{found.name}", found, f"as asked; times are estimated for an {found.title}"
    )
