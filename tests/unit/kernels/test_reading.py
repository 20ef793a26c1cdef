"""What is read of a kernel: the spellings that are looked through, and what is not claimed."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.read import read
from optiml_magic.kernels.unit import lift

HEAD = "const float* a, const int* at, float* out, int n, int m"
ROW_OF_GROUP = (
    "auto b = cg::this_thread_block();out[b.group_index().x * blockDim.x + b.thread_index().x] = 1;"
)
ROW = "int row = blockIdx.x * blockDim.x + threadIdx.x; "


def reading(body, *, before="", head=HEAD, template="", given=(), **kwargs):
    unit = lift(f"{before}\n{template}__global__ void k({head}) {{\n{body}\n}}\n")
    return read(unit, unit.kernels[0], given, **kwargs)


def index(found, array, mode="load", nth=0):
    return str([x for x in found.accesses if (x.array, x.mode) == (array, mode)][nth].index)


PLACE = "blockDim.x*blockIdx.x + threadIdx.x"


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("", ROW + "out[row] = 1;"),
        ("#define ROW (blockIdx.x * blockDim.x + threadIdx.x)", "out[ROW] = 1;"),
        ("#define PUT(p, v) p[blockIdx.x * blockDim.x + threadIdx.x] = (v)", "PUT(out, 1.0f);"),
        ("__device__ int row() { return blockIdx.x * blockDim.x + threadIdx.x; }", "out[row()] = 1;"),
        ("__device__ void put(float* p, int i, float v) { p[i] = v; }", ROW + "put(out, row, 1);"),
        ("typedef unsigned int u; using F = float;",
         "u r = blockIdx.x * blockDim.x + threadIdx.x; F* p = out; p[r] = 1;"),
        ("", "int r; r = blockIdx.x * blockDim.x; r += threadIdx.x; out[r] = 1;"),
        ("", "int q = threadIdx.x; int& r = q; r += blockIdx.x * blockDim.x; out[q] = 1;"),
        ("", "float* p = out + blockIdx.x * blockDim.x; p += threadIdx.x; *p = 1;"),
        ("__device__ void advance(int& i, int by) { i += by; }",
         "int r = threadIdx.x; advance(r, blockIdx.x * blockDim.x); out[r] = 1;"),
        ("", "int r = 5; int* p = &r; *p = blockIdx.x * blockDim.x + threadIdx.x; out[r] = 1;"),
        ("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;",
         ROW_OF_GROUP),
        ("struct Pair { int x, y; };",
         "Pair p; p.x = threadIdx.x; p.y = blockIdx.x * blockDim.x; out[p.x + p.y] = 1;"),
        ("", "int r = (blockIdx.x) * (blockDim.x) + (threadIdx.x); out[r] = 1;"),
        ("", ROW + "int n2 = (n) + (m); if ((row)<n2 && (m)>0) out[row] = 1;"),
    ],
)  # fmt: skip
def test_an_index_is_the_same_in_every_spelling(before, body):
    assert index(reading(body, before=before), "out", "store") == PLACE


MATRICES = """
struct M { float e[3][2]; };
__device__ M of(const float* p) { M r; for (int i = 0; i < 6; ++i) r.e[i / 2][i % 2] = p[i]; return r; }
__device__ M twice(const M& m) {
    M r;
    for (int i = 0; i < 3; ++i) for (int j = 0; j < 2; ++j) r.e[i][j] = 2 * m.e[i][j];
    return r;
}
"""


def test_a_reference_to_what_a_function_returns_leads_nowhere_else():
    body = ROW + "M x = twice(twice(of(a + 6 * row))); out[row] = x.e[1][1];"
    found = reading(body, before=MATRICES)
    assert all(access.array for access in found.accesses)
    assert not found.unclear
    assert {a.array for a in found.accesses if a.space == "global"} == {"a", "out"}
    assert {str(a.index) for a in found.of("r.e") if len(a.loops) > 1} == {"2*k1 + k2", "2*k3 + k4"}


@pytest.mark.parametrize("result", ["P&", "R", "auto&", "decltype(auto)"])
def test_a_reference_to_what_a_function_leads_to_leads_there(result):
    before = (
        f"struct P {{ float x; }}; using R = P&; __device__ {result} at(P* p, int i)"
        " { return (p[i]); } __device__ void put(P& p) { p.x = 1; }"
    )
    found = reading(ROW + "put(at(p, row));", before=before, head="P* p")
    assert found.written


def test_a_template_parameter_is_what_the_launch_gives():
    body = "out[blockIdx.x * W + threadIdx.x] = T(1);"
    given = reading(body, template="template <typename T, int W>\n", given=("float", "16"))
    assert index(given, "out", "store") == "16*blockIdx.x + threadIdx.x"
    assert index(reading(body, template="template <typename T, int W>\n"), "out", "store") == (
        "W*blockIdx.x + threadIdx.x"
    )


LOOPS = [
    "for (int k = 0; k < n; ++k) s += a[row * n + k];",
    "for (int k = 0; k != n; k++) s += a[row * n + k];",
    "for (int k = 0; k <= n - 1; k += 1) s += a[row * n + k];",
    "int k = 0; while (k < n) { s += a[row * n + k]; k++; }",
    "int k; for (k = 0; k < n; ++k) { s = s + a[row * n + k]; }",
    "for (int k = 0;; ++k) { if (k >= n) break; s += a[row * n + k]; }",
    "int k = 0; while (true) { if (k >= n) break; s += a[row * n + k++]; }",
    "const float* p = a + row * n; for (int k = 0; k < n; ++k) s += *p++;",
    "for (const float* p = a + row * n; p != a + (row + 1) * n; ++p) s += *p;",
    "for (int k = 0; n > k; ++k) s = a[row * n + k] + s;",
]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_is_the_same_in_every_spelling(loop):
    found = reading(ROW + "float s = 0.0f; if (row >= m) return; " + loop + " out[row] = s;")
    (axis,) = found.axes
    (load,) = found.of("a")
    (reduction,) = found.reductions
    assert (str(axis.stop - axis.start), str(axis.step), axis.exact) == ("n", "1", True)
    assert str(found.subscript(load)) == f"[{PLACE}][{axis.name}]"
    assert found.subscript(load).proved
    assert (reduction.place, reduction.op, reduction.axes) == ("s", "+", (axis.name,))
    assert reduction.start is not None
    assert not reduction.exact


SUM = "for (int k = 0; k < n; ++k) s += a[k];"


@pytest.mark.parametrize(
    ("nest", "place"),
    [
        ("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) { *p = 1; ++p; }", "k0*n + k1"),
        ("for (int i = 0; i < n; ++i) for (int j = n; j > 0; j--) *p++ = 1;", "k0*n + k1"),
        ("for (int i = 1; i <= n; ++i) { for (int j = 0; j < n; ++j) *p++ = 1; p += m; }",
         "k0*m + k0*n + k1"),
        ("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) for (int l = 0; l < n; ++l) *p++ = 1;",
         "k0*n*n + k1*n + k2"),
        ("if (m >= 0) for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) *p++ = 1;",
         "k0*m + k1"),
        ("for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) *p++ = 1;", "None"),
        ("for (int i = 0; i < n; ++i) for (int j = 0; j < n - 2; ++j) *p++ = 1;", "None"),
        ("for (int i = 0; i < n; ++i) for (int j = 0; j < n; j += 2) *p++ = 1;", "None"),
        ("int i = 0; do { for (int j = 0; j < n; ++j) *p++ = 1; } while (++i < n);", "None"),
        ("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) { if (j == m) break; *p++ = 1; }",
         "None"),
    ],
)  # fmt: skip
def test_a_pointer_that_goes_through_a_nest_is_known_where_its_rounds_are(nest, place):
    """Of loops within that may have less than no rounds it is not: these are none."""
    assert index(reading(f"float* p = out; {nest}"), "out", "store") == place


@pytest.mark.parametrize(
    ("body", "known"),
    [
        (f"float s = 0; {SUM} out[row] = s;", True),
        (f"float s; if (row < m) {{ s = 0; {SUM} out[row] = s; }}", True),
        (f"float s = 0; if (row >= m) return; {SUM} out[row] = s;", True),
        (f"float s = 1; if (row < m) s = 0; else return; {SUM} out[row] = s;", True),
        (f"float s = 1; if (a[row] > 0) s = 0; {SUM} out[row] = s;", False),
        (f"float s = 1; if (a[row] > 0) {{ s = 0; }} else {{ s = 2; }} {SUM} out[row] = s;", False),
        (f"float s = 1; if (a[row] > 0 && (s = 0) == 0) out[0] = 1; {SUM} out[row] = s;", False),
        (f"float s = 1, t = a[row] > 0 ? (s = 0) : 2; {SUM} out[row] = s + t;", False),
        (f"for (int j = 0; j < m; ++j) {{ float s = 0; {SUM} out[j] = s; }}", True),
        (f"float s = 0; for (int j = 0; j < m; ++j) {{ {SUM} out[j] = s; }}", False),
        (f"float s = 0; for (int j = 0; j < m; ++j) {{ {SUM} out[j] = s; s = 0; }}", False),
    ],
)
def test_what_a_sum_begins_with_is_what_it_holds_each_time(body, known):
    found = reading(ROW + body).reductions
    assert [r.start is not None for r in found if r.place == "s"] == [known]


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("(row * n + k) / 2", "/(blockDim.x*blockIdx.x*n + n*threadIdx.x, 2) + k0"),
        ("(row * n + k) >> 1", "/(blockDim.x*blockIdx.x*n + n*threadIdx.x, 2) + k0"),
        ("(row * n + 2 * k + 1) / 4", "/(1 + blockDim.x*blockIdx.x*n + n*threadIdx.x, 4) + k0"),
        ("k / 2", "k0"),
        ("(k + 8 * m) / 8", "/(2*k0 + 8*m, 8)"),  # nobody knows whether m is negative
        ("(k - row) / 2", "/(-1*blockDim.x*blockIdx.x + 2*k0 - 1*threadIdx.x, 2)"),
        ("(row * n + k) % 2", "%(blockDim.x*blockIdx.x*n + n*threadIdx.x, 2)"),
    ],
)
def test_a_quotient_goes_on_with_the_rounds_that_step_by_its_divisor(place, found):
    read_ = reading(
        ROW + f"float s = 0; for (int k = 0; k < n; k += 2) s += a[{place}]; out[0] = s;"
    )
    assert index(read_, "a") == found


def test_a_quotient_above_the_number_of_a_round_is_of_what_is_not_negative():
    body = "for (int k = 0; k < n / 2; ++k) s += a[(row * n + 2 * k) / 2];"
    found = reading(f"{ROW} float s = 0; {body} out[0] = s;")
    assert index(found, "a") == "/(blockDim.x*blockIdx.x*n + n*threadIdx.x, 2) + k0"


@pytest.mark.parametrize(
    ("loop", "place"),
    [
        ("for (int k = 0; k < n; ++k, c += 3)", None),  # 256 is 0 again
        ("for (; c < n; ++c)", "k0"),
        ("for (;; ++c) { if (c >= n) break;", "k0"),
    ],
)
def test_a_byte_that_no_test_holds_back_is_not_followed(loop, place):
    body = f"unsigned char c = 0; float s = 0; {loop} s += a[c]; {'}' * loop.count('{')}"
    assert (index(reading(body), "a") == place) == (place is not None)


@pytest.mark.parametrize(
    ("before", "function", "op"),
    [
        ("", "max", "max"),
        ("", "std::max", "max"),
        ("struct Ops { static __device__ float max(float, float); };", "Ops::max", None),
        ("template <class T> struct Ops { static __device__ T max(T, T); };", "Ops<float>::max", None),
        ("template <template <class> class> struct Of; struct Ops { static float max(float, float); };",
         "Ops::max", None),
        ("struct P { static __device__ float max(float, float); }; using Ops = P;", "Ops::max", None),
        ("", "[](float x, float y) { return x; }", None),
    ],
)  # fmt: skip
def test_a_function_of_a_type_is_none_of_cuda(before, function, op):
    named = f"auto max = {function}; " if function.startswith("[") else ""
    loop = "for (int k = 0; k < n; ++k) s = {}(s, a[k]);".format("max" if named else function)
    found = reading(f"{named}float s = 0; {loop} out[0] = s;", before=before)
    assert [r.op for r in found.reductions] == ([op] if op else [])


def test_whole_numbers_of_the_round_are_added_up_and_not_stepped_by():
    found = reading("int s = 0; for (int k = 0; k < n; ++k) { int x = k * k; s += x; } out[m] = s;")
    assert [(r.place, r.op) for r in found.reductions] == [("s", "+")]


@pytest.mark.parametrize(
    ("update", "op"),
    [
        ("if (x > v) v = x;", ">"),
        ("if (v < x) { v = x; }", ">"),
        ("v = x > v ? x : v;", ">"),
        ("v = v < x ? v : x;", "<"),
        ("v = fmaxf(v, x);", "max"),
        ("v = fmaf(x, x, v);", "+"),
        ("v -= x;", "+"),
        ("v *= x;", "*"),
        ("if (x > v) { v = x; best = k; }", ">"),
    ],
)
def test_reductions_by_function_by_comparison_and_with_their_place(update, op):
    found = reading(
        ROW + "float v = a[row]; int best = 0;"
        f"for (int k = 1; k < n; ++k) {{ float x = a[row * n + k]; {update} }}"
        "out[row] = v + best;"
    )
    (reduction,) = [r for r in found.reductions if r.place == "v"]
    assert reduction.op == op
    assert reduction.start is not None
    assert reduction.carried == (("best",) if "best = k" in update else ())


@pytest.mark.parametrize(
    ("round_", "test"),
    [
        ("if (a[k] >= v) v = a[k];", ">="),
        ("const bool more = a[k] > v; if (more) v = a[k];", ">"),
        ("const float x = a[k]; bool more; more = v < x; if (more) { v = x; p = k; }", ">"),
        ("const bool less = a[k] <= v; if (!less) v = a[k];", "!<="),
        ("v = a[k] <= v ? v : a[k];", "!<="),
        ("const bool more = a[k] > v; v = more ? a[k] : v;", ">"),
        ("if (a[n + k] > v) { const int i = n + k; const float x = a[i]; v = x; p = i; }", ">"),
        # What is not one: the name holds what was there before.
        ("const bool more = a[k] > v; v += 1; if (more) v = a[k];", None),
        ("float x = a[k]; x += 1; if (a[k] > v) v = x;", None),
        ("float x = b[k]; b[k] = 0; if (b[k] > v) v = x;", None),
        ("const bool more = a[k] > v; if (more) v = a[k]; p += more;", None),
        ("float y = v; const float x = a[k]; if (x > v) { v = x; p = y; }", None),
        ("if (a[k] > v) { float y = v; v = a[k]; w = y; }", None),
        ("if (a[k] > v) { w = v; v = a[k]; }", None),
        ("float x = 0; if (k & 1) x = a[k]; if (a[k] > v) v = x;", None),
    ],
)
def test_what_is_selected_is_seen_through_names(round_, test):
    found = reading(
        f"float v = a[0], w = 0; int p = 0; for (int k = 1; k < n; ++k) {{ {round_} }}"
        "out[0] = v + p + w;"
    )
    selected = [r for r in found.reductions if r.place == "v"]
    assert [r.tests for r in selected] == ([(test,)] if test else [])


def test_an_access_knows_the_call_that_makes_it():
    found = reading("out[0] = twice(a, n) + twice(a, 1) + a[2];", before=(
        "__device__ float one(const float* p, int i) { return p[i]; }\n"
        "__device__ float twice(const float* p, int i) { return 2 * one(p, i); }\n"
    ))  # fmt: skip
    first, second, third = found.of("a")
    assert first.call is not second.call
    assert first.node is second.node
    assert {type(access.own).__name__ for access in (first, second)} == {"Call"}
    assert third.call is None
    assert third.own is third.node


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < n; ++k) { v += a[k]; out[k] = v; }",  # a scan
        "for (int k = 0; k < n; ++k) { v += a[k]; v *= 2; }",
        "for (int k = 0; k < n; ++k) { v = a[k]; }",
        "for (int k = 0; k < n; ++k) { v += v * a[k]; }",
    ],
)
def test_what_is_read_or_set_in_its_loop_is_no_reduction(body):
    found = reading("float v = 0;" + body + "out[n] = v;")
    assert [r for r in found.reductions if r.place == "v"] == []


def test_a_whole_number_that_takes_in_fractions_is_no_reduction():
    found = reading("int v = 0; for (int k = 0; k < n; ++k) v += a[k] * 0.5f; out[n] = v;")
    assert not found.reductions


def test_rows_whose_bounds_are_loaded():
    found = reading(
        ROW + "if (row < n) { float s = 0; for (int k = at[row]; k < at[row + 1]; k++) s += a[k];"
        "out[row] = s; }"
    )
    (axis,) = found.axes
    assert str(axis.start) == f"at[{PLACE}]:int"
    assert str(axis.stop) == f"at[1 + {PLACE}]:int"
    assert axis.exact
    assert index(found, "a") == f"at[{PLACE}]:int + k0"


def test_a_loaded_index_is_unknown_where_the_kernel_writes_it():
    body = "at[threadIdx.x] = 1; out[at[n]] = 1;"
    found = reading(body, head="float* out, int* at, int n")
    (store,) = found.of("out")
    assert found.subscript(store) is None


def test_rows_as_long_as_a_number_that_a_guard_says():
    """``49 * i + k`` of a matrix of 48 columns is row i and column i + k."""
    found = reading(
        ROW
        + "if (row < 48) for (int k = row; k < 48; k++) { out[row * 48 + k] = a[k * 48 + row]; }"
        "if (row < 48) for (int k = row; k < 60; k++) out[row * 49 + k] = 0;"
    )
    (load,), (store, other) = found.of("a"), found.of("out")
    column = PLACE.replace(" + ", " + k0 + ")
    assert str(found.subscript(load)) == f"[{column}][{PLACE}]"
    assert str(found.subscript(store)) == f"[{PLACE}][{column}]"
    assert found.subscript(store).proved
    assert len(found.subscript(other).digits) == 1


def test_ranges_from_negated_disjunctions_with_equality():
    found = reading(
        "int x = threadIdx.x, y = blockIdx.x;"
        "if (x == 0 || y == 0 || x == n - 1 || y == m - 1 || x >= n || y >= m) return;"
        "out[(y - 1) * n + (x + 1)] = a[(y + 1) * n + x - 1];"
    )
    (load,), (store,) = found.of("a"), found.of("out")
    assert str(found.subscript(load)) == "[1 + blockIdx.x][-1 + threadIdx.x]"
    assert str(found.subscript(store)) == "[-1 + blockIdx.x][1 + threadIdx.x]"
    assert found.subscript(load).proved
    assert found.subscript(store).proved


def test_value_ranges_follow_from_types():
    found = reading("bins[p[threadIdx.x]] += 1;", head="const unsigned char* p, int* bins")
    (name,) = [s for s in found.symbols.table.values() if s.kind == "load"]
    assert (name.low, name.high) == (0, 255)


@pytest.mark.parametrize(
    "body",
    [
        "int i = FROM_A_HEADER; out[i] = 1;",
        "int i = unseen(n); out[i] = 1;",
        "int i = 3; unseen(i); out[i] = 1;",
        "int i = 3; auto f = [&]() { i = n; }; unseen(f); out[i] = 1;",
        'int i = 3; asm("mov.u32 %0, %1;" : "=r"(i) : "r"(n)); out[i] = 1;',
        "int i = 3; while (a[i] > 0) { if (a[i] > 1) i = n; else i++; } out[i] = 1;",
        "int i = 3; switch (n) { case 1: if (a[0] > 1) break; i = 4; } out[i] = 1;",
        "int i = 3, j = 4; int* p = n > 3 ? &i : &j; *p = 7; out[i] = 1;",
        "int i = 3; int* p = &i; unseen(p); out[i] = 1;",
    ],
)
def test_what_is_not_known_is_no_constant(body):
    found = reading(body)
    (store,) = [x for x in found.of("out") if x.mode == "store"]
    assert found.subscript(store) is None
    assert not found.uniform(store.index)


def test_uniform_is_what_all_threads_of_a_block_share():
    found = reading("if (n > 3) out[0] = 1; if (threadIdx.x < n) out[1] = 1; if (at[n]) out[2] = 1;"
                    "if (at[threadIdx.x]) out[3] = 1; if (STRANGE) out[4] = 1;")  # fmt: skip
    assert [found.uniform(g.condition) for g in found.guards] == [True, False, True, False, False]


def test_names_for_parts_of_a_value_are_not_the_value_and_hide_others():
    found = reading("int p = 3, q = 4; { auto [p, q] = pairs[n]; out[p] = q; } out[q] = p;")
    assert [v.reason for v in found.verbatim] == ["a declaration of names for parts of a value"]
    within, behind = (x for x in found.of("out") if x.mode == "store")
    assert found.subscript(within) is None
    assert str(behind.index) == "4"


def test_text_that_is_not_understood_is_kept_and_its_effects_are_told():
    found = reading("switch (n) { case 1: int t = a[3]; default: out[1] = 2; out[0] = t; }")
    assert [v.reason for v in found.verbatim] == ["switch statement"]
    assert {(x.array, x.mode) for x in found.accesses} == {("out", "store"), ("a", "load")}
    assert all(x.verbatim for x in found.accesses)


SWITCHES = {
    """switch (n) {
        case 1: out[i] = 1; break;
        case 'A': case M: out[m] = a[i]; break;
        default: out[0] = 2; }""":
    "if (n == 1) out[i] = 1; else if (n == 'A' || n == M) out[m] = a[i]; else out[0] = 2;",
    "switch (n) { default: break; case 1: { out[i] = 1; break; } }": "if (n == 1) out[i] = 1;",
    "switch (n++) { case 1: out[i] = 1; break; case 2: out[n] = chosen; }":
    "int c = n++; if (c == 1) out[i] = 1; else if (c == 2) out[n] = chosen;",
    "switch (a[i]) { case 2: out[i] = 1; }": "const auto c = a[i]; if (c == 2) out[i] = 1;",
    "switch (int k = n + 1; k) { case 3: return; } out[i] = 1;":
    "if (n + 1 == 3) return; out[i] = 1;",
    """for (int j = 0; j < n; j++) {
        switch (m) { case 0: continue; case 1: for (;;) break; }
        out[j] = 1; }""":
    "for (int j = 0; j < n; j++) { if (m == 0) continue; out[j] = 1; }",
    "switch (n) { case 3: out[2] = 1; case 2: out[1] = 1; case 1: out[0] = 1; }":
    """int c = n; if (c == 3) out[2] = 1; if (c == 3 || c == 2) out[1] = 1;
       if (c == 3 || c == 2 || c == 1) out[0] = 1;""",
    "switch (n) { case 1: out[i] = 1; default: out[m] = 2; break; case 4: case 5: out[0] = a[i]; }":
    """int c = n; if (c == 1) out[i] = 1; if (!(c == 4 || c == 5)) out[m] = 2;
       if (c == 4 || c == 5) out[0] = a[i];""",
    "switch (n) { default: out[0] = 1; case 1: out[1] = 1; }":
    "int c = n; if (!(c == 1)) out[0] = 1; out[1] = 1;",
    "switch (n) { default: out[0] = 1; }": "out[0] = 1;",
    """for (int j = 0; j < n; j++) {
        switch (m) { case 0: out[0] = 1; case 1: continue; case 2: out[1] = 1; }
        out[j] = 1; }""":
    """for (int j = 0; j < n; j++) {
        int c = m; if (c == 0) out[0] = 1; if (c == 0 || c == 1) continue; if (c == 2) out[1] = 1;
        out[j] = 1; }""",
}  # fmt: skip


@pytest.mark.parametrize(("switch", "ifs"), SWITCHES.items())
def test_a_switch_is_read_as_its_branches(switch, ifs):
    before = "#define M 7\n__device__ int f(int);\n__device__ int chosen;\n"
    ways = [reading(f"int i = threadIdx.x; {body}", before=before) for body in (switch, ifs)]
    assert not ways[0].verbatim
    seen = [[(x.array, x.mode, str(x.index), str(x.guard)) for x in w.accesses] for w in ways]
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "switch",
    [
        "switch (n) { case 1: int t = 1; case 2: out[1] = t; }",
        "switch (n) { case 1: if (m) break; out[0] = 1; break; case 2: out[1] = 1; }",
        "switch (int k = n; k++) { case 1: out[0] = 1; }",
        "switch (n) { int t; case 1: out[0] = t; }",
        "switch (n) { case 1: do { out[0] = 1; case 2: out[1] = 1; } while (--m); }",
        "switch (n) { }",
    ],
)
def test_a_switch_that_is_no_branches_is_kept(switch):
    found = reading(switch, before="__device__ int f(int);\n")
    assert [v.reason for v in found.verbatim][:1] == ["switch statement"]


@pytest.mark.parametrize("text", ["", "__global__ void k(", "__global__ void k(int* a) { a[ }",
                                  "__global__ void k(int* a) { for (;;) { if ( } }", "{{{{", "#if"])  # fmt: skip
def test_any_text_lifts(text):
    unit = lift(text)
    for function in unit.kernels:
        read(unit, function)


@pytest.mark.parametrize("test", ["(a[0] > s) != (a[1] > s)", "(a[0] > s) == (a[1] > s)"])
def test_two_comparisons_of_floats_are_not_taken_to_be_one(test):
    found = reading(f"float s = a[2]; if ({test}) out[n] = 1;")
    (store,) = [x for x in found.accesses if x.mode == "store"]
    assert store.guard


@pytest.mark.parametrize("word", ["auto", "S"])
def test_a_local_struct_is_what_it_begins_with(word):
    found = reading(
        f"int i = threadIdx.x; {word} s = p[i]; s.x[0] += s.y; p[i] = s;",
        before="struct S { float x[2]; float y; };",
        head="S* p, int n",
    )
    assert {a.array for a in found.accesses if a.space == "global"} == {"p"}
    assert all(a.array for a in found.accesses)
    assert index(found, "p", "store") == "threadIdx.x"


C = "struct C { float r, i; };\n"


@pytest.mark.parametrize(
    ("structs", "element", "places"),
    [
        ("struct S { float a[3]; int b; };", "p[t].a[j]", "blockIdx.x + 4*threadIdx.x"),
        ("const int N = 2;\nstruct S { int b; float a[N][N + 1]; };", "p[t].a[j][2]",
         "3 + 3*blockIdx.x + 7*threadIdx.x"),
        (C + "struct S { C a[4]; float b[2]; };", "p[t].a[j].i", "1 + 2*blockIdx.x + 10*threadIdx.x"),
        (C + "struct M { C e[2][2]; }; struct S { M l[3]; };", "(p + t)->l[j].e[1][j].r",
         "4 + 10*blockIdx.x + 24*threadIdx.x"),
        ("struct __align__(16) S { float a[3]; };", "p[t].a[j]", "blockIdx.x + 4*threadIdx.x"),
        ("struct S { static const int n = 3; float a[2]; };", "p[t].a[j]", "blockIdx.x + 2*threadIdx.x"),
    ],
)  # fmt: skip
def test_arrays_in_structs_are_followed(structs, element, places):
    body = f"int t = threadIdx.x, j = blockIdx.x; {element} = 1.0f;"
    found = reading(body, before=structs, head="S* p, int n")
    assert index(found, "p", "store") == places
    assert len(found.accesses) == 1
    assert len(found.accesses[0].digits) != 1


@pytest.mark.parametrize(
    "structs",
    [
        "struct __attribute__((packed)) S { char c; float x; };",
        "struct S { char c; float x; } __attribute__((packed));",
        "#pragma pack(1)\nstruct S { char c; float x; };",
        "struct S { char c; alignas(16) float x; };",
        "struct S { union { double d; char c; }; float x; };",
        "struct S { virtual void f(); float x; };",
        "struct B { float b; }; struct S : B { float x; };",
        "typedef struct { float x; } S __attribute__((aligned));",
    ],
)
def test_where_members_lie_is_not_claimed(structs):
    found = reading("p[threadIdx.x].x = 1.0f;", before=structs, head="S* p, int n")
    assert not [a for a in found.accesses if a.index is not None]


def _held(test, *, head=HEAD, before=""):
    """What holds where a thread stores behind a test of its place ``x``, part by part."""
    body = f"int x = blockIdx.x * blockDim.x + threadIdx.x; if ({test}) out[x] = a[x - 1];"
    found = reading(body, head=head, before=before)
    (store,) = [a for a in found.accesses if a.mode == "store"]
    return {str(part) for condition in store.guard for part in condition.conjuncts()}


@pytest.mark.parametrize(
    ("test", "same"),
    [
        ("(unsigned)(x - 1) < (unsigned)n", "x - 1 >= 0 && x - 1 < n"),
        ("static_cast<unsigned>(x - 1) < static_cast<unsigned>(n)", "x - 1 >= 0 && x - 1 < n"),
        ("(unsigned)n > unsigned(x - 1)", "x - 1 >= 0 && x - 1 < n"),
        ("!((unsigned)(x - 1) >= (unsigned)n)", "x - 1 >= 0 && x - 1 < n"),
        ("!((unsigned)n <= (unsigned)(x - 1))", "x - 1 >= 0 && x - 1 < n"),
        ("(unsigned)(x - 1) < 32u", "x - 1 >= 0 && x - 1 < 32"),
        ("(unsigned)(x - 1) >= (unsigned)n", "x - 1 < 0 || x - 1 >= n"),
        ("inside(x - 1, n)", "x - 1 >= 0 && x - 1 < n"),
    ],
)
def test_a_place_that_wraps_around_is_within_both_ends(test, same):
    before = "__device__ bool inside(int a, int b) { return (unsigned)a < (unsigned)b; }"
    assert _held(test, before=before) == _held(same)


@pytest.mark.parametrize(
    "test",
    [
        "(unsigned)(x - 1) <= (unsigned)n",  # all of them where n is -1
        "(unsigned)(x - 1) < (unsigned)n + 1",
        "(unsigned)(x - 1) < u",  # a size that may be more than an int holds
        "(unsigned)(x - 1) < 0x80000001u",
        "(size_t)(x - 1) < (size_t)n",
        "(unsigned)n < (unsigned)(x - 1)",
    ],
)
def test_a_place_that_wraps_around_below_another_bound_is_not_looked_into(test):
    assert any("wrap" in words for words in _held(test, head=f"{HEAD}, unsigned u"))


def test_a_template_that_is_announced_is_none_of_the_variables():
    before = "template <class T> __device__ T half_of(float x);\n"
    found = reading("out[0] = half_of<float>(expf(a[0]));", before=before)
    (store,) = (access for access in found.accesses if access.mode == "store")
    assert "half_of" in found.calls
    assert store.array == "out"
