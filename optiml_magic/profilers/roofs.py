"""The roofs of a card, measured by our own kernels in a few seconds, and kept for the next time.

Each is the best of several draws, since another program on the card only slows them.

Device memory: a copy much larger than the L2, bytes read plus bytes written. Arithmetic: chains of
multiply-adds that do not wait for each other. Tensor cores: ``mma.sync`` of half precision with
float32 sums (PTX ISA, "mma.m16n8k16"); sm_90a's ``wgmma`` goes beyond it, so the published limit
stands where it is higher. Launch: an empty kernel in a graph of many. Method: Empirical Roofline
Toolkit (Lo et al. 2014).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optiml_magic.chips import Chip
from optiml_magic.devices.base import Buffer, Case, DrawingDevice, Fault, Job
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.launch import BufferArgument, Launch, LaunchPlan
from optiml_magic.model.roofline import Roofs

Compile = Callable[[str, tuple[str, ...]], Build | CompileFailure]
PUBLISHED_LAUNCH = 2.5e-6  # seconds; ours, as in the time model

_SCHEMA = 2
_KEY = "roofs"
_BYTES = 512 << 20  # of each of the two buffers
_THREADS, _BLOCKS_PER_SM, _STEPS, _CHAINS = 256, 8, 4096, 8
_SECONDS, _DRAWS = 0.08, 4  # each kernel, back to back, so often

_TEXT = """\
extern "C" __global__ void copy(const float4* a, float4* out) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    out[i] = a[i];
}
template <class T> __device__ void chains(float* out) {
    T x[CHAINS], a = T(1) - T(threadIdx.x) * T(1e-6), b = T(1e-3);
    for (int k = 0; k < CHAINS; ++k) x[k] = T(k);
    for (int step = 0; step < STEPS; ++step)
        for (int k = 0; k < CHAINS; ++k) x[k] = x[k] * a + b;
    T sum = 0;
    for (int k = 0; k < CHAINS; ++k) sum += x[k];
    if (sum == T(-1)) out[0] = float(sum);
}
extern "C" __global__ void fma32(float* out) { chains<float>(out); }
extern "C" __global__ void fma64(float* out) { chains<double>(out); }
extern "C" __global__ void mma(float* out) {
    unsigned a[4], b[2];
    float c[CHAINS][4];
    for (int k = 0; k < 4; ++k) a[k] = 0x3c003c00u + threadIdx.x;
    for (int k = 0; k < 2; ++k) b[k] = 0x1c001c00u + threadIdx.x;
    for (int k = 0; k < CHAINS; ++k) for (int j = 0; j < 4; ++j) c[k][j] = k;
    for (int step = 0; step < STEPS; ++step)
        for (int k = 0; k < CHAINS; ++k)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    float sum = 0;
    for (int k = 0; k < CHAINS; ++k) for (int j = 0; j < 4; ++j) sum += c[k][j];
    if (sum == -1.0f) out[0] = sum;
}
extern "C" __global__ void nothing() {}
"""
_MMA_FLOPS = 2 * 16 * 8 * 16  # of one warp
_MMA, _NOTHING = 'extern "C" __global__ void mma', 'extern "C" __global__ void nothing'


@dataclass(frozen=True)
class Card:
    """What a measurement holds for: this very card under this driver."""

    identity: str
    driver: str

    @property
    def file(self) -> str:
        text = f"{_SCHEMA} {self.identity} {self.driver} {_TEXT}"
        return f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def published(chip: Chip, note: str = "") -> Roofs:
    """The vendor's limits."""
    return Roofs(
        chip.name, chip.dram_bandwidth, chip.fp32_flops, chip.fp64_flops, chip.tensor_flops,
        PUBLISHED_LAUNCH, "published", note,
    )  # fmt: skip


def roofs(chip: Chip, card: Card, folder: Path, device: DrawingDevice, compile_: Compile) -> Roofs:
    """Those of a card: from the folder, else measured now; published where that fails."""
    kept = folder / card.file
    with contextlib.suppress(OSError, ValueError):
        return from_json(Roofs, kept.read_bytes())
    found = measure(chip, device, compile_)
    if found.source == "measured":
        with contextlib.suppress(OSError):  # a full disk costs time, never a result
            folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(to_json(Roofs, found))
    return found


def measure(chip: Chip, device: DrawingDevice, compile_: Compile) -> Roofs:
    """Run each kernel back to back, several times for a short while."""
    kernels = ("copy", "fma32", "fma64", "nothing")
    with_tensors = chip.capability >= (8, 0)
    text = f"#define CHAINS {_CHAINS}\n#define STEPS {_STEPS}\n{_TEXT}"
    if not with_tensors:
        start = text.index(_MMA)
        text = text[:start] + text[text.index(_NOTHING) :]
    build = compile_(text, (*kernels, "mma") if with_tensors else kernels)
    if isinstance(build, CompileFailure):
        return published(chip, f"our kernels did not compile: {build.errors[0].message}")
    device.put(_case())
    try:
        seconds: dict[str, float] = {}
        for kernel in (*kernels, *(("mma",) if with_tensors else ())):
            found: list[float] = []
            for _ in range(_DRAWS):
                drawn = device.draw(build, _job(chip, build, kernel), _SECONDS)
                if isinstance(drawn, Fault):
                    return published(chip, f"our kernel {kernel} did not run: {drawn.message}")
                found.append(drawn.busy / drawn.launches)
            seconds[kernel] = min(found)
    finally:
        device.put(Case(_KEY, ()))
    threads = chip.sms * _BLOCKS_PER_SM * _THREADS
    fmas = 2.0 * threads * _STEPS * _CHAINS
    products = _MMA_FLOPS * threads / 32 * _STEPS * _CHAINS
    tensor, note = chip.tensor_flops, ""
    if with_tensors:
        reached = products / seconds["mma"]
        note = f"mma.sync reaches {reached / 1e12:.3g} TFLOP/s"
        if tensor is None or reached > tensor:
            tensor = reached
        else:
            note += "; the roof of the tensor cores is the published one"
    return Roofs(
        chip.name,
        2.0 * _BYTES / seconds["copy"],
        fmas / seconds["fma32"],
        fmas / seconds["fma64"],
        tensor,
        seconds["nothing"],
        "measured",
        note,
    )


def _case() -> Case:
    """Two buffers that nobody has to send: the device fills what it takes for an output."""
    names, array = ("a", "out"), np.empty(_BYTES // 4, np.float32)
    return Case(_KEY, tuple(Buffer(name, "output", array) for name in names))


def _job(chip: Chip, build: Build, kernel: str) -> Job:
    blocks = _BYTES // 16 // _THREADS if kernel == "copy" else chip.sms * _BLOCKS_PER_SM
    names = {"copy": ("a", "out"), "nothing": ()}.get(kernel, ("out",))
    arguments = tuple(BufferArgument(name) for name in names)
    launch = Launch(build.names[kernel], (blocks, 1, 1), (_THREADS, 1, 1), 0, arguments)
    return Job(_KEY, LaunchPlan((launch,)), 0, False, 1 << 40)
