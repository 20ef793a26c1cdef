"""What each operator does to a text."""

from __future__ import annotations

import pytest

from optiml_magic.testing.mutations import OPERATORS, mutants

TEXT = """\
__device__ float side(float v) { return v < 0.0f ? -v : v; }
__global__ void k(const float* a, double* d, int* bins, float* out, int rows, int cols, int* f) {
    __shared__ float tile[32][33];
    float sum = 0.0f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < cols; ++j) {
        sum += expf(a[i * cols + j]) * 2.0f;
    }
    tile[threadIdx.y][i] = sum;
    __syncthreads();
    if (i < rows && sum > 1.5f) {
        atomicAdd(&bins[i], 1);
        f[i] = i & 7;
        d[i] = d[i] / 3.0 - sum;
    }
    __threadfence();
    sum += __shfl_down_sync(0xffffffffu, sum, 16);
    out[i] = fmaxf(sum, tile[i][threadIdx.y]);
}
int main() { int z = 1 + 2; return z < 3; }
"""
LINES = {
    "off_by_one_comparison": "    for (int j = 0; j <= cols; ++j) {",
    "opposite_comparison": "    for (int j = 0; j >= cols; ++j) {",
    "wrong_arithmetic": "    int i = blockIdx.x * blockDim.x - threadIdx.x;",
    "wrong_logic": "    if (i < rows || sum > 1.5f) {",
    "wrong_bits": "        f[i] = i | 7;",
    "wrong_update": "        sum -= expf(a[i * cols + j]) * 2.0f;",
    "overwritten_sum": "        sum = expf(a[i * cols + j]) * 2.0f;",
    "operands_exchanged": "        d[i] = (sum) - (d[i] / 3.0);",
    "sign_dropped": "__device__ float side(float v) { return v < 0.0f ? v : v; }",
    "branches_exchanged": "__device__ float side(float v) { return v < 0.0f ? (v) : (-v); }",
    "wrong_function": "        sum += exp2f(a[i * cols + j]) * 2.0f;",
    "wrong_constant": "        sum += expf(a[i * cols + j]) * 2.002f;",
    "wrong_initial_value": "    float sum = 1;",
    "index_off_by_one": "        sum += expf(a[(i * cols + j) + 1]) * 2.0f;",
    "index_before": "        sum += expf(a[(i * cols + j) - 1]) * 2.0f;",
    "indices_exchanged": "    tile[i][threadIdx.y] = sum;",
    "row_and_column_exchanged": "        sum += expf(a[(j) * cols + (i)]) * 2.0f;",
    "stride_off_by_one": "        sum += expf(a[i * (cols + 1) + j]) * 2.0f;",
    "wrong_axis": "    int i = blockIdx.y * blockDim.x + threadIdx.x;",
    "wrong_size": "    for (int j = 0; j < rows; ++j) {",
    "thread_for_block": "    int i = threadIdx.x * blockDim.x + threadIdx.x;",
    "array_too_short": "    __shared__ float tile[(32) - 1][33];",
    "guard_dropped": "    if (true) {",
    "guard_of_a_value_dropped": "__device__ float side(float v) { return (-v); }",
    "half_of_a_condition": "    if ((i < rows)) {",
    "tail_skipped": "    for (int j = 0; j < (cols) / 4 * 4; ++j) {",
    "loop_cut_short": "    for (int j = 0; j < (cols) - 1; ++j) {",
    "loop_starts_late": "    for (int j = (0) + 1; j < cols; ++j) {",
    "loop_steps_too_far": "    for (int j = 0; j < cols; j += 2) {",
    "loop_left_early": "    break; }",
    "statement_dropped": "        ;",
    "barrier_dropped": "    ;",
    "fence_dropped": "    ;",
    "barrier_of_a_warp": "    __syncwarp();",
    "atomic_dropped": "        *(&bins[i]) = *(&bins[i]) + (1);",
    "wrong_atomic": "        atomicSub(&bins[i], 1);",
    "wrong_shuffle": "    sum += __shfl_up_sync(0xffffffffu, sum, 16);",
    "half_of_the_lanes": "    sum += __shfl_down_sync(0x0000ffffu, sum, 16);",
    "shared_by_one_thread": "     float tile[32][33];",
    "through_half": "        sum += __half2float(__float2half(expf(a[i * cols + j]) * 2.0f));",
    "through_bfloat16": "        sum += __bfloat162float(__float2bfloat16(expf(a[i * cols + j]) * 2.0f));",
    "through_tf32": "        sum += __uint_as_float(__float_as_uint(expf(a[i * cols + j]) * 2.0f) & 0xffffe000u);",
    "float_for_double": "        d[i] = (double)(float)(d[i] / 3.0 - sum);",
    "sum_in_half": "        sum = __half2float(__float2half(sum + (expf(a[i * cols + j]) * 2.0f)));",
    "fast_intrinsic": "        sum += __expf(a[i * cols + j]) * 2.0f;",
}


def changed(operator: str) -> list[str]:
    """The lines that its mutants have and the program has not."""
    before = TEXT.splitlines()
    found = []
    for mutant in mutants(TEXT):
        if mutant.operator == operator:
            new = [line for line in mutant.text.splitlines() if line not in before]
            found += [line for line in new if not line.startswith("#include")]
    return found


def test_there_is_a_line_for_each_operator() -> None:
    assert LINES.keys() == OPERATORS.keys()


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_plants_its_fault(operator: str) -> None:
    assert LINES[operator] in changed(operator)


def test_a_mutant_has_one_fault_and_a_name_of_its_own() -> None:
    found = list(mutants(TEXT))
    assert len({m.name for m in found}) == len(found)
    before = TEXT.splitlines()
    for mutant in found:
        after = [line for line in mutant.text.splitlines() if not line.startswith("#include")]
        assert len(after) == len(before)
        assert sum(one != two for one, two in zip(before, after, strict=True)) == 1, mutant.name


def test_code_of_the_host_is_left_alone() -> None:
    host = TEXT.splitlines()[-1]
    assert all(mutant.text.splitlines()[-1] == host for mutant in mutants(TEXT))
