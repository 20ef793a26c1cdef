"""Theoretical occupancy: how many blocks fit on a multiprocessor, and what stops the next one.

Source: CUDA C++ Programming Guide, "Hardware Multithreading"; allocation units as in the vendor's
occupancy calculator (registers by 256 per warp, shared memory by 128 bytes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optiml_magic.chips import Chip
from optiml_magic.model.build import Resources
from optiml_magic.model.launch import Launch

Limiter = Literal["registers", "shared", "warps", "blocks", "grid"]

_REGISTER_UNIT = 256
_SHARED_UNIT = 128


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps resident on one multiprocessor, and the resource that ran out first."""

    blocks: int
    warps: int
    max_warps: int
    limiter: Limiter
    limits: dict[Limiter, int]  # blocks that each resource alone would allow
    waves: float  # grid over what fits on the chip at once

    @property
    def percent(self) -> float:
        """Resident warps over the most that the chip holds."""
        return 100.0 * self.warps / self.max_warps


def occupancy(chip: Chip, launch: Launch, resources: Resources) -> Occupancy:
    """The occupancy of one launch. Zero blocks means that the launch cannot run."""
    warps = -(-launch.block_threads // 32)
    limits: dict[Limiter, int] = {
        "warps": chip.warps_per_sm // warps,
        "blocks": chip.blocks_per_sm,
        "registers": _by_registers(chip, warps, resources.registers),
        "shared": _by_shared(chip, launch, resources),
    }
    blocks = min(limits.values())
    limiter = min(limits, key=lambda name: limits[name])
    per_sm = -(-launch.blocks // chip.sms)
    if per_sm < blocks:
        limiter = "grid"
    waves = launch.blocks / (blocks * chip.sms) if blocks else 0.0
    resident = min(blocks, per_sm)
    return Occupancy(blocks, resident * warps, chip.warps_per_sm, limiter, limits, waves)


def _by_registers(chip: Chip, warps: int, registers: int) -> int:
    per_warp = -(-max(registers, 1) * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    return chip.registers_per_sm // (per_warp * warps)


def _by_shared(chip: Chip, launch: Launch, resources: Resources) -> int:
    asked = resources.shared_bytes + launch.shared
    if not asked:
        return chip.blocks_per_sm
    taken = -(-(asked + chip.shared_bytes_reserved) // _SHARED_UNIT) * _SHARED_UNIT
    return chip.shared_bytes_per_sm // taken
