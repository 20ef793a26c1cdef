"""A lifted text prints back to its bytes; spelled anew it compiles to the same machine code."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from present import sampled

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import (
    Call,
    Cast,
    Expr,
    Lambda,
    Literal,
    Name,
    Unread,
    builtin,
)
from optiml_magic.kernels.printing import printed
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Evaluate,
    If,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.unit import lift
from optiml_magic.model.build import CompileFailure

ROOT = Path(__file__).parents[3]
TEXTS = sorted(
    [*(ROOT / "optiml_magic/testing").rglob("*.cu"), *(ROOT / "tests/tutorials").rglob("*.cu")]
)


def forgotten(node):
    """A tree of which nothing says where it came from, but for what cannot be spelled."""
    if isinstance(node, tuple):
        return tuple(forgotten(part) for part in node)
    kept = (Verbatim, Blank, Unread, Lambda)
    if isinstance(node, kept) or (isinstance(node, Literal) and node.value is None):
        return node
    if isinstance(node, Expr | Statement | Variable):
        changes = {
            f.name: forgotten(getattr(node, f.name))
            for f in fields(node)
            if isinstance(getattr(node, f.name), Expr | Statement | tuple)
            and f.name not in ("span", "lead", "tail", "head", "middle", "foot", "template")
        }
        if isinstance(node, Expr | Statement):
            changes |= {name: None for name in ("span", "head", "middle", "foot")
                        if any(f.name == name for f in fields(node))}  # fmt: skip
        if hasattr(node, "variables"):
            changes["variables"] = tuple(forgotten(v) for v in node.variables)
        changes.pop("variable", None)
        return replace(node, **changes)
    return node


def respelled(text):
    """The text with the body of its first kernel spelled anew."""
    unit = lift(text)
    function = unit.kernels[0]
    return printed(unit, replace(function, body=forgotten(function.body)))


@pytest.mark.parametrize("path", sampled(TEXTS, 3), ids=lambda path: path.stem)
def test_what_was_not_edited_is_printed_as_its_own_bytes(path):
    text = path.read_bytes().decode()
    unit = lift(text)
    for function in unit.functions:
        if not function.method:
            assert printed(unit, function) == text
            if unit.syntax.root.has_error:  # a brace may be missing that a block would get
                continue
            # Blocks and heads that are put together again are the same bytes, too.
            assert printed(unit, replace(function, body=taken_apart(function.body))) == text


def taken_apart(block: Block) -> Block:
    """A block whose statements are printed one by one, and so are those of blocks inside."""

    def apart(statement):
        if isinstance(statement, Block):
            return replace(statement, span=None, body=tuple(map(apart, statement.body)))
        plain = isinstance(statement, If) and statement.head is not None
        if plain and statement.other is None and statement.before is None:
            return replace(statement, span=None, then=apart(statement.then))
        return statement

    return apart(block)


@pytest.mark.parametrize("path", sampled(TEXTS, 31), ids=lambda path: path.stem)
def test_what_is_spelled_anew_is_the_same_machine_code(path):
    text = path.read_bytes().decode()
    if any(v for f in lift(text).kernels for v in walk(f.body) if isinstance(v, Verbatim)):
        pytest.skip("it has text that is kept as it is")
    if "switch (" in text:
        pytest.skip("a switch is spelled as branches")
    compiler = NvrtcCompiler()
    before = compiler.compile(text, (), chip("h200"), CompileOptions())
    if isinstance(before, CompileFailure):
        pytest.skip("it needs the names of its launch")
    after = compiler.compile(respelled(text), (), chip("h200"), CompileOptions())
    assert not isinstance(after, CompileFailure), after
    assert code(after.ptx) == code(before.ptx)


def code(ptx: str) -> list[str]:
    """The instructions, without the lines that they came from."""
    return [
        line for line in ptx.splitlines() if not line.lstrip().startswith((".loc", "//", ".file"))
    ]


def test_an_edit_touches_what_it_is_about_and_nothing_else():
    text = """__global__ void k(float* a, int n) {
    int i = threadIdx.x;   // who I am
    if (i < n) {  /* guard */
        a[i] = 1.0f;  // one
        a[i] += 2.0f;
    }
}
"""
    unit = lift(text)
    function = unit.kernels[0]
    declared, branch = function.body.body
    first, second = branch.then.body
    changed = Evaluate(
        None, first.line, replace(second.expression, span=None, op="-="), lead=second.lead
    )
    then = replace(branch.then, span=None, body=(first, changed))
    body = replace(function.body, span=None, body=(declared, replace(branch, span=None, then=then)))
    assert printed(unit, replace(function, body=body)) == text.replace("+=", "-=")


def test_operators_keep_their_places_when_spelled_anew():
    text = (
        "__global__ void k(int* o, int a, int b) { o[0] = a - (b - 1) * -(-a) / (a << (b & 3)); }"
    )
    assert "a - (b - 1) * - -a / (a << (b & 3))" in respelled(text)


def test_operators_that_are_words_are_those_that_they_mean():
    text = (
        "__global__ void k(int* o, int a, int b) { if (a and not (b or a not_eq 2)) "
        "o[0] = a bitand b xor compl a bitor 4; o[0] and_eq a, o[1] or_eq b, o[2] xor_eq a; }"
    )
    made = respelled(text)
    assert "if (a && !(b || a != 2))" in made
    assert "o[0] = a & b ^ ~a | 4" in made
    assert "o[0] &= a, o[1] |= b, o[2] ^= a" in made


def test_a_place_that_is_chosen_keeps_its_parentheses():
    text = "__global__ void k(int* o, int a, int b) { (a ? o[0] : o[1]) += a, (a, b) = 3; }"
    assert "(a ? o[0] : o[1]) += a, (a, b) = 3" in respelled(text)


def test_what_leads_to_an_object_keeps_its_arrow():
    body = "o[0] = s->f(o[1]) + s[0].f(o[2]) + (*s).n->f(1.0f) + sizeof(float) * sizeof(S);"
    text = f"struct S {{ float f(float); S* n; }};\n__global__ void k(S* s, float* o) {{ {body} }}"
    assert body in respelled(text)


@pytest.mark.parametrize("function", ["Ops<3>::max", "std::max", "Of::Ops::least<2>", "max"])
def test_a_function_keeps_its_scope(function):
    head = "struct Of { struct Ops {}; };\ntemplate <int N> struct Ops {};\n"
    text = f"{head}__global__ void k(int* o, int a) {{ o[0] = {function}(a, 2) + (int)(a); }}"
    assert f"{function}(a, 2)" in respelled(text)


@pytest.mark.parametrize(
    "head", ["typedef float real;", "using real = float;", "__device__ float real(float x);"]
)
def test_a_type_in_parentheses_stays_before_parentheses(head):
    text = f"{head}\n__global__ void k(float* o, int a, int b) {{ o[0] = (real)(a - b) / 2; }}"
    assert "(real)(a - b) / 2" in respelled(text)
    (cast, *_) = [e for e in expressions(lift(text).kernels[0].body) if isinstance(e, Cast | Call)]
    assert isinstance(cast, Call if "(" in head else Cast)


@pytest.mark.parametrize(
    ("spelled", "made"),
    [
        ("m * ((i)+(j))", "y * ((i)+(j))"),
        ("((i)+(j)) * m", "((i)+(j)) * y"),
        ("m*((i)*n+j)", "y * ((i)*n+j)"),
        ("m * ( ( i ) - 1 )", "y * (( i ) - 1)"),
        ("m * (j - ( i )*(n) + (j)&(i))", "y * (j - ( i )*(n) + (j)&(i))"),
        ("(i) + m", "i + y"),
        ("m * (float)(i)", "y * (float)(i)"),
    ],
)
def test_a_name_in_parentheses_keeps_them_beside_an_operator(spelled, made):
    """The grammar takes ``(i)+(j)`` for a cast."""
    text = f"__global__ void k(float* o, int i, int j, int m, int n) {{ o[0] = {spelled}; }}"
    unit = lift(text)
    (function,) = unit.functions
    swaps = {e: Name(None, "y") for e in expressions(function.body)
             if isinstance(e, Name) and e.name == "m"}  # fmt: skip
    body = edited(function.body, swaps)
    assert f"o[0] = {made};" in printed(unit, replace(function, body=body))


def test_empty_braces_stay_where_a_declaration_is_spelled_anew():
    text = "__global__ void k(float* o) { float a[4] = {}, b[2]{}; o[0] = a[1] + b[1]; }"
    unit = lift(text)
    (function,) = unit.functions
    declared, *rest = function.body.body
    body = replace(function.body, span=None, body=(replace(declared, span=None), *rest))
    assert "float a[4]{}, b[2]{};" in printed(unit, replace(function, body=body))


def test_a_part_of_a_macro_is_printed_as_what_it_stands_for():
    text = (
        "#define PLACE (blockIdx.x * blockDim.x + threadIdx.x)\n#define ROW(i) a[(i) * n]\n"
        "__global__ void k(float* a, int n) {\n    a[PLACE + n] = ROW(PLACE) + PLACE * 2.0f;\n}\n"
    )
    unit = lift(text)
    (function,) = unit.functions
    swaps = {
        e: Name(None, "y")
        for e in expressions(function.body)
        if builtin(e) == "threadIdx.x" and e.span == min(
            p.span for p in expressions(function.body) if builtin(p) == "threadIdx.x"
        )
    }  # fmt: skip
    new = printed(unit, replace(function, body=edited(function.body, swaps)))
    assert "a[blockIdx.x * blockDim.x + y + n] = ROW(PLACE) + PLACE * 2.0f;" in new
