from __future__ import annotations

import pytest
from known_texts import KERNELS

from optiml_magic.errors import SourceError
from optiml_magic.kernels.signature import kernels, select, split_name
from optiml_magic.source.grammar import parse_directive
from optiml_magic.source.program import parse_program

READ, WRITTEN, BOTH, NEITHER = (True, False), (False, True), (True, True), (False, False)
DEVICE = """
using real = float;
struct View { float* p; };
__device__ View view(float* p) { View v; v.p = p; return v; }
__device__ void keep(View& v, float* p) { v.p = p; }
__device__ void store(float* p, float v) { *p = v; }
__device__ void twice(float* p) { store(p, 1); store(p + 1, 2); }
__device__ float load(const float* p, int i) { return p[i]; }
__device__ void bump(float& r) { r += 1; }
__device__ void loop(float* p, int n) { if (n) loop(p, n - 1); p[n] = 1; }
template <class F> __device__ void each(int n, F f) { for (int i = 0; i < n; ++i) f(i); }
#define AT(i) p[i]
"""


def only(text: str):
    (kernel,) = kernels(text)
    return kernel


def access(body: str, declaration: str = "float* p"):
    text = f"{DEVICE}\n__global__ void k({declaration}, int n, float x) {{ {body} }}"
    parameter = only(text).parameters[0]
    return (parameter.reads, parameter.writes), parameter.certain


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("x = p[n];", READ),
        ("p[n] = x;", WRITTEN),
        ("p[n] += x;", BOTH),
        ("p[n]++;", BOTH),
        ("*p = x;", WRITTEN),
        ("x = *(p + n);", READ),
        ("(p + n)[1] = x;", WRITTEN),
        ("(*p) = *(p + 1);", BOTH),
        ("p[0] = p[1];", BOTH),
        ("atomicAdd(&p[n], x);", BOTH),
        ("atomicMax((int*)p + n, 3);", BOTH),
        ("const float* q = p + n; x = q[1];", READ),
        ("float *q = p, *r = q; r[1] = x;", WRITTEN),
        ("float* q; q = p; *q++ = x;", WRITTEN),
        ("float4* q = reinterpret_cast<float4*>(p); q[n].x = x;", WRITTEN),
        ("((float4*)p)[n] = make_float4(x, x, x, x);", WRITTEN),
        ("*reinterpret_cast<float4*>(&p[n]) = make_float4(x, x, x, x);", WRITTEN),
        ("float2 v = *(const float2*)(p + n); x = v.x;", READ),
        ("reinterpret_cast<float4&>(p[n]) = make_float4(x, x, x, x);", WRITTEN),
        ("auto& r = p[n]; r = x;", WRITTEN),
        ("const float& r = p[n]; x = r;", READ),
        ("float* q = n ? p : nullptr; q[0] = x;", WRITTEN),
        ("float* both[2] = {p, nullptr}; both[0][n] = x;", WRITTEN),
        ("View v; v.p = p; v.p[n] = x;", WRITTEN),
        ("View v{p}; x = v.p[n];", READ),
        ("View v = view(p); v.p[n] = x;", WRITTEN),
        ("store(p + n, x);", WRITTEN),
        ("twice(p);", WRITTEN),
        ("x = load(p, n);", READ),
        ("bump(p[n]);", BOTH),
        ("store(&p[n], load(p, 1));", BOTH),
        ("x = __ldg(p + n);", READ),
        ("__stcs(p + n, x);", WRITTEN),
        ("memcpy(p, &x, 4);", WRITTEN),
        ("auto f = [&](int i) { p[i] = x; }; f(n);", WRITTEN),
        ("for (int i = 0; i < n; ++i) { if (p[i] > x) break; }", READ),
        ("x = sizeof(p[0]);", NEITHER),
        ("{ float p = 3; p = x; }", NEITHER),
        ("AT(n) = x;", WRITTEN),
        ("View v; keep(v, p); v.p[n] = x;", WRITTEN),
        ("auto f = [=](int i) { return p[i]; }; x = f(n);", READ),
        ("auto f = [&](float* q) { *q = x; }; f(p);", WRITTEN),
        ("auto f = [p](int i) { p[i] = x; }; p = nullptr; f(n);", WRITTEN),
        ("each(n, [&](int i) { p[i] = x; });", WRITTEN),
        ("[&] { p[n] = x; }();", WRITTEN),
        ("float** q = &p; (*q)[0] = x;", WRITTEN),
        ("for (auto& e : {1, 2}) { p[e] = x; }", WRITTEN),
        ("switch (n) { case 1: p[n] = x; break; default: x = p[0]; }", BOTH),
        (
            'auto a = __cvta_generic_to_global(p); asm("st.global.f32 [%0], %1;" :: "l"(a));',
            WRITTEN,
        ),
        ("size_t a = (size_t)p + 4 * n; *(float*)a = x;", WRITTEN),
        ("float* both[2]; both[0] = p; both[n][1] = x;", WRITTEN),
        ("float*& q = p; q[0] = x;", WRITTEN),
        ("__pipeline_memcpy_async(&x, p, 4);", READ),
        ("if (p == nullptr) return;", NEITHER),
        ('asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(p + n));', READ),
        ('asm volatile("st.global.f32 [%0], %1;" :: "l"(p + n), "f"(x));', WRITTEN),
    ],
)
def test_what_is_seen_of_a_pointer(body, seen):
    assert access(body) == (seen, True)


@pytest.mark.parametrize(
    "body",
    [
        "mystery(p);",
        "mystery([&](int i) { p[i] = x; });",
        "cuda::memcpy_async(p, &x, 4, n);",
        "for (auto& e : p) { e = x; }",
        "float (*rows)[4] = (float (*)[4])p; rows[n][1] = x;",
        "cuda::atomic_ref<float>(p[n]).fetch_add(x);",
        "[q = p + 1](int i) { q[i] = 1; }(n);",
        "x = mystery(p + n)[1];",
        "float* q(p + 1); q[0] = x;",
        "cuda::atomic_ref<float> r(p[n]); r = x;",
        "Thing t(p); t.set(x);",
        'asm volatile("prefetch.global.L2 [%0];" :: "l"(p));',
    ],
)
def test_what_cannot_be_followed_is_uncertain(body):
    assert access(body)[1] is False


def test_recursion_is_followed_once_and_stays_uncertain():
    assert access("loop(p, n);") == (WRITTEN, False)


def test_a_pointer_to_const_is_never_written():
    assert access("mystery(p);", "const float* p") == (NEITHER, True)
    assert access("x = p[n];", "float const* __restrict__ p") == (READ, True)


def test_pointers_behind_aliases_and_in_structs():
    assert access("p[n] = x;", "real* p") == (WRITTEN, True)
    text = "using out_t = float*; __global__ void k(out_t p, View v) { p[0] = 1; v.q[2] = 3; }"
    p, v = only(text).parameters
    assert (p.pointer, p.dtype, p.ctype, p.reads, p.writes) == (True, "<f4", "float", False, True)
    assert (v.pointer, v.dtype, v.ctype, v.writes) == (False, None, "View", True)


def test_known_kernels():
    (histogram,) = kernels((KERNELS / "histogram.cu").read_text())
    values, bins, n = histogram.parameters
    assert (values.reads, values.writes, values.const) == (True, False, True)
    assert (bins.reads, bins.writes, bins.certain) == (True, True, True)
    assert (n.dtype, n.pointer, n.reads) == ("<i4", False, False)
    (softmax,) = kernels((KERNELS / "softmax.cu").read_text())
    assert [(p.reads, p.writes) for p in softmax.parameters[:2]] == [READ, WRITTEN]


@pytest.mark.parametrize(
    ("declared", "ctype", "dtype", "lanes"),
    [
        ("bool", "bool", "|b1", 1),
        ("char", "char", "|i1", 1),
        ("unsigned char", "unsigned char", "|u1", 1),
        ("short", "short", "<i2", 1),
        ("unsigned short int", "unsigned short int", "<u2", 1),
        ("unsigned", "unsigned", "<u4", 1),
        ("long long", "long long", "<i8", 1),
        ("unsigned long long int", "unsigned long long int", "<u8", 1),
        ("long", "long", "<i8", 1),
        ("size_t", "size_t", "<u8", 1),
        ("int8_t", "int8_t", "|i1", 1),
        ("std::uint32_t", "std::uint32_t", "<u4", 1),
        ("double", "double", "<f8", 1),
        ("__half", "__half", "<f2", 1),
        ("half", "half", "<f2", 1),
        ("__nv_bfloat16", "__nv_bfloat16", "bfloat16", 1),
        ("float4", "float4", "<f4", 4),
        ("int2", "int2", "<i4", 2),
        ("uchar3", "uchar3", "|u1", 3),
        ("half2", "half2", "<f2", 2),
        ("longlong2", "longlong2", "<i8", 2),
        ("cuda::std::complex<float>", "cuda::std::complex<float>", "<c8", 1),
        ("struct P", "P", None, 1),
        ("u32", "unsigned int", "<u4", 1),
        ("N::real", "N::real", None, 1),
    ],
)
def test_types(declared, ctype, dtype, lanes):
    text = "typedef unsigned int u32;\n__global__ void k("
    kernel = only(f"{text}{declared} a, const {declared}* b, {declared} c[]) {{ }}")
    for parameter, pointer in zip(kernel.parameters, (False, True, True), strict=True):
        found = (parameter.ctype, parameter.dtype, parameter.lanes, parameter.pointer)
        assert found == (ctype, dtype, lanes, pointer)
    assert [p.const for p in kernel.parameters] == [False, True, False]
    assert [p.line for p in kernel.parameters] == [2, 2, 2]


def test_namespaces_templates_attributes_and_spans():
    text = (
        "namespace a { namespace b {\n"
        "template <typename T, int N = 4, class U = double>\n"
        "__global__ void __launch_bounds__(256) k(const T* x, U* y, thrust::complex<T> z) {\n"
        "  extern __shared__ __align__(16) float s[]; y[0] = x[N]; } } }\n"
    )
    kernel = only(text)
    assert kernel.name == "a::b::k"
    assert kernel.line == 3
    assert kernel.dynamic_shared
    assert kernel.launch_bounds == "256"
    assert [(t.name, t.is_type, t.default) for t in kernel.template_parameters] == [
        ("T", True, None), ("N", False, "4"), ("U", True, "double"),
    ]  # fmt: skip
    assert [p.dtype for p in kernel.parameters] == [None, None, None]
    assert text.encode()[kernel.start_byte :].startswith(b"__global__")
    made = kernel.instantiate(["float"])
    assert made.template_arguments == ("float", "4", "double")
    assert [p.dtype for p in made.parameters] == ["<f4", "<f8", "<c8"]
    assert [(p.reads, p.writes) for p in made.parameters[:2]] == [READ, WRITTEN]
    with pytest.raises(SourceError, match="takes 3 template arguments, not 4"):
        kernel.instantiate(["1", "2", "3", "4"])


@pytest.mark.parametrize(
    ("given", "lacking"),
    [("", "T"), ("<float>", "N"), ("<float, 4>", ""), ("<float, 4, 1, 2>", "")],
)
def test_a_launch_names_every_template_argument(given, lacking):
    known = kernels("template <class T, int N, int... M> __global__ void k(T* p) { p[0] = N; }")
    launch = parse_directive(f"#pragma optiml launch k{given} grid(1) block(1)", line=7)
    if not lacking:
        assert select(known, launch).template_arguments[:2] == ("float", "4")
        return
    with pytest.raises(SourceError, match=f"lacks its template argument `{lacking}`") as error:
        select(known, launch)
    assert error.value.fix == "name them in the launch: k<T, N>"
    assert error.value.line == 7


def test_a_parameter_pack_takes_what_is_left():
    kernel = only("template <class T, int... Ns> __global__ void k(T* p) { p[0] = 1; }")
    for given in (["float"], ["float", "1"], ["float", "1", "2", "3"]):
        assert kernel.instantiate(given).parameters[0].dtype == "<f4"


@pytest.mark.parametrize(
    "body",
    [
        "cuda::atomic_ref<int, cuda::thread_scope_device> a(*p); a.fetch_add(1);",
        "cuda::std::atomic_ref a{p[3]}; a = 1;",
        "Keeps k(p[1]); k.x = 2;",
        "Keeps k{p[1]}; k.x = 2;",
        "Keeps k = {p[1]}; k.x = 2;",
        "Keeps k = Keeps(p[1]); k.x = 2;",
        "Keeps k = Keeps{*p}; k.x = 2;",
    ],
)
def test_an_object_may_keep_a_reference(body):
    keeps = "struct Keeps { int& x; __device__ Keeps(int& y) : x(y) {} };\n"
    kernel = only(f"{keeps}__global__ void k(int* p, int* q) {{ {body} q[0] = 1; }}")
    assert [p.certain for p in kernel.parameters] == [False, True]
    kernel = only(
        "struct V { int x; }; __global__ void k(int* p, int* q) { V v{p[0]}; q[0] = v.x; }"
    )
    assert all(p.certain for p in kernel.parameters)


def test_a_template_parameter_that_is_a_pointer():
    made = only("template <class P> __global__ void k(P p) { p[0] = 1; }").instantiate(["float*"])
    (p,) = made.parameters
    assert (p.pointer, p.dtype, p.writes) == (True, "<f4", True)


def test_select_finds_the_kernel_of_a_launch():
    text = (
        "template <class T> __global__ void k(T* p) {}\nnamespace n { __global__ void j() {} }\n"
        "#pragma optiml launch k<double> grid(1) block(1)\n"
        "#pragma optiml launch n::j grid(1) block(1)\n"
        "#pragma optiml launch kk grid(1) block(1)\n"
        "#pragma optiml launch grid(1) block(1)\n"
    )
    launches, known = parse_program(text).launches, kernels(text)
    assert select(known, launches[0]).parameters[0].dtype == "<f8"
    assert select(known, launches[1]).name == "n::j"
    with pytest.raises(SourceError, match=r"line 5: there is no kernel `kk`\n.*`k`"):
        select(known, launches[2])
    with pytest.raises(SourceError, match="names no kernel, and there are 2"):
        select(known, launches[3])
    assert select(known[1:], launches[3]).name == "n::j"


def test_overloads_are_told_apart_by_their_arguments_or_refused():
    text = "__global__ void k(int a) {}\n__global__ void k(int a, int b) {}\n"
    one, two = (
        parse_program(f"#pragma optiml launch k grid(1) block(1){args}").launches[0]
        for args in (" args(a, b)", "")
    )
    assert len(select(kernels(text), one).parameters) == 2
    with pytest.raises(SourceError, match="overloaded"):
        select(kernels(text), two)


def test_name_expressions():
    assert split_name("k") == ("k", ())
    assert split_name("::ns::k<float, Vec<int, 2>, (N + 1)>") == (
        "ns::k", ("float", "Vec<int, 2>", "(N + 1)"),
    )  # fmt: skip
    assert split_name("k<>") == ("k", ())


@pytest.mark.parametrize(
    ("text", "dynamic"),
    [
        ("extern __shared__ float s[];\n__global__ void k(int n) { s[0] = n; }", True),
        ("extern __shared__ float s[];\n__global__ void k(int n) { }", False),
        (
            (
                "__device__ void f() { extern __shared__ float s[]; s[0] = 1; }\n"
                "__device__ void g() { f(); }\n__global__ void k(int n) { g(); }"
            ),
            True,
        ),
        ("__global__ void k(int n) { __shared__ float s[4]; s[0] = n; }", False),
    ],
)
def test_dynamic_shared_memory_is_found_where_it_is_declared(text, dynamic):
    assert only(text).dynamic_shared is dynamic


def test_a_macro_is_read_where_it_is_used():
    text = "#define AT(i) p[i]\n#define SET(i) AT(i) = 1\n"
    for body, seen in (("x = p[0];", READ), ("SET(0);", WRITTEN)):
        (p, _) = only(text + f"__global__ void k(float* p, float x) {{ {body} }}").parameters
        assert ((p.reads, p.writes), p.certain) == (seen, True)


def test_a_member_is_no_parameter_of_that_name():
    text = "#define GID_X (blockIdx.x * blockDim.x + threadIdx.x)\n"
    kernel = only(text + "__global__ void k(float* x, const float* y) { x[GID_X] = y[GID_X]; }")
    assert [(p.reads, p.writes, p.certain) for p in kernel.parameters] == [
        (False, True, True), (True, False, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "float* t = p; p = q; q = t;",
        "std::swap(p, q);",
        "View v{p}; v.p[i] = 1; p = q; x = v.p[i];",
    ],
)
def test_pointers_that_a_loop_exchanges_lead_to_both(body):
    loop = f"for (int i = 0; i < n; ++i) {{ q[i] = p[i]; {body} }}"
    text = f"{DEVICE}__global__ void k(float* p, float* q, int n, float x) {{ {loop} }}"
    for parameter in only(text).parameters[:2]:
        assert ((parameter.reads, parameter.writes), parameter.certain) == (BOTH, True)


def test_a_pointer_that_a_round_leads_elsewhere_for_the_next():
    loop = "float* t = p; for (int i = 0; i < n; ++i) { t[i] = 1; t = q; }"
    p, q, _ = only(f"__global__ void k(float* p, float* q, int n) {{ {loop} }}").parameters
    assert (p.writes, q.writes) == (True, True)


def test_macros_from_outside_choose_what_is_read():
    text = (
        "#ifdef FAST\n__global__ void fast(REAL* p) { p[0] = 1; }\n"
        "#else\n__global__ void slow(float* p) { p[0] = 1; }\n#endif\n"
    )
    (fast,) = kernels(text, {"FAST": "1", "REAL": "double"})
    assert (fast.name, fast.parameters[0].dtype) == ("fast", "<f8")
    assert [kernel.name for kernel in kernels(text, {})] == ["slow"]
    assert [kernel.name for kernel in kernels(text)] == ["fast", "slow"]


def test_a_type_with_a_constructor_is_no_variable():
    text = (
        "template <class T, class I> struct Info { Info(); Info(T* p, I n); T* data; I n; };\n"
        "__global__ void k(const float* a, const Info<long, long> info, float* out, int n) {}\n"
    )
    assert [p.name for p in kernels(text)[0].parameters] == ["a", "info", "out", "n"]
