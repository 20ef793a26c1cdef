"""Random requests, counted by the machine code and by a few lines of Python that follow the rules.

Sectors of 32 bytes and lines of 128: distinct ones per request. Banks: 32 of 4 bytes; lanes of 8 or
16 bytes go by half or quarter warps. CUDA C++ Best Practices Guide, "Coalesced Access", "Banks".
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .conftest import launch, module_of

TYPES = {"unsigned char": 1, "short": 2, "float": 4, "double": 8, "float4": 16}
KERNEL = """
__global__ void global_{w}(const {t}* x, const int* at, {t}* out, int n) {{
  int i = blockIdx.x * 32 + threadIdx.x;
  if (at[i] >= 0) out[i] = x[at[i]];
}}
__global__ void shared_{w}(const {t}* x, const int* at, {t}* out, int n) {{
  __shared__ {t} s[512];
  int i = blockIdx.x * 32 + threadIdx.x;
  for (int k = threadIdx.x; k < 512; k += 32) s[k] = x[k];
  __syncthreads();
  if (at[i] >= 0) out[i] = s[at[i]];
}}
"""
SOURCE = (
    'extern "C" {'
    + "".join(KERNEL.format(t=t, w=w) for t, w in TYPES.items())
    + """
__global__ void add_global(unsigned* x, const int* at) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (at[i] >= 0) atomicAdd(&x[at[i]], 1u + at[i]);
}
__global__ void add_shared(unsigned* x, const int* at) {
  __shared__ unsigned s[512];
  int i = blockIdx.x * 32 + threadIdx.x;
  if (at[i] >= 0) atomicAdd(&s[at[i]], 1u + at[i]);
}
}"""
)
SIZE = 512


def patterns() -> np.ndarray:
    """Warps of element numbers below SIZE; -1 for a lane that is off."""
    rng = np.random.default_rng(5)
    lane = np.arange(32)
    rows = [
        lane,
        lane[::-1],
        lane * 0,
        lane % 16,
        lane // 16 + 7,
        lane * 16,
        lane ^ 5,
        lane * 2 + 1,
    ]
    rows += [np.where(lane % 3 == 0, lane, -1), np.where(lane > 29, lane, -1)]
    rows += [np.where(lane < 16, lane, 500), np.where(lane == 13, 5, -1), 17 + (lane % 16) * 16]
    rows += [np.where(lane < 20, 5 * lane, -1), np.where(lane < 20, 480 - 5 * lane, -1)]
    rows += list(rng.integers(0, SIZE, (12, 32)))
    rows += list(np.sort(rng.integers(0, SIZE, (8, 32))))
    rows += list(np.where(rng.random((8, 32)) < 0.5, rng.integers(0, SIZE, (8, 32)), -1))
    rows += list(np.where(rng.random((8, 32)) < 0.5, np.sort(rng.integers(0, 99, (8, 32))), -1))
    return np.array(rows, np.int32)


def sectors(at: np.ndarray, width: int, unit: int) -> int:
    return sum(len({int(a) * width // unit for a in row if a >= 0}) for row in at)


def wavefronts(at: np.ndarray, width: int) -> int:
    unit = max(width, 4)
    group = 128 // unit
    total = 0
    for row in at:
        for first in range(0, 32, group):
            words = {int(a) * width // unit for a in row[first : first + group] if a >= 0}
            total += max(Counter(word % group for word in words).values(), default=0)
    return total


def counted(kernel: str, width: int, at: np.ndarray):
    x, out = np.zeros(SIZE * width, np.uint8), np.zeros(at.size * width, np.uint8)
    run = launch(
        module_of(SOURCE), kernel, len(at), 32, x, at.reshape(-1), out, np.int32(0), threads=1
    )
    assert run.fault is None
    return run.counters


@pytest.mark.parametrize("width", TYPES.values())
def test_sectors_and_lines(width):
    at = patterns()
    memory = counted(f"global_{width}", width, at).memory
    load = memory[-2]
    assert (load.access, load.width) == ("load", width)
    assert load.sectors == sectors(at, width, 32)
    assert load.lines == sectors(at, width, 128)
    assert load.lanes == (at >= 0).sum()
    assert load.requests == (at >= 0).any(1).sum()


@pytest.mark.parametrize("width", TYPES.values())
def test_wavefronts(width):
    at = patterns()
    memory = counted(f"shared_{width}", width, at).memory
    load = next(m for m in memory if (m.space, m.access) == ("shared", "load"))
    assert load.width == width
    assert load.wavefronts == wavefronts(at, width)


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("below", [3, 40, SIZE])
def test_contention(space, below):
    at = patterns() % below
    x = np.zeros(SIZE, np.uint32)
    counters = launch(module_of(SOURCE), f"add_{space}", len(at), 32, x, at.reshape(-1)).counters
    (atomic,) = (m for m in counters.memory if m.access == "atomic")
    most = [max(Counter(row[row >= 0].tolist()).values(), default=1) for row in at]
    assert atomic.contention == sum(most) - len(most)
    if space == "shared":
        assert atomic.wavefronts == wavefronts(at, 4)
        return
    # A 32-bit integer: what all lanes add at one word is one turn.
    lines = Counter[int]()
    for row in at:
        words = Counter(row[row >= 0].tolist())
        turns = dict[int, int]()
        for word, n in words.items():
            turns[word // 8] = max(turns.get(word // 8, 0), 1 if len(words) == 1 else n)
        for sector, n in turns.items():
            lines[sector // 4] += n
    assert counters.atomic_turns == sum(lines.values())
    assert counters.atomic_turns_of_a_line == max(lines.values())


@given(
    st.lists(st.integers(-1, SIZE - 1), min_size=32, max_size=32).filter(lambda row: max(row) >= 0),
    st.sampled_from(sorted(TYPES.values())),
)
def test_any_request(row, width):
    at = np.array([row], np.int32)
    load, store = counted(f"global_{width}", width, at).memory[-2:]
    assert load.sectors == sectors(at, width, 32)
    assert load.lines == sectors(at, width, 128)
    written = np.where(at >= 0, np.arange(32), -1)
    assert store.sectors == sectors(written, width, 32)
