"""Sectors that reach DRAM, beside a plain LRU in Python that reads the same sequence."""

from collections import OrderedDict

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.emulator import caches

from .conftest import module_of

SOURCE = r"""
extern "C" __global__ void gather(const float* x, const int* at, float* out, int passes) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < passes; k++) sum += x[at[k * gridDim.x * 32 + i]];
  out[i] = sum;
}"""
BLOCKS, PASSES = 64, 4


def missed(at: np.ndarray, size: int, l2_bytes: int, threads: int = 2) -> tuple[int | None, int]:
    """Read misses, and distinct sectors read."""
    memory = emulator.Memory()
    arrays = [np.zeros(size, np.float32), at.astype(np.int32), np.zeros(BLOCKS * 32, np.float32)]
    addresses = [memory.allocate(a.nbytes) for a in arrays]
    for address, array in zip(addresses, arrays, strict=True):
        memory.view(address)[:] = array.reshape(-1).view(np.uint8)
    run = module_of(SOURCE).launch(
        "gather", (BLOCKS, 1, 1), (32, 1, 1), dynamic_shared=0,
        arguments=[*(a.to_bytes(8, "little") for a in addresses), np.int32(PASSES).tobytes()],
        memory=memory, count=True, limits=emulator.Limits(10**9, threads, l2_bytes=l2_bytes),
    )  # fmt: skip
    assert run.fault is None
    return run.counters.dram_read_sectors, run.counters.read_sectors_unique


def lru(at: np.ndarray, capacity: int) -> int:
    """Misses of the gathers and of the indices, each block reading a sector once."""
    cache: OrderedDict[tuple[str, int], None] = OrderedDict()
    missed = 0
    indices = at.reshape(PASSES, BLOCKS, 32)
    for block in range(BLOCKS):
        seen = set()
        for k in range(PASSES):
            where = (k * BLOCKS + block) * 32
            wanted = [("at", (4 * (where + lane)) // 32) for lane in range(32)]
            wanted += [("x", 4 * int(i) // 32) for i in indices[k, block]]
            for sector in wanted:
                if sector in seen:
                    continue
                seen.add(sector)
                missed += sector not in cache
                cache[sector] = None
                cache.move_to_end(sector)
                if len(cache) > capacity:
                    cache.popitem(last=False)
    return missed


@pytest.fixture
def random_indices():
    return np.random.default_rng(1).integers(0, 1 << 14, (PASSES, BLOCKS * 32))


def test_data_that_fit_are_read_once(random_indices):
    found, distinct = missed(random_indices, 1 << 14, 1 << 30)
    assert found == distinct


@pytest.mark.parametrize("capacity", [256, 1024, 2048])
def test_it_is_an_lru(random_indices, capacity):
    """The order within a block differs a little, so a few sectors at the brink may, too."""
    found, distinct = missed(random_indices, 1 << 14, 32 * capacity)
    assert found == pytest.approx(lru(random_indices, capacity), rel=0.01)
    assert found > distinct


def test_a_sweep_over_more_than_the_cache_always_misses():
    """Every block reads the same 8192 sectors in order, a sixteenth at a time."""
    lanes = np.arange(BLOCKS * 32)
    at = np.array([(lanes * 8 + k * BLOCKS * 256) % (1 << 16) for k in range(PASSES)])
    found, distinct = missed(at, 1 << 16, 32 * 4096)
    assert found == distinct  # each sector belongs to one block: nothing is read again


def test_the_figure_does_not_depend_on_the_threads(random_indices):
    one, two = (missed(random_indices, 1 << 14, 32 * 512, threads)[0] for threads in (1, 2))
    assert one == two


def test_a_full_log_gives_no_figure(random_indices, monkeypatch):
    monkeypatch.setattr("optiml_magic.emulator.launch.ROOM", 100)
    assert missed(random_indices, 1 << 14, 32 * 512)[0] is None
    assert caches.ROOM > 100


def test_an_array_that_is_changed_in_place_counts_once() -> None:
    source = 'extern "C" __global__ void k(float* x) { x[blockIdx.x * 32 + threadIdx.x] += 1; }'
    memory = emulator.Memory()
    address = memory.allocate(64 * 1024)
    run = module_of(source).launch(
        "k", (512, 1, 1), (32, 1, 1), dynamic_shared=0,
        arguments=[address.to_bytes(8, "little")],
        memory=memory, count=True, limits=emulator.Limits(10**9, 2, l2_bytes=96 * 1024),
    )  # fmt: skip
    assert run.fault is None
    assert run.counters.dram_read_sectors == run.counters.read_sectors_unique == 2048
