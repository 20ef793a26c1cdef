"""What a host has done to a buffer when it first passes it, and to the numbers of a launch."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.hostcode import drop_host_code

KERNEL = """\
__global__ void k(const float* a, float* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] += a[i];
}
__global__ void g(float* d, int n) { if (threadIdx.x < n) d[threadIdx.x] = 3; }
void set(int& to) { to = 32; }
"""
#: Functions that launch it, by what calls them.
CALLED = {
    " run(": "void run(float* a, float* d, int n) { LAUNCH }\n",
    " fill_and_run(": "void fill_and_run(float* a, float* d, int n) { fill(d, n); LAUNCH }\n",
}
ALLOCATED = "int n = 1000; float *a, *d; cudaMalloc(&a, n * 4); cudaMalloc(&d, n * 4); "
CLEARED = f"{ALLOCATED}cudaMemset(d, 0, n * 4); "
LAUNCH = "k<<<(n + 255) / 256, 256>>>(a, d, n);"


def directives(body: str) -> str:
    called = "".join(text for call, text in CALLED.items() if call in body)
    before = KERNEL + called.replace("LAUNCH", LAUNCH)
    text, _ = drop_host_code(f"{before}int main() {{\n{body}\n}}\n")
    return "\n".join(line for line in text.splitlines() if line.startswith("#pragma"))


@pytest.mark.parametrize(
    "body",
    [
        CLEARED + LAUNCH,
        f"{ALLOCATED}for (int t = 0; t < 3; ++t) {{ cudaMemset(d, 0, n * 4); {LAUNCH} }}",
        f"{CLEARED}if (d == nullptr || !a) return 1; cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost); {LAUNCH}",
        f"{CLEARED}run(a, d, n);",
        f"Buffer s; {CLEARED.replace('&d', '&s.d').replace('(d', '(s.d')} s.n = n; {LAUNCH.replace(' d', ' s.d')}",
    ],
)  # fmt: skip
def test_a_buffer_that_nobody_else_touches_is_cleared(body: str) -> None:
    assert "zero(d)" in directives(body)


@pytest.mark.parametrize(
    "body",
    [
        f"{CLEARED}cudaMemcpy(d + 1, h, 4, cudaMemcpyHostToDevice); {LAUNCH}",
        f"{CLEARED}cudaMemcpy(&d[3], h, 4, cudaMemcpyHostToDevice); {LAUNCH}",
        f"{CLEARED}cudaMemcpy2D(d, 4, h, 4, 4, 9, cudaMemcpyHostToDevice); {LAUNCH}",
        f"{CLEARED}cublasSscal(handle, n, &by, d, 1); {LAUNCH}",
        f"{CLEARED}fill(d, n); {LAUNCH}",
        f"{CLEARED}d = a; {LAUNCH}",
        f"{CLEARED}std::swap(a, d); {LAUNCH}",
        f"{CLEARED}float* e = d; cudaMemcpy(e, h, 4, cudaMemcpyHostToDevice); {LAUNCH}",
        f"{CLEARED}g<<<1, threads(n)>>>(d, n); {LAUNCH}",  # a launch that is not read
        f"{CLEARED}fill_and_run(a, d, n);",
        f"{ALLOCATED}n = 8; cudaMemset(d, 0, n * 4); n = 1000; {LAUNCH}",
        f"{ALLOCATED}n > 3 && cudaMemset(d, 0, n * 4); {LAUNCH}",
        f"{ALLOCATED}n > 3 ? cudaMemset(d, 0, n * 4) : 0; {LAUNCH}",
        f"{ALLOCATED}goto on; cudaMemset(d, 0, n * 4); on: {LAUNCH}",
    ],
)
def test_a_buffer_that_others_may_have_filled_is_not(body: str) -> None:
    found = directives(body)
    assert "launch k grid(cdiv(n, 256)) block(256)" in found
    assert "zero(" not in found


@pytest.mark.parametrize("change", ["set(b);", "std::swap(b, n);", "in >> b;", "b *= 2;"])
def test_threads_that_somebody_else_decides_are_not_known(change: str) -> None:
    launch = "k<<<(n + b - 1) / b, b>>>(a, d, n);"
    assert "block(256)" in directives(f"int b = 256; {ALLOCATED}{launch}")
    assert "launch k" not in directives(f"int b = 256; {change} {ALLOCATED}{launch}")
