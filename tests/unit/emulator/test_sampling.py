"""Counts from some blocks beside those of the whole grid."""

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.emulator.sampling import spread

from .conftest import module_of

SOURCE = r"""extern "C" {
__global__ void transpose(const float* a, float* out, int rows, int cols) {
  __shared__ float t[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < cols && y < rows) t[threadIdx.y][threadIdx.x] = a[y * cols + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x; y = blockIdx.x * 16 + threadIdx.y;
  if (x < rows && y < cols) out[y * rows + x] = t[threadIdx.x][threadIdx.y];
}
__global__ void trips(const int* n, int* out) {
  int i = blockIdx.x * 64 + threadIdx.x, sum = 0;
  for (int k = 0; k < n[blockIdx.x]; k++) sum += sum * k + i;
  out[i] = sum;
}
__global__ void increment(int* out, const float* table, float* sink) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[i]++;
  sink[i] = table[threadIdx.x];
}
}"""


def launch(kernel, grid, block, *arguments, sample=None, threads=2):
    """The run, and the arrays as it left them."""
    memory, raw, addresses = emulator.Memory(), [], []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            addresses.append(memory.allocate(argument.nbytes))
            memory.view(addresses[-1])[:] = argument.reshape(-1).view(np.uint8)
            raw.append(addresses[-1].to_bytes(8, "little"))
        else:
            raw.append(argument.tobytes())
    run = module_of(SOURCE).launch(
        kernel, grid, block, dynamic_shared=0, arguments=raw, memory=memory, count=True,
        limits=emulator.Limits(10**10, threads, sample=sample),
    )  # fmt: skip
    return run, [memory.view(address).view(np.int32) for address in addresses]


def transposed(sample=None, threads=2, rows=1000, cols=1210):
    a, out = np.ones((rows, cols), np.float32), np.zeros((cols, rows), np.float32)
    grid = (-(-cols // 16), -(-rows // 16), 1)
    arguments = (a, out, np.int32(rows), np.int32(cols))
    return launch("transpose", grid, (16, 16, 1), *arguments, sample=sample, threads=threads)


def near(got: float, wanted: float, error: float) -> bool:
    return abs(got - wanted) <= error * wanted + 1


@pytest.mark.parametrize("complete", [True, False])
def test_a_regular_grid_is_known_from_some_of_its_blocks(complete):
    sample = emulator.Sample(3_000_000, complete=complete)
    whole, (_, out) = transposed()
    some, (_, found) = transposed(sample)
    whole, some = whole.counters, some.counters
    assert whole.sampled is None
    assert 128 <= some.sampled.blocks < some.sampled.of / 2
    assert some.sampled.of == 76 * 63
    error = some.sampled.error
    assert 0 <= error < 0.01
    assert near(some.warp_instructions, whole.warp_instructions, error)
    assert near(some.thread_instructions, whole.thread_instructions, error)
    assert some.warp_instructions == sum(some.by_class.values())
    for one, other in zip(some.memory, whole.memory, strict=True):
        assert near(one.sectors, other.sectors, error)
        assert near(one.wavefronts, other.wavefronts, error)
    assert near(some.read_sectors_unique, whole.read_sectors_unique, 0.05)
    assert near(some.write_sectors_unique, whole.write_sectors_unique, 0.05)
    assert np.array_equal(out, found) == complete


def test_a_sample_is_the_same_on_any_number_of_threads():
    sample = emulator.Sample(3_000_000, complete=False)
    assert transposed(sample, 1)[0].counters == transposed(sample, 2)[0].counters


def test_a_grid_within_the_budget_is_counted_whole():
    sample = emulator.Sample(10**9, complete=False)
    whole, (_, out) = transposed()
    some, (_, found) = transposed(sample)
    assert some.counters == whole.counters
    np.testing.assert_array_equal(out, found)


def test_blocks_of_different_length_show_in_the_error():
    """One block in fifty runs a thousand times longer; the interval has to hold the truth."""
    rng = np.random.default_rng(3)
    n = np.where(rng.random(4000) < 0.02, 5000, 5).astype(np.int32)
    out = np.zeros(4000 * 64, np.int32)
    whole = launch("trips", (4000, 1, 1), (64, 1, 1), n, out)[0].counters
    sample = emulator.Sample(20_000_000, complete=False)
    some = launch("trips", (4000, 1, 1), (64, 1, 1), n, out, sample=sample)[0].counters
    assert some.sampled.error > 0.1
    assert near(some.thread_instructions, whole.thread_instructions, some.sampled.error)


def test_every_block_runs_at_most_once():
    out, sink = np.zeros(64 * 2000, np.int32), np.zeros(64 * 2000, np.float32)
    table = np.ones(64, np.float32)
    for sample in (
        emulator.Sample(200_000, complete=False),
        emulator.Sample(200_000, complete=True),
    ):
        run, (left, _, _) = launch(
            "increment", (2000, 1, 1), (64, 1, 1), out, table, sink, sample=sample
        )
        assert left.sum() == 64 * (2000 if sample.complete else run.counters.sampled.blocks)
        assert left.max() == 1
        # What all blocks share does not grow with the grid; what is theirs does.
        assert run.counters.read_sectors_unique == 2000 * 8 + 8


@pytest.mark.parametrize("grid", [(300, 1, 1), (17, 20, 1), (5, 6, 12), (1, 400, 1)])
def test_the_strata_hold_every_block_once(grid):
    edges, interior = spread(grid)
    x, y, z = grid
    assert sorted([*edges, *interior]) == list(range(x * y * z))
    assert len(interior) == max(x - 1, 1) * max(y - 1, 1) * max(z - 1, 1)
    assert x * y * z - 1 in edges[:1]
