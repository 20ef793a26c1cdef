"""Short lists that rounds search, in registers: whatever is in them, and however it is asked."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.bisections import Bisection, bisections
from optiml_magic.kernels.primitives.expanded import expanded
from optiml_magic.kernels.primitives.held_lists import held_lists, held_of
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const {0}* a, const int* to, int* out, int n, int m, int from, int less) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int other = to[i];
    int count = 0;
    {1}
    out[i] = count;
}}
"""
AROUND = "for (int k = i * m; k < (i + 1) * m; k++) { WANTED BODY }"
SEARCHES = {
    "closed": """
        int lo = other * m + from; int hi = (other + 1) * m - less - 1;
        while (lo <= hi) {
            int mid = (lo + hi) / 2; KIND found = a[mid];
            if (found == wanted) { count++; break; }
            if (found < wanted) lo = mid + 1; else hi = mid - 1;
        }""",
    "the other way round": """
        int lo = other * m + from, hi = (other + 1) * m - less - 1;
        while (hi >= lo) {
            const int mid = lo + (hi - lo) / 2;
            if (wanted < a[mid]) hi = mid - 1;
            else if (wanted > a[mid]) lo = mid + 1;
            else { count += 3; break; }
        }""",
    "open": """
        int lo = other * m + from, hi = (other + 1) * m - less, mid;
        while (lo < hi) {
            mid = (lo + hi) >> 1;
            if (a[mid] == wanted) { if (count < 90) count += 2; break; }
            else if (a[mid] > wanted) { hi = mid; }
            else { lo = mid + 1; }
        }""",
    "the first that is not below": """
        int lo = other * m + from; int hi = (other + 1) * m - less;
        while (lo < hi) {
            int mid = (lo + hi) / 2;
            if (a[mid] < wanted) lo = mid + 1; else hi = mid;
        }
        if (lo < (other + 1) * m - less && a[lo] == wanted) count++;""",
    "no comparison but the test": """
        int lo = other * m + from; int hi = (other + 1) * m - less - 1;
        for (; lo <= hi;) {
            int mid = (lo + hi) / 2;
            if (a[mid] != wanted) { if (a[mid] <= wanted) lo = mid + 1; else hi = mid - 1; }
            else { count++; break; }
        }""",
}
SIZES = (
    {"n": 70, "m": 16, "from": 0, "less": 0}, {"n": 33, "m": 9, "from": 1, "less": 0},
    {"n": 40, "m": 40, "from": 3, "less": 5}, {"n": 5, "m": 1, "from": 0, "less": 0},
    {"n": 64, "m": 12, "from": 4, "less": 0}, {"n": 9, "m": 3, "from": 2, "less": 3},
)  # fmt: skip


def text_of(search: str, kind: str = "int", wanted: str = "KIND wanted = a[k];") -> str:
    body = AROUND.replace("WANTED", wanted).replace("BODY", search).replace("KIND", kind)
    return TEXT.format(kind, body)


def made(text: str) -> Kernel | Refused:
    kernel = kernel_of(text)
    lines = (found.loop.line for found in bisections(kernel) if isinstance(found, Bisection))
    return held_lists(kernel, next(lines, 0))


@pytest.mark.parametrize("content", ["rising m", "rising n", "below m"])
@pytest.mark.parametrize("search", SEARCHES)
def test_whatever_a_list_holds(search: str, content: str) -> None:
    text = text_of(SEARCHES[search])
    after = written(made(text))
    assert "among<LENGTH>" in after
    arrays = {
        "a": Array("i4", ("n", "m"), content), "to": Array("i4", ("n",), "below n"),
        "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    for one, other in zip(SIZES[::2], SIZES[1::2], strict=True):
        assert end_of(text, after, arrays, one, other) == "same"


@pytest.mark.parametrize(
    ("kind", "dtype"), [("unsigned int", "u4"), ("long long", "i8"), ("unsigned long long", "u8")]
)
def test_elements_of_other_types(kind: str, dtype: str) -> None:
    text = text_of(SEARCHES["closed"], kind)
    arrays = {
        "a": Array(dtype, ("n", "m"), "rising m"), "to": Array("i4", ("n",), "below n"),
        "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    assert end_of(text, written(made(text)), arrays, SIZES[0], SIZES[2]) == "same"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("count++;", "count += mid;", "where the search ends"),
        ("count++;", "a[0] = 1; count++;", "may change"),
        ("count++; break;", "count++; lo = mid + 1;", "does not stop"),
        ("lo = mid + 1", "lo = mid + 2", "do not move"),
        ("hi = mid - 1", "hi = mid", "do not move"),
        ("found < wanted", "found > wanted", "do not move"),
        ("found < wanted", "found < wanted + 1", "do not move"),
        ("int lo = other * m + from;", "int lo = other * m + from + k % 2;", "from round to round"),
        ("int lo", "unsigned lo", "signed indices"),
        ("int mid = (lo + hi) / 2;", "int mid = (lo + hi + 1) / 2;", ""),
        ("a[mid]", "a[mid * 2]", "compares"),
        ("int hi = (other + 1)", "int hi = count + (other + 1)", "from round to round"),
    ],
)
def test_others_stay(old: str, new: str, why: str) -> None:
    text = text_of(SEARCHES["closed"])
    assert old in text.replace("KIND", "int")
    text = text.replace(old, new)
    if "a[0] =" in new:
        text = text.replace("const int* a", "int* a")
    found = next(bisections(kernel_of(text)))
    assert isinstance(found, Exception)
    assert why in str(found)


def test_a_number_of_another_type_stays() -> None:
    text = text_of(SEARCHES["closed"], "int", "long long wanted = a[k] * 2ll;")
    assert "one type" in str(next(bisections(kernel_of(text))))


def test_one_list_is_held_once() -> None:
    held = made(text_of(SEARCHES["closed"]))
    assert isinstance(held, Kernel)
    assert not held_of(held)


FUNCTIONS = {
    "__device__ bool has(const KIND* list, int low, int high, KIND key) {"
    " while (low <= high) { int mid = (low + high) / 2; if (list[mid] == key) return true;"
    " if (list[mid] < key) low = mid + 1; else high = mid - 1; } return false; }": (
        "if (has(a, other * m + from, (other + 1) * m - less - 1, a[k])) count++;"
    ),
    "__device__ int has(const KIND* list, int n, KIND key) { int lo = 0, hi = n; while (lo < hi) {"
    " int mid = lo + (hi - lo) / 2; if (list[mid] < key) lo = mid + 1;"
    " else if (list[mid] == key) return 1; else hi = mid; } return 0; }": (
        "count += has(a + other * m + from, m - from - less, a[k]);"
    ),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_searches_of_functions(function: str) -> None:
    text = (function + "\n" + text_of(FUNCTIONS[function], wanted="")).replace("KIND", "int")
    arrays = {
        "a": Array("i4", ("n", "m"), "rising m"), "to": Array("i4", ("n",), "below n"),
        "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    whole = expanded(kernel_of(text))
    after = written(made(written(whole)))
    assert "among<LENGTH>" in after
    assert end_of(text, after, arrays, SIZES[0], SIZES[2]) == "same"
