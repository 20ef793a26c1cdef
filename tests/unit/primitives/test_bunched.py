"""Several items a thread that go through their loops together, and loops in chunks of rounds."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.bunched import Bunch, bunched
from optiml_magic.kernels.primitives.chunks import chunk, front
from tests.present import examples, sampled

from .running import same as one
from .running import same_of_many as same
from .shapes import applied, kernel, refused

SHAPES = {"a": ("n",), "x": ("m",), "out": ("n",)}
LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* x, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
LOOP = "for (int j = 0; j < m; ++j)"
BODIES = {
    "return": f"if (i >= n) return; float s = 0; {LOOP} s += x[j] * a[i]; out[i] = s;",
    "guard": f"if (i < n) {{ float v = a[i], s = 0; {LOOP} {{ float d = x[j] - v; "
    "s += d * d; } out[i] = s; }",
    "several": f"if (i >= n) return; float s = 1, q = a[i]; {LOOP} {{ float t = x[j] + a[i]; "
    "if (t > q) q = t; s += t; } if (s < 0) { out[i] = q; return; } out[i] = s + q;",
    "not itself": f"if (i < n) {{ float s = 0; {LOOP} {{ if (j == i) continue; "
    "float r = x[j] - a[i]; s += r * r; } out[i] = s; }",
    "backwards": "if (i < n) { float s = 0; for (int j = m - 1; j >= 0; --j) "
    "s = s * 0.5f + x[j] * a[i]; out[i] = s; }",
    "two loops": f"if (i < n) {{ float q = 0; {LOOP} q = fmaxf(q, x[j] + a[i]); float s = 0; "
    f"{LOOP} s += x[j] - q; out[i] = s; }}",
    "nested": f"if (i < n) {{ float s = 0; {LOOP} {{ float t = 0; for (int l = 0; l <= j; ++l) "
    "t += x[l] * a[i]; s += t * x[j]; } out[i] = s; }",
    "its own": f"if (i < n) {{ float s = 0; {LOOP} {{ float t = x[j]; for (int l = 0; l < i % 4; "
    "++l) t *= a[i]; s += t; } out[i] = s; }",
    "within a test": f"if (i < n) {{ float s = 0; {LOOP} {{ if (a[i] > 0) {{ for (int l = 0; l < j; ++l) "
    "s += x[l] * a[i]; } } out[i] = s; }",
    "within a test of rounds": "if (i < n) { float s = 0; for (int j = 0; j < m + 5; ++j) { "
    "if (j < m) { for (int l = 0; l < 2; ++l) s += x[j] * a[i]; } } out[i] = s; }",
    "beside its own": f"if (i < n) {{ float s = 0; {LOOP} {{ int l = j, r = i % 3; s += x[l] * r; }} out[i] = s; }}",
    "in braces": f"if (i < n) {{ float s = 0; {LOOP} {{ {{ int l = m - 1 - j; float r = a[i]; s += x[l] * r; }} }} out[i] = s; }}",
    "array": f"if (i < n) {{ float s[3] = {{0}}; {LOOP} for (int d = 0; d < 3; ++d) "
    "s[d] += x[j] * a[i]; out[i] = s[0] + s[1] * s[2]; }",
    "unsigned": "if (i < n) { float s = 0; for (unsigned j = 0; j < m; ++j) s += x[j] * a[i]; "
    "out[i] = s; }",
}
SPLIT = ("return", "guard", "not itself", "nested", "its own", "unsigned")


def several(body: str) -> Kernel | Refused:
    return bunched(kernel(LINE % body), Bunch())


def parts(body: str) -> Kernel:
    return applied(chunk(kernel(LINE % body), 0, 4, (1, 2, 4, 64)))


@pytest.mark.parametrize("name", sampled(BODIES, every=3))
def test_items_are_the_same_at_odd_sizes(name: str) -> None:
    for items, block, n in ((4, 32, 71), (2, 64, 1), (8, 32, 257))[:: examples(2, 1)]:
        values = {"ITEMS": items, "BLOCK": block}
        same(LINE % BODIES[name], several(BODIES[name]), SHAPES, {"n": n, "m": 9}, values)


@pytest.mark.parametrize("name", sampled(SPLIT, every=3))
def test_chunks_of_rounds_are_the_same(name: str) -> None:
    text, made = LINE % BODIES[name], parts(BODIES[name])
    for count, m in ((4, 9), (64, 5), (2, 64))[:: examples(2, 1)]:
        same(text, made, SHAPES, {"n": 71, "m": m}, {"PARTS": count})
    both = bunched(front(made), Bunch())
    same(text, both, SHAPES, {"n": 71, "m": 9}, {"PARTS": 4, "ITEMS": 4, "BLOCK": 32})


def selecting(test: str, along: str = "x[j]") -> str:
    """Of many equals, so that it shows which of them is kept."""
    return (
        f"if (i < n) {{ float best = 0.5f; int arg = -1; float with = a[i]; {LOOP} {{ "
        f"float d = floorf(x[j] * 2 + a[i]); if ({test}) {{ with = {along}; best = d; arg = j; }} }} "
        "out[i] = arg + best + with; }"
    )


@pytest.mark.parametrize("test", ["d < best", "d > best", "!(best <= d)"])
def test_chunks_find_the_first_of_equals_and_what_goes_along(test: str) -> None:
    if "!" in test:  # of whole numbers, which know no NaN
        body = selecting(test).replace("float best = 0.5f", "int best = 1").replace(
            "float d", "int d")  # fmt: skip
    else:
        body = selecting(test)
    made = parts(body)
    assert "#pragma optiml scratch arg_parts i4[" in made.program.text
    for count, m in ((4, 9), (64, 5), (2, 64)):
        one(LINE % body, made, SHAPES, {"n": 71, "m": m}, {"PARTS": count})
    both = bunched(front(made), Bunch())
    one(LINE % body, both, SHAPES, {"n": 71, "m": 9}, {"PARTS": 4, "ITEMS": 4, "BLOCK": 32})


def test_chunks_are_refused_where_parts_in_order_would_select_another() -> None:
    last = chunk(kernel(LINE % selecting("d <= best")), 0, 4, (4,))
    assert refused(last) == ("of equals it keeps the last one", 4)
    second = chunk(kernel(LINE % selecting("d < best", along="best")), 0, 4, (4,))
    assert isinstance(second, Refused)


def test_what_all_items_load_stands_before_them() -> None:
    text = applied(several(BODIES["return"])).program.text
    assert "const float x_now = x[j];" in text
    assert "s[item] += x_now * a[i];" in text
    some = BODIES["return"].replace("s +=", "if (a[i] > 0) s +=")
    assert "x_now" not in applied(several(some)).program.text


def test_planes_of_threads_take_items_along_their_rows() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* x, float* out, int w, int h, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= w || r >= h) return;
    float s = 0.0f;
    for (int j = 0; j < m; ++j) s += x[j] * c - x[j] * r;
    out[r * w + c] = s;
}
"""
    shapes = {"x": ("m",), "out": ("h", "w")}
    sizes = {"w": 37, "h": 11, "m": 6}
    made = bunched(kernel(text), Bunch())
    same(text, made, shapes, sizes, {"ITEMS": 2})
    both = bunched(front(applied(chunk(kernel(text), 0, 4, (1, 4)))), Bunch())
    same(text, both, shapes, sizes, {"ITEMS": 4, "PARTS": 4})


REFUSED = {
    f"if (i < n) {{ {LOOP} out[i] = x[j]; }}": "it stores before its last loop ends",
    f"if (i < n) {{ float s = out[i]; {LOOP} s += x[j]; out[i] = s; }}":
        "`out` is written as well",
    "if (i < n) { float s = 0; for (int j = 0; j < i; ++j) s += x[j]; out[i] = s; }":
        "no loop makes the same rounds for all items",
    f"if (i < n) {{ float s = 0; {LOOP} {{ s += a[i]; if (s > 9) break; }} out[i] = s; }}":
        "no loop makes the same rounds for all items",
    f"if (i < n) {{ if (a[i] < 0) return; float s = 0; {LOOP} s += x[j]; out[i] = s; }}":
        "the kernel is left before its last loop ends",
    f"if (i < n) {{ float s = 0; {LOOP} {{ if (j == i) continue; {LOOP.replace('j', 'l')} "
    "s += x[l]; } out[i] = s; }": "an item may end a round before the others",
    f"if (i < n) {{ float s[2] = {{1, 2}}; {LOOP} s[j % 2] += x[j]; out[i] = s[0]; }}":
        "`s` cannot be one for each item",
    f"if (i < n) {{ float s = 0; {LOOP} s += x[j]; out[i] = atomicAdd(out, s); }}":
        "threads may wait for what an atomic operation says",
}  # fmt: skip


@pytest.mark.parametrize(("body", "reason"), REFUSED.items())
def test_what_is_refused(body: str, reason: str) -> None:
    found = refused(several(body))
    assert found[0] == reason
    assert found[1] > 0


def test_rounds_that_step_otherwise_are_no_chunks() -> None:
    body = "if (i < n) { float s = 0; for (int j = 1; j < m; j += 2) s += x[j]; out[i] = s; }"
    found = chunk(kernel(LINE % body), 0, 4, (1, 4))
    assert refused(found)[0] == "the loop does not count from 0 by 1"
