"""Loops counted, taken as vectors, and begun at their first element."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.counted import all_counted, counted
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.primitives.vectors import vectorise
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of
from .running import same
from .shapes import ROWS, accesses, applied, kernel, refused

SPELLINGS = {
    "while": "int c = 0; while (c < w) { s += a[r * w + c]; ++c; }",
    "pointer": "const float* p = a + r * w; for (int c = 0; c < w; ++c) s += *p++;",
    "pointers": "for (const float* p = a + r * w; p < a + r * w + w; ++p) s += *p;",
    "outer": "int c; for (c = 0; c < w; c++) s += a[r * w + c];",
    "backwards": "for (int c = w - 1; c >= 0; --c) s += a[r * w + c];",
    "from outside": "int c; for (c = 0; c < w; ++c) s += a[r * w + c]; s += c;",
    "unequal": "int c = 0; for (; c != w; c++) s += a[r * w + c];",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_is_counted_by_its_rounds(name: str) -> None:
    found = applied(counted(kernel(ROWS % f"float s = 0; {SPELLINGS[name]} out[r] = s;"), 0))
    (axis,) = found.reading.axes
    assert axis.node.kind == "for"
    assert axis.start is not None
    assert (axis.start.value, str(axis.step), str(axis.stop)) == (0, "1", "w")
    (load,) = accesses(found, "a")
    assert load.index is not None
    by = load.index.coefficient(axis.name)
    assert by is not None
    assert by.value == (-1 if name == "backwards" else 1)


@pytest.mark.parametrize("test", ["!(c == w)", "w - c", "c + 1 != w + 1", "!!(c != w)"])
def test_an_end_that_is_no_order_is_counted(test: str) -> None:
    loop = f"for (int c = 0; {test}; ++c) s += a[r * w + c];"
    found = applied(all_counted(kernel(ROWS % f"float s = 0; {loop} out[r] = s;"), (0,)))
    assert "for (int k_2 = 0; k_2 < w; ++k_2)" in found.program.text


@pytest.mark.parametrize("test", ["!(c >= w)", "c != w", "w != c", "w > c"])
def test_an_end_that_a_greater_stride_meets_stays(test: str) -> None:
    loop = f"for (int c = 0; {test}; ++c) s += a[r * w + c];"
    found = applied(all_counted(kernel(ROWS % f"float s = 0; {loop} out[r] = s;"), (0,)))
    assert loop in found.program.text


def test_what_moved_is_where_it_was_after_the_loop() -> None:
    body = "float s = 0; int c = 2; while (c < w) { s += a[r * w + c]; c += 3; } out[r] = s + c;"
    text = applied(counted(kernel(ROWS % body), 0)).program.text
    assert "c += max(((w) / 3), 0) * 3;" in text or "c += max((w / 3), 0) * 3;" in text


@pytest.mark.parametrize("step", ["++c", "c += 3"])
def test_a_do_loop_makes_its_first_round_in_any_case(step: str) -> None:
    body = f"float s = 0; int c = 0; do {{ s += at[c]; {step}; }} while (c < w); out[r] = s + c;"
    text = ROWS.replace("const float* a, ", "") % body
    found = counted(kernel(text), 0)
    # Of three sizes one is that of rows without an element.
    same(text, found, {"at": ("i4", "h"), "out": ("h",)}, {"w": 13, "h": 31})
    same(text, found, {"at": ("i4", "h"), "out": ("h",)}, {"w": 0, "h": 31})


def test_a_counter_from_outside_that_nobody_asks_for_goes() -> None:
    body = "float s = 0; int c; for (c = 0; c < w; ++c) s += a[r * w + c]; out[r] = s;"
    text = applied(counted(kernel(ROWS % body), 0)).program.text
    assert "c = 0" not in text
    assert "a[r * w + k_2]" in text


def test_a_bound_made_of_places_is_a_signed_number() -> None:
    body = "float s = 0; for (int c = 0; c < (int)threadIdx.x - w; ++c) s += at[c]; out[r] = s;"
    text = ROWS.replace("const float* a, ", "") % body
    found = counted(kernel(text), 0)
    assert "k_2 < (int)threadIdx.x - w" in applied(found).program.text
    same(text, found, {"at": ("i4", "h"), "out": ("h",)}, {"w": 17, "h": 31})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("int c = 0; do { s += a[r * w + c]; } while (++c < w);", "the test of the loop changes"),
        ("for (int c = 0; c < w; c += at[c]) s += a[c];", "the rounds of the loop are not known"),
        ("for (int c = 0; c < w; ++c) { s += a[c]; if (s > 1) return; }", "the rounds of the loop"),
    ],
)
def test_a_loop_whose_rounds_are_not_known_is_refused(body: str, reason: str) -> None:
    found = counted(kernel(ROWS % f"float s = 0; {body} out[r] = s;"), 0)
    assert refused(found)[0].startswith(reason)


def vectors(body: str) -> str:
    return applied(vectorise(kernel(ROWS % body), 0)).program.text


def test_elements_come_by_the_widest_access_and_the_rest_one_by_one() -> None:
    text = vectors("float s = 0; for (int c = 0; c < w; ++c) s += a[r * w + c]; out[r] = s;")
    assert "(size_t)&a[r * w] % 16 == 0 ? w / 4 * 4 : 0" in text
    assert "*reinterpret_cast<const float4*>(&a[r * w + c_first])" in text
    assert "for (int c = whole_c; c < w; ++c)" in text


@pytest.mark.parametrize(
    ("kind", "vector", "width"),
    [("double", "double2", 2), ("int", "int4", 4), ("short", "uint4", 8), ("char", "uint4", 16)],
)
def test_16_bytes_of_every_type(kind: str, vector: str, width: int) -> None:
    body = "float s = 0; for (int c = 0; c < w; ++c) s += a[r * w + c]; out[r] = s;"
    text = (ROWS % body).replace("const float* a", f"const {kind}* a")
    found = applied(vectorise(kernel(text), 0)).program.text
    assert f"{kind} a_items[{width}]" in found
    assert f"const {vector}*" in found


def test_stores_go_out_as_they_come_in() -> None:
    text = vectors("for (int c = 0; c < w; ++c) out[r * w + c] = a[r * w + c] * c;")
    assert "*reinterpret_cast<float4*>(&out[r * w + c_first])" in text
    assert "&& (size_t)&out[r * w] % 16 == 0" in text


def test_rows_that_begin_anywhere_have_a_head_up_to_an_aligned_element() -> None:
    body = "float s = 0; for (int c = at[r]; c < at[r + 1]; ++c) s += a[c]; out[r] = s;"
    text = vectors(body)
    assert "for (int c = at[r]; c < head_c; ++c)" in text
    assert "(size_t)a % 16 == 0" in text


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for (int c = 0; c < w; ++c) s += a[c * w + r];", "it reads no consecutive elements"),
        ("for (int c = 0; c < w; ++c) if (c & 1) s += a[r * w + c];", "it reads no consecutive"),
        ("for (int c = 0; c < w; c += 2) s += a[r * w + c];", "the loop does not count up by one"),
        ("for (int c = 1; c < w; ++c) out[r * w + c] = out[r * w + c - 1] * 2;", "it reads no con"),
    ],
)
def test_what_is_not_consecutive_is_refused(body: str, reason: str) -> None:
    found = vectorise(kernel(ROWS % f"float s = 0; {body} out[r] = s;"), 0)
    assert refused(found)[0].startswith(reason)


def test_an_extreme_takes_its_first_element_into_the_loop() -> None:
    body = "float m = a[r * w]; for (int c = 1; c < w; ++c) m = fmaxf(m, a[r * w + c]); out[r] = m;"
    assert "for (int c = 0; c < w; ++c)" in applied(unpeeled(kernel(ROWS % body), 0)).program.text
    for change in (
        ("fmaxf(m, a[r * w + c])", "m + a[r * w + c]"),
        ("m = a[r * w]", "m = a[r * w + 1]"),
        ("m = a[r * w]", "m = 0"),
        ("fmaxf(m, a[r * w + c])", "fmaxf(m, a[r * w + c] * a[c])"),
    ):
        refused(unpeeled(kernel(ROWS % body.replace(*change)), 0))


RUNNING = "float s = 0; for (int c = 0; c < w; ++c) { s += a[r * w + c]; out[r * w + c] = s; }"

BY_MEMORY = """out[r * w] = a[r * w];
    for (int c = 1; c < w; ++c) out[r * w + c] = 0.5f * out[r * w + c - 1] + a[r * w + c];"""


@pytest.mark.parametrize(
    ("body", "strips"),
    [
        (RUNNING, 2),
        (RUNNING.replace("int c = 0", "int c = 1"), 2),
        (RUNNING.replace("s += a[r * w + c]", "s = 0.5f * s + a[r * w + c] - out[r * w + c]"), 3),
        (RUNNING.replace("s += a[r * w + c];", "if (s < 2.0f) s += a[r * w + c] * c;"), 1),
        (RUNNING.replace("c < w; ++c", "c < w - 1; ++c").replace("+ c];", "+ c + 1];", 1), 2),
        (BY_MEMORY, 1),
    ],
    ids=["sum", "from the second", "recurrence", "conditional", "shifted", "by memory"],
)  # fmt: skip
@pytest.mark.parametrize("wide", sampled([70, 64], 2))
def test_what_goes_from_round_to_round_goes_on_in_strips(body: str, strips: int, wide: int) -> None:
    text = ROWS % body
    made = applied(vectorise(kernel(text), 0, strips=(8, 16, 2)))
    assert made.program.values == {"STRIP": 8}
    assert next(t.values for t in made.program.tunes) == (8, 16)
    assert made.program.text.count("piece += 4") == strips
    shapes = {"a": ("h", "w"), "at": ("i4", "h"), "out": ("h", "w")}
    for strip in (8, 16):
        same(text, made, shapes, {"h": 33, "w": wide}, {"STRIP": strip})


@pytest.mark.parametrize(
    "body",
    [
        "for (int c = 1; c < w; ++c) out[r * w + c] += out[r * w + c - 1];",
        "for (int c = 0; c + 1 < w; ++c) { out[r * w + c + 1] = out[r * w + c]; }",
        "float s = 0; for (int c = 0; c < w; ++c) { if (s < 1.0f) out[r * w + c] = s; s += 1.0f; }",
    ],
)
def test_strips_do_not_cross_what_a_round_leaves_to_the_next(body: str) -> None:
    assert refused(vectorise(kernel(ROWS % body), 0, strips=(8,)))[0].startswith("it reads no")


BESIDE = {
    "behind": ("for (int c = 1; c < w; ++c) s += a[r * w + c] * a[r * w + c - 1];", 1),
    "ahead": ("for (int c = 0; c + 2 < w; ++c) s += a[r * w + c + 2] - a[r * w + c];", 1),
    "both": (("for (int c = 1; c < w - 1; ++c)"
             " s += a[r * w + c - 1] * a[r * w + c + 1] + a[r * w + c];"), 1),
    "test": (("for (int c = 0; c < w; ++c)"
             " if (a[r * w + c] > 0.5f && (c == 0 || a[r * w + c - 1] < 0.5f)) s += 1;"), 1),
    "far": ("for (int c = 0; c + 9 < w; ++c) s += a[r * w + c] * a[r * w + c + 9];", 1),
    "rows": ("for (int c = 0; c < w; ++c) s += a[r * w + c] * a[at[r] * w + c];", 2),
    "gather": ("for (int c = 0; c < w; ++c) s += a[r * w + c] * a[at[r] + c * 3 % w];", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("wide", sampled([64, 70], 2))
@pytest.mark.parametrize("strips", [(), (8, 16)])
def test_loads_beside_a_vector_are_in_it_mostly(
    name: str, wide: int, strips: tuple[int, ...]
) -> None:
    body, vectors = BESIDE[name]
    text = ROWS % f"float s = 0; {body} out[r] = s;"
    made = applied(vectorise(kernel(text), 0, strips=strips))
    assert made.program.text.count("reinterpret_cast<const float4*>") == vectors
    assert ("(c_item " in made.program.text) == (name not in ("far", "rows", "gather"))
    arrays = {
        "a": Array("f4", ("h", "w")),
        "at": Array("i4", ("h",), "below h"),
        "out": Array("f4", ("h",), "zeros"),
    }
    sizes = {"h": 33, "w": wide}
    assert end_of(text, made.program.text, arrays, sizes, {"h": 3, "w": 21}) == "same"


def test_of_neighbours_one_that_is_aligned_is_the_vector() -> None:
    text = vectors("for (int c = 0; c < w; ++c) { s += a[r * w + c + 1]; s += a[r * w + c + 1]"
                   " * a[r * w + c]; } out[r] = s;".replace("for", "float s = 0; for", 1))  # fmt: skip
    assert "(size_t)&a[r * w] % 16 == 0" in text


def test_where_a_loop_ends_keeps_its_type() -> None:
    body = (
        "const long long end = min((long long)w, 40LL); float s = 0;"
        " for (long long c = 0; c < end; ++c) s += a[r * w + c]; out[r] = s;"
    )
    text = ROWS % body
    made = applied(vectorise(kernel(text), 0))
    assert "? end / 4 * 4 : 0" in made.program.text
    same(text, made, {"a": ("h", "w"), "at": ("i4", "h"), "out": ("h",)}, {"h": 33, "w": 64})
