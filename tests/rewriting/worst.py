"""Kernels that a rule got wrong once, cut down to what it stumbled over, and traps of that kind."""

from __future__ import annotations

from dataclasses import replace

from .writing import Array, Made

_HEAD = """\
#pragma optiml launch row_work grid(cdiv(rows, 32)) block(32)
__global__ void row_work(const float* a, const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
"""
_SIZES = {"rows": 33, "cols": 37}, {"rows": 5, "cols": 8}


def _rows(
    name: str, body: str, *, head: str = _HEAD, exact: bool = True, wide: bool = False
) -> Made:
    """A thread for every row; ``wide`` where it writes the whole row."""
    arrays = {
        "a": Array("f4", ("rows", "cols")),
        "x": Array("f4", ("cols",)),
        "out": Array("f4", ("rows", "cols") if wide else ("rows",), "zeros"),
    }
    return Made(name, f"{head}{body}}}\n", arrays, *_SIZES, exact=exact)


#: What rules got wrong.
WORST: tuple[Made, ...] = (
    # What memory says of all items alike begins a loop around them.
    Made(
        "bags_of_a_block_each",
        "#pragma optiml launch bags grid(cdiv(w, 32), n) block(32)\n"
        "__global__ void bags(const float* table, const int* at, const int* starts, float* out, "
        "int n, int w, int m, int v) {\n"
        "    int c = blockIdx.x * 32 + threadIdx.x, bag = blockIdx.y;\n    if (c >= w) return;\n"
        "    int start = starts[bag], stop = starts[bag + 1];\n    float s = 0.0f;\n"
        "    for (int k = start; k < stop; k++) s += table[at[k] * w + c];\n"
        "    out[bag * w + c] = s;\n}\n",
        {
            "table": Array("f4", ("v", "w")),
            "at": Array("i4", ("m",), "below v"),
            "starts": Array("i4", ("n + 1",), "starts m"),
            "out": Array("f4", ("n", "w"), "zeros"),
        },
        {"n": 5, "w": 68, "m": 20, "v": 9},
        {"n": 3, "w": 37, "m": 8, "v": 4},
    ),
    # A thread's index that is made a float where it is spelled is not the index itself.
    Made(
        "index_as_a_float",
        "#pragma optiml launch tilted grid(cdiv(w, 32), cdiv(h, 2)) block(32, 2)\n"
        "__global__ void tilted(const float* a, float* out, int w, int h) {\n"
        "    if (blockIdx.x * 32 + threadIdx.x >= w) return;\n"
        "    int y = blockIdx.y * 2 + threadIdx.y;\n    if (y >= h) return;\n    float s = 0.0f;\n"
        "    for (int k = 0; k < w; ++k) s += a[y * w + k] * "
        "cosf((float)(blockIdx.x * 32 + threadIdx.x) / w);\n"
        "    out[y * w + blockIdx.x * 32 + threadIdx.x] = s;\n}\n",
        {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")},
        {"w": 37, "h": 9},
        {"w": 5, "h": 3},
        exact=False,
    ),
    # A loop around the items that ends where a local says which a part before it had for itself.
    Made(
        "as_far_as_the_row_behind_all_rows",
        "#pragma optiml launch far grid(cdiv(d * n, 64)) block(64)\n"
        "__global__ void far(const float* q, const float* x, float* out, int n, int d) {\n"
        "    unsigned int t = blockDim.x * blockIdx.x + threadIdx.x;\n    if (t >= d * n) return;\n"
        "    int c = t / n, i = t % n;\n    float top = -1e30f, all = 0.0f;\n"
        "    for (int j = 0; j < n; j++) {\n        if (j == i) continue;\n        float s = 0.0f;\n"
        "        for (int e = 0; e < d; ++e) s += fabsf(q[i * d + e] - x[j * d + e]);\n"
        "        top = fmaxf(top, s);\n    }\n"
        "    for (int j = 0; j < i + 1; ++j) all += q[i * d] * x[j * d + c];\n"
        "    out[i * d + c] = all + top;\n}\n",
        {
            "q": Array("f4", ("n", "d")),
            "x": Array("f4", ("n", "d")),
            "out": Array("f4", ("n", "d"), "zeros"),
        },
        {"n": 17, "d": 9},
        {"n": 9, "d": 4},
    ),
    # A loop around the items that begins where a local says which only they had.
    Made(
        "bags_from_the_column_on",
        "#pragma optiml launch bagged grid(cdiv(w * h, 256)) block(256)\n"
        "__global__ void bagged(const float* table, const int* at, const float* b, float* out, "
        "int w, int h) {\n"
        "    unsigned t = threadIdx.x + blockIdx.x * blockDim.x;\n    if (t >= w * h) return;\n"
        "    int x = t / h;\n    int y = t % h;\n    float s = 0.0f;\n"
        "    for (int k = y; k < h; ++k) if (b[k % w] > 0.0f) s += table[x + at[k] * w];\n"
        "    out[w * y + x] = s;\n}\n",
        {
            "table": Array("f4", ("h", "w")),
            "at": Array("i4", ("h",), "below h"),
            "b": Array("f4", ("w",)),
            "out": Array("f4", ("h", "w"), "zeros"),
        },
        {"w": 40, "h": 21},
        {"w": 7, "h": 9},
    ),
    # A whole number is compared, and what it was made of is kept.
    _rows(
        "greatest_whole_part",
        """\
    float best = -9.0f;
    for (int j = 0; j < cols; ++j) {
        int whole = a[row * cols + j];
        if (whole > best) best = a[row * cols + j];
    }
    out[row] = best;
""",
    ),
    # What a byte holds of the greatest is not the greatest of what bytes hold.
    _rows(
        "greatest_as_a_byte",
        """\
    int best = -999;
    for (int j = 0; j < cols; ++j) {
        if ((int)(a[row * cols + j] * 100) > best) {
            signed char byte = (int)(a[row * cols + j] * 100);
            best = byte;
        }
    }
    out[row] = best;
""",
    ),
    # Elements by vectors in the place of `*walk++`, which then stood still.
    _rows(
        "walk_beside_a_counter",
        """\
    float s = 1.0f;
    const float* walk = a + row * cols;
    for (int j = 0; j < cols; ++j) {
        float now = s + *walk++;
        if (x[j] > 0.0f) now = 1.0f;
        out[row * cols + j] = now;
        s = now;
    }
""",
        wide=True,
    ),
    # Of an unsigned index `at - 2` is near the end of its type, and a lane's first round beyond it.
    _rows(
        "window_that_wraps",
        """\
    unsigned at = row;
    float s = 0.0f;
    for (int j = max(at - 2, 0); j < min(at + 3, cols); ++j) s += a[row * cols + j];
    out[row] = s;
""",
    ),
    # The number of the row comes from a macro, so it differs from thread to thread all the same.
    _rows(
        "row_from_a_macro",
        """\
    if (row < rows) {
        float s = 0.0f;
        for (int j = 0; j < cols; ++j) s += a[row * cols + j];
        out[row] = s;
    }
""",
        head="#define GID (blockIdx.x * blockDim.x + threadIdx.x)\n"
        + "\n".join(_HEAD.splitlines()[:2])
        + "\n    int row = GID;\n",
    ),
    # Zero of a type of two words: `unsigned char(0)` is no expression.
    Made(
        "type_of_two_words",
        _HEAD.replace("const float* a, const float* x", "const unsigned char* a")
        + "    float s = 0;\n    for (int j = 0; j < cols; ++j) s = s + a[row * cols + j];\n"
        "    out[row] = s;\n}\n",
        {"a": Array("u1", ("rows", "cols")), "out": Array("f4", ("rows",), "zeros")},
        *_SIZES,
    ),
    # The sum is zero before the outer loop alone: what lanes combine in one round, they all have.
    _rows(
        "sum_of_two_loops",
        """\
    float s = 0.0f;
    for (int k = 0; k < 3; ++k) {
        for (int j = 0; j < cols; ++j) s += a[row * cols + j] * x[k % cols];
    }
    out[row] = s;
""",
    ),
    # A loop that begins behind its end has no round; an unsigned difference would have many.
    replace(
        _rows(
            "begins_behind_its_end",
            """\
    if (row < rows) {
        float s = 0.25f;
        for (int j = row;; ++j) {
            if (j >= cols) break;
            s += a[row * cols + j];
        }
        out[row] = s;
    }
""",
            head="\n".join(_HEAD.splitlines()[:2])
            + "\n    unsigned row = blockIdx.x * blockDim.x + threadIdx.x;\n",
        ),
        sizes={"rows": 70, "cols": 37},
    ),
    # Lanes step over an end that is not said as an order.
    *(
        _rows(
            f"ends_where_{name}",
            f"    float s = 0.0f;\n    for (int j = 0; {test}; ++j) {{\n"
            "        if (j % 2 == 0) s += a[row * cols + j];\n    }\n"
            "    out[row] = s;\n",
        )
        for name, test in (("equal", "!(j == cols)"), ("nothing_is_left", "cols - j"))
    ),
    # What is put before the store must come after what is put behind the loop.
    _rows(
        "store_on_the_line_of_the_loop",
        "float s = 0.0f;for(int j=0;j<cols;++j){s+=a[row*cols+j];}out[row]=s;\n",
    ),
    # Blocks of two axes on a grid of one: parts of all threads need room.
    replace(
        _rows("block_of_more_axes", "", wide=True),
        text="""\
#pragma optiml launch column grid(cdiv(cols, 32)) block(32)
__global__ void column(const float* a, const float* x, float* out, int rows, int cols) {
    int col = blockIdx.x * (16 * 2) + ((threadIdx.x % 16) + 16 * (threadIdx.x / 16));
    if (cols > col) {
        float s = x[0];
        for (unsigned i = 0; rows > i; ++i) {
            if (0.0f < x[i]) s += a[i * cols + col];
        }
        out[col] += s;
    }
}
""",
        arrays={
            "a": Array("f4", ("rows", "cols"), "numbers"),
            "x": Array("f4", ("rows",), "numbers"),
            "out": Array("f4", ("cols",), "zeros"),
        },
        sizes={"rows": 130, "cols": 37},
        others={"rows": 128, "cols": 5},
        inout=("out",),
    ),
    # Neighbours share what they load; what a reference changes each has for itself.
    *(
        replace(
            _rows(
                f"sum_by_{name}",
                f"    float s = 0.0f;\n    {by}\n    for (int d = -1; d <= 1; ++d) {{\n"
                "        int at = row + d;\n        if (at < 0 || at >= rows) continue;\n"
                f"        {to} += x[at];\n    }}\n    out[row] = s;\n",
            ),
            arrays={
                "a": Array("f4", ("rows", "cols"), "numbers"),
                "x": Array("f4", ("rows",), "numbers"),
                "out": Array("f4", ("rows",), "zeros"),
            },
        )
        for name, by, to in (
            ("reference", "float& t = s;", "t"),
            ("pointer", "float* t = &s;", "*t"),
        )
    ),
    # Not all outputs of a product have the same rounds.
    Made(
        "rounds_of_a_triangle",
        """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, float* out, int m, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    for (int k = 0; k <= i; ++k) s += a[i * m + k] * b[k * n + j];
    out[i * n + j] = s;
}
""",
        {
            "a": Array("f4", ("m", "m")),
            "b": Array("f4", ("m", "n")),
            "out": Array("f4", ("m", "n"), "zeros"),
        },
        {"m": 37, "n": 33},
        {"m": 5, "n": 8},
    ),
    # The loop is one of a function, which the kernel calls.
    Made(
        "rounds_of_a_function",
        """\
__device__ float along(const float* p, const float* x, int n) {
    float s = 0.0f;
    for (int j = 0; j < n; ++j) s += p[j] * x[j];
    return s;
}
#pragma optiml launch k grid(cdiv(rows, 32)) block(32)
__global__ void k(const float* a, const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) out[row] = along(a + row * cols, x, cols);
}
""",
        {
            "a": Array("f4", ("rows", "cols")),
            "x": Array("f4", ("cols",)),
            "out": Array("f4", ("rows",), "zeros"),
        },
        *_SIZES,
    ),
)

_SUM = "    for (int j = 0; j < cols; ++j) s += a[row * cols + j];\n"

#: Each has one thing that makes a plausible rewrite of it wrong.
TRAPS: tuple[Made, ...] = (
    _rows("bound_changed", f"    cols = cols / 2;\n    float s = 0.0f;\n{_SUM}    out[row] = s;\n"),
    _rows(
        "bound_shadowed",
        "    float s = 0.0f;\n    for (int r = 0; r < 2; ++r) {\n        int cols = r + 1;\n"
        "        for (int j = 0; j < cols; ++j) s += x[j] * a[row * cols + j];\n    }\n"
        "    out[row] = s;\n",
    ),
    _rows(
        "counter_moved",
        "    float s = 0.0f;\n    for (int j = 0; j < cols; ++j) {\n"
        "        s += a[row * cols + j];\n        if (a[row * cols + j] > 1.0f) ++j;\n    }\n"
        "    out[row] = s;\n",
    ),
    _rows(
        "counter_used_after",
        "    float s = 0.0f;\n    int j = 0;\n    for (; j < cols; ++j) {\n"
        "        if (x[j] > 1.5f) break;\n        s += a[row * cols + j];\n    }\n"
        "    out[row] = s + j;\n",
    ),
    _rows(
        "one_of_two_arrays",
        "    const float* p = row % 2 == 0 ? a + row * cols : x;\n    float s = 0.0f;\n"
        "    for (int j = 0; j < cols; ++j) s += p[j];\n    out[row] = s;\n",
    ),
    _rows(
        "pointer_moved_in_a_branch",
        "    const float* p = a + row * cols;\n    float s = 0.0f;\n"
        "    for (int j = 0; j < cols; ++j) {\n        if (x[j] > 0.0f) s += *p;\n"
        "        if (j % 3 != 2) ++p;\n    }\n    out[row] = s;\n",
    ),
    _rows(
        "last_of_equals",
        "    float best = -9.0f;\n    int at = 0;\n    for (int j = 0; j < cols; ++j) {\n"
        "        if (a[row * cols + j] >= best) {\n            best = a[row * cols + j];\n"
        "            at = j;\n        }\n    }\n    out[row] = at;\n",
    ),
    _rows(
        "neighbours_of_the_round",
        "    float s = 0.0f;\n    for (int j = 1; j < cols; ++j) {\n"
        "        float d = a[row * cols + j] - a[row * cols + j - 1];\n        s += d * d;\n    }\n"
        "    out[row] = s;\n",
    ),
    _rows(
        "what_the_round_before_wrote",
        "    for (int j = 0; j < cols; ++j) {\n"
        "        out[row * cols + j] = a[row * cols + j];\n"
        "        if (j > 0) out[row * cols + j] += 0.5f * out[row * cols + j - 1];\n    }\n",
        exact=False,
        wide=True,
    ),
    _rows(
        "sum_read_in_the_loop",
        "    float s = 0.0f;\n    for (int j = 0; j < cols; ++j) {\n"
        "        s += a[row * cols + j];\n        out[row * cols + j] = s;\n    }\n",
        wide=True,
    ),
    _rows(
        "sum_of_two_steps",
        "    float s = 1.0f;\n    for (int j = 0; j < cols; ++j) {\n"
        "        s += a[row * cols + j];\n        s = fmaxf(s, 0.0f);\n    }\n    out[row] = s;\n",
    ),
    _rows(
        "bound_of_the_thread",
        "    int end = min(cols, row + 1);\n    float s = 0.0f;\n"
        "    for (int j = 0; j < end; ++j) s += a[row * cols + j] * x[j];\n    out[row] = s;\n",
    ),
    _rows(
        "every_row_but_some",
        f"    if (row % 5 == 3) {{\n        out[row] = -1.0f;\n        return;\n    }}\n"
        f"    float s = 0.0f;\n{_SUM}    out[row] = s;\n",
    ),
    _rows(
        "integer_that_wraps",
        "    unsigned char s = 250;\n    for (int j = 0; j < cols; ++j) "
        "s += (unsigned char)(a[row * cols + j] > 0.0f);\n    out[row] = s;\n",
    ),
    _rows(
        "last_one_wins",
        "    for (int j = 0; j < cols; ++j) out[row] = a[row * cols + j];\n",
    ),
    _rows(
        "two_rows_a_thread",
        "    float s = 0.0f;\n    int other = (row + 1) % rows;\n"
        "    for (int j = 0; j < cols; ++j) s += a[row * cols + j] * a[other * cols + j];\n"
        "    out[row] = s;\n",
    ),
)
