"""Published limits of GPUs that times can be estimated for.

Figures are the vendor's datasheets and the occupancy tables of the CUDA C++ Programming Guide
(compute capabilities). Bandwidths of the L2 are not published: they are our reading of public
micro-benchmarks, rounded, and only ever feed estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.errors import UsageError, nearest


@dataclass(frozen=True)
class Chip:
    """One GPU. Rates are per second for the whole chip, ``*_per_sm`` for one multiprocessor."""

    name: str
    title: str
    capability: tuple[int, int]
    sms: int
    clock: float  # boost clock, Hz
    dram_bandwidth: float  # bytes/s
    l2_bandwidth: float  # bytes/s
    l2_bytes: int
    fp32_per_sm: int  # lanes per clock; an fma counts one
    fp64_per_sm: int
    int32_per_sm: int
    sfu_per_sm: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int  # with opt-in
    shared_bytes_reserved: int  # per block, taken by the driver
    registers_per_sm: int
    warps_per_sm: int
    blocks_per_sm: int
    tensor_per_sm: int = 0  # dense half-precision fma per clock with float32 sums; 0: none known
    memory_bytes: int = 0  # of a card that is here; 0 of one that is not

    @property
    def architecture(self) -> str:
        """NVRTC's ``--gpu-architecture`` value."""
        major, minor = self.capability
        return f"sm_{major}{minor}"

    @property
    def family(self) -> str:
        """What NVIDIA calls the architecture, ``hopper``; ``sm_NN`` where that is not known."""
        major, minor = self.capability
        return _FAMILIES.get((major, minor)) or _FAMILIES.get((major, 0)) or self.architecture

    @property
    def fp32_flops(self) -> float:
        """Peak float32 operations per second, an fma counting two."""
        return 2.0 * self.fp32_per_sm * self.sms * self.clock

    @property
    def fp64_flops(self) -> float:
        """Peak float64 operations per second, an fma counting two."""
        return 2.0 * self.fp64_per_sm * self.sms * self.clock

    @property
    def tensor_flops(self) -> float | None:
        """Peak operations of the tensor cores per second, half precision; None where unknown."""
        return 2.0 * self.tensor_per_sm * self.sms * self.clock if self.tensor_per_sm else None


# CUDA C++ Programming Guide, "Compute Capabilities": one name a major number, but for 7.5 and 8.9.
_FAMILIES = {
    (7, 0): "volta", (7, 5): "turing", (8, 0): "ampere", (8, 9): "ada", (9, 0): "hopper",
    (10, 0): "blackwell", (11, 0): "blackwell", (12, 0): "blackwell",
}  # fmt: skip
_HOPPER = {
    "capability": (9, 0),
    "fp32_per_sm": 128,
    "fp64_per_sm": 64,
    "int32_per_sm": 64,
    "sfu_per_sm": 16,
    "shared_bytes_per_sm": 228 << 10,
    "shared_bytes_per_block": 227 << 10,
    "shared_bytes_reserved": 1 << 10,
    "registers_per_sm": 65536,
    "warps_per_sm": 64,
    "blocks_per_sm": 32,
    "tensor_per_sm": 2048,
}
_ADA = {
    "capability": (8, 9),
    "fp32_per_sm": 128,
    "fp64_per_sm": 2,
    "int32_per_sm": 64,
    "sfu_per_sm": 16,
    "shared_bytes_per_sm": 100 << 10,
    "shared_bytes_per_block": 99 << 10,
    "shared_bytes_reserved": 1 << 10,
    "registers_per_sm": 65536,
    "warps_per_sm": 48,
    "blocks_per_sm": 24,
    "tensor_per_sm": 256,
}


def _chip(name: str, title: str, family: dict[str, object], **figures: object) -> Chip:
    return Chip(name=name, title=title, **{**family, **figures})  # type: ignore[arg-type]  # a table of fields


CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        _chip("h200", "NVIDIA H200 SXM", _HOPPER, sms=132, clock=1.98e9, dram_bandwidth=4.8e12,
              l2_bandwidth=7.0e12, l2_bytes=60 << 20),
        _chip("h100", "NVIDIA H100 SXM", _HOPPER, sms=132, clock=1.98e9, dram_bandwidth=3.35e12,
              l2_bandwidth=7.0e12, l2_bytes=50 << 20),
        _chip("a100", "NVIDIA A100 80GB SXM", _HOPPER, capability=(8, 0), sms=108, clock=1.41e9,
              dram_bandwidth=2.04e12, l2_bandwidth=4.5e12, l2_bytes=40 << 20, fp32_per_sm=64,
              fp64_per_sm=32, tensor_per_sm=1024, shared_bytes_per_sm=164 << 10,
              shared_bytes_per_block=163 << 10),
        _chip("rtx4090", "NVIDIA GeForce RTX 4090", _ADA, sms=128, clock=2.52e9,
              dram_bandwidth=1.008e12, l2_bandwidth=5.0e12, l2_bytes=72 << 20),
        _chip("l4", "NVIDIA L4", _ADA, sms=58, clock=2.04e9, dram_bandwidth=0.3e12,
              l2_bandwidth=2.0e12, l2_bytes=48 << 20, tensor_per_sm=512),
        _chip("t4", "NVIDIA T4", _ADA, capability=(7, 5), sms=40, clock=1.59e9,
              dram_bandwidth=0.32e12, l2_bandwidth=1.2e12, l2_bytes=4 << 20, fp32_per_sm=64,
              shared_bytes_per_sm=64 << 10, shared_bytes_per_block=64 << 10,
              shared_bytes_reserved=0, warps_per_sm=32, blocks_per_sm=16, tensor_per_sm=512),
    )
}  # fmt: skip
DEFAULT_CHIP = "h200"


def chip(name: str) -> Chip:
    """The chip of that name; raises UsageError that lists the known ones."""
    found = CHIPS.get(name.lower())
    if found is None:
        fix = nearest(name.lower(), CHIPS) or f"choose one of {', '.join(CHIPS)}"
        raise UsageError(f"no chip named {name!r}", fix=fix)
    return found
