"""Odd spellings of a kernel that is drawn: closures, commas, narrow counters, shadows and the like.

Unlike the twins' forms they may be read as another kernel: what a rule makes of them is right, and
there may be less of it. Each takes some of the places that it finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as replaced
from random import Random

from tree_sitter import Node

from optiml_magic.source.edits import Edit, apply
from tests.twins.tree import (
    after,
    before,
    changed,
    condition_of,
    contains,
    counted,
    enclosing,
    field,
    fresh,
    functions,
    inside,
    is_integer,
    names,
    parse,
    replace,
    src,
    statements,
    types,
    walk,
    with_prelude,
    words,
)

from .writing import Made

_WAYS_OUT = ("return_statement", "break_statement", "continue_statement", "goto_statement")
_NUMBERS = {"float", "int", "double"}
_LOOPS = ("for_statement", "while_statement", "do_statement")
#: Names that primitives give to what they make.
_TAKEN = ("lane", "there", "part", "piece", "tile", "thread", "group", "whole", "items", "row", "up", "item", "first", "head", "count", "sum", "next")  # fmt: skip
_HELPERS = ("lanes_sum", "group_mask", "lanes_greatest", "LANES", "BLOCK", "ITEMS", "STRIP")
Dress = Callable[[Random, str], str | None]


def _some(rng: Random, found: Iterable[list[Edit]]) -> list[Edit]:
    """Some of the changes that do not meet, one at least where there is one."""
    every = [*found]
    rng.shuffle(every)
    made: list[Edit] = []
    spans: list[tuple[int, int]] = []
    for edits in every[: max(1, len(every) // 2)]:
        start, end = min(e.start_byte for e in edits), max(e.end_byte for e in edits)
        if all(end < a or b < start for a, b in spans):
            made += edits
            spans.append((start, end))
    return made


def _edited(text: str, made: list[Edit]) -> str | None:
    return apply(text, made) if made else None


def braces(rng: Random, text: str) -> str | None:
    """``float s{};`` for ``float s = 0.0f;``, and ``int k{1}`` for others."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            if node.type != "init_declarator" or node.parent is None:
                continue
            value, declared = field(node, "value"), field(node, "declarator")
            kind = node.parent.child_by_field_name("type")
            plain = kind is not None and src(kind) in _NUMBERS and declared.type == "identifier"
            if plain and value.type == "number_literal":
                given = "" if float(src(value).rstrip("fFuU")) == 0 else src(value)
                yield [replace(node, f"{src(declared)}{{{given}}}")]

    return _edited(text, _some(rng, found()))


def closures(rng: Random, text: str) -> str | None:
    """The rounds of a loop by a lambda that takes the counter, or one that is called on the spot."""

    def found() -> Iterator[list[Edit]]:
        syntax = parse(text)
        for node in walk(syntax.root):
            loop = counted(node)
            if loop is None or not _closed(loop.body) or loop.counter in changed(loop.body):
                continue
            body = inside(loop.body)
            if rng.choice([0, 0, 1]):
                yield [replace(loop.body, f"{{ [&] {{ {body} }}(); }}")]
                continue
            name = fresh("round", syntax)
            made = f"auto {name} = [&]({loop.type} {loop.counter}) {{ {body} }};\n"
            yield [before(node, f"{{ {made}"), replace(loop.body, f"{name}({loop.counter});"), after(node, " }")]  # fmt: skip

    return _edited(text, _some(rng, found()))


def _closed(body: Node) -> bool:
    """Whether what is within braces never leaves them, and is no pragma's."""
    pragma = "#pragma" in src(body) or "__shared__" in src(body)
    return not contains(body, *_WAYS_OUT, "labeled_statement") and not pragma


def commas(rng: Random, text: str) -> str | None:
    """Two statements as one, with a comma."""

    def found() -> Iterator[list[Edit]]:
        for block in walk(parse(text).root):
            if block.type != "compound_statement":
                continue
            for one, other in zip(statements(block), statements(block)[1:], strict=False):
                if one.type == other.type == "expression_statement":
                    inner = src(one).rstrip(";").strip(), src(other).rstrip(";").strip()
                    if all(inner) and not any("__sync" in i for i in inner):
                        yield [replace(one, f"{inner[0]}, {inner[1]};"), replace(other, ";")]

    return _edited(text, _some(rng, found()))


def switches(rng: Random, text: str) -> str | None:
    """A branch as a ``switch``, with a fall through where there is no other way."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            if node.type != "if_statement" or "break" in src(node) or "pragma" in src(node):
                continue
            then, other = field(node, "consequence"), node.child_by_field_name("alternative")
            test = src(condition_of(node))
            last = inside(other.named_children[-1]) if other is not None else ""
            first = f"case 1: {{ {inside(then)} }}"
            rest = (
                f"break; default: {{ {last} }}"
                if last
                else rng.choice(["default: ;", "break;", ""])
            )
            yield [replace(node, f"switch (({test}) ? 1 : 0) {{ {first} {rest} }}")]

    return _edited(text, _some(rng, found()))


def narrow(rng: Random, text: str) -> str | None:
    """Counters to a number of at most 100 in fewer bits, or in more."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            loop = counted(node)
            if loop is None or loop.type != "int" or not loop.by_one:
                continue
            numbers = [
                int(n) for n in re.findall(r"\d+", f"{src(loop.start)} {src(loop.condition)}")
            ]
            known = not words(loop.condition) - {loop.counter} and not words(loop.start)
            if known and numbers and max(numbers) <= 100 and loop.counter not in changed(loop.body):
                kind = rng.choice(
                    ["unsigned char", "short", "signed char", "long long", "unsigned short"]
                )
                if "-" in src(loop.start) and "unsigned" in kind:
                    kind = "short"
                yield [replace(field(field(node, "initializer"), "type"), kind)]

    return _edited(text, _some(rng, found()))


def short_circuits(rng: Random, text: str) -> str | None:
    """``c && (x = y, true);`` for ``if (c) x = y;``."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
                continue
            only = statements(field(node, "consequence"))
            if (
                len(only) == 1
                and only[0].type == "expression_statement"
                and "__sync" not in src(only[0])
            ):
                inner, test = src(only[0]).rstrip("; "), src(condition_of(node))
                if inner and "atomic" not in inner:
                    yield [replace(node, f"({test}) && ({inner}, true);")]

    return _edited(text, _some(rng, found()))


def turned_subscripts(rng: Random, text: str) -> str | None:
    """``(i)[a]`` for ``a[i]``."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            if node.type == "subscript_expression" and field(node, "argument").type == "identifier":
                array = types_around(node).get(src(field(node, "argument")))
                if array == "pointer":
                    index = src(field(node, "indices"))[1:-1]
                    yield [replace(node, f"({index})[{src(field(node, 'argument'))}]")]

    return _edited(text, _some(rng, found()))


def types_around(node: Node) -> dict[str, str]:
    function = enclosing(node, "function_definition")
    return {n: one.kind for n, one in types(function).items()} if function is not None else {}


def shadows(rng: Random, text: str) -> str | None:
    """Another local of the name of a parameter or local, in a block that does not ask for that."""

    def found() -> Iterator[list[Edit]]:
        for function in functions(parse(text)):
            known = [n.name for n in names(function)]
            for node in walk(function):
                if node.type != "compound_statement" or node.parent == function:
                    continue
                if "pragma" in src(node).split("\n")[0]:
                    continue
                own = words(node) | {n.name for n in names(node)}
                loop = counted(node.parent) if node.parent is not None else None
                free = [n for n in known if n not in own and (loop is None or n != loop.counter)]
                if free:
                    name, kind = rng.choice(free), rng.choice(["int", "float", "const unsigned"])
                    at = Edit(
                        node.start_byte + 1,
                        node.start_byte + 1,
                        f"\n{kind} {name} = 3; (void){name};",
                    )
                    yield [at]

    return _edited(text, _some(rng, found()))


def taken_names(rng: Random, text: str) -> str | None:
    """Locals, and a macro or a function, that are called as what primitives make."""
    syntax = parse(text)
    kernels = [f for f in functions(syntax) if any(c.type == "__global__" for c in f.children)]
    if len(kernels) != 1 or len(functions(syntax)) != 1 or "#define" in text:
        return None
    own = [n for n in names(kernels[0]) if n.declaration.type == "declaration"]
    own = [n for n in own if sum(o.name == n.name for o in own) == 1]
    if not own:
        return None
    chosen = rng.sample(own, min(len(own), rng.choice([1, 2, 3])))
    free = [n for n in _TAKEN if not re.search(rf"\b{n}\b", text)]
    given = dict(zip((n.name for n in chosen), rng.sample(free, len(chosen)), strict=True))
    made = [
        replace(node, given[src(node)])
        for node in walk(field(kernels[0], "body"))
        if node.type == "identifier" and src(node) in given
    ]
    after_ = apply(text, made)
    helper = rng.choice(_HELPERS)
    if rng.choice([0, 1]) and not re.search(rf"\b{helper}\b", text):
        head = rng.choice([f"#define {helper} 3", f"__device__ int {helper}(int v) {{ return v; }}", f"struct {helper} {{ int v; }};"])  # fmt: skip
        after_ = with_prelude(after_, head)
    return after_


def taken_away(rng: Random, text: str) -> str | None:
    """``s -= -(e)`` for ``s += e``, and ``!!(c)`` for a condition."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            if node.type == "assignment_expression" and src(node.children[1]) == "+=":
                kind = types_of(node).get(src(field(node, "left")))
                if kind in ("float", "int", "double"):
                    value = src(field(node, "right"))
                    yield [replace(node, f"{src(field(node, 'left'))} -= -({value})")]
            elif node.type == "if_statement":
                yield [replace(condition_of(node), f"!!({src(condition_of(node))})")]

    return _edited(text, _some(rng, found()))


def types_of(node: Node) -> dict[str, str]:
    function = enclosing(node, "function_definition")
    return {n: one.type for n, one in types(function).items()} if function is not None else {}


def macros(rng: Random, text: str) -> str | None:
    """Assignments by a macro that is a statement."""
    if re.search(r"\bGIVE\b|#pragma optiml (tune|pass)", text):
        return None

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            if node.type != "expression_statement" or node.parent is None:
                continue
            inner = node.named_children[0] if node.named_children else None
            if inner is None or inner.type != "assignment_expression":
                continue
            if node.parent.type == "compound_statement" and src(inner.children[1]) == "=":
                left, right = src(field(inner, "left")), src(field(inner, "right"))
                if "{" not in right and "<" not in right:
                    yield [replace(node, f"GIVE({left}, {right});")]

    made = _edited(text, _some(rng, found()))
    define = rng.choice(
        ["do { (place) = (value); } while (0)", "{ place = (value); }", "(place) = value"]
    )
    return with_prelude(made, f"#define GIVE(place, value) {define}") if made else None


def structured(rng: Random, text: str) -> str | None:
    """A local by a structured binding to the member of another."""
    if "[&]" in text:  # which captures none
        return None

    def found() -> Iterator[list[Edit]]:
        syntax = parse(text)
        for function in functions(syntax):
            for name in names(function):
                node = name.declaration
                one = len(names(node)) == 1 and name.kind == "scalar" and not name.constant
                plain = (
                    one and node.type == "declaration" and name.type in ("float", "int", "double")
                )
                block = node.parent is not None and node.parent.type == "compound_statement"
                if plain and block and name.declarator.type == "init_declarator":
                    held, value = (
                        fresh(f"{name.name}_held", syntax),
                        src(field(name.declarator, "value")),
                    )
                    yield [replace(node, f"struct {{ {name.type} v; }} {held} = {{({name.type})({value})}};\nauto& [{name.name}] = {held};")]  # fmt: skip

    return _edited(text, _some(rng, found()))


def volatiles(rng: Random, text: str) -> str | None:
    """Locals that are volatile, where nothing refers to them."""

    def found() -> Iterator[list[Edit]]:
        for function in functions(parse(text)):
            for name in names(function):
                node = name.declaration
                plain = name.kind == "scalar" and name.type in ("float", "int")
                referred = re.search(rf"&\s*(?:\w+\s*=\s*)?{name.name}\b", src(function))
                whole = "&" not in src(node) and "[" not in src(node) and referred is None
                if node.type == "declaration" and plain and whole:
                    yield [before(node, "volatile ")]

    return _edited(text, _some(rng, found()))


def selects(rng: Random, text: str) -> str | None:
    """``(c ? s : t) += v`` for a branch that adds to one of two."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            other = node.child_by_field_name("alternative") if node.type == "if_statement" else None
            if other is None:
                continue
            ways = [statements(field(node, "consequence")), statements(other.named_children[-1])]
            parts = [w[0].named_children[0] for w in ways if len(w) == 1 and w[0].type == "expression_statement" and w[0].named_children]  # fmt: skip
            if len(parts) != 2 or any(p.type != "assignment_expression" for p in parts):
                continue
            (a, op, v), (b, again, w) = ([src(c) for c in p.children[:3]] for p in parts)
            if op == again and v == w:
                yield [replace(node, f"({src(condition_of(node))} ? {a} : {b}) {op} {v};")]

    return _edited(text, _some(rng, found()))


def once_around(rng: Random, text: str) -> str | None:
    """A loop of one round around a loop: ``do { ... } while (0)``, ``for (int once = 0; ...)``."""

    def found() -> Iterator[list[Edit]]:
        syntax = parse(text)
        for node in walk(syntax.root):
            if (
                node.type in _LOOPS
                and not contains(node, "return_statement")
                and "__sync" not in src(node)
            ):
                if node.parent is None or node.parent.type != "compound_statement":
                    continue
                name = fresh("once", syntax)
                head, foot = rng.choice([("do {", "} while (0);"), (f"for (int {name} = 0; {name} < 1; {name}++) {{", "}"), ("if (true) {", "}"), ("{ {", "} }")])  # fmt: skip
                yield [before(node, head), after(node, foot)]

    return _edited(text, _some(rng, found()))


def wide_sizes(rng: Random, text: str) -> str | None:
    """Sizes as parameters of 64 bits."""
    kernels = functions(parse(text))
    if not all(any(c.type == "__global__" for c in kernel.children) for kernel in kernels):
        return None

    def found() -> Iterator[list[Edit]]:
        for name in (name for kernel in kernels for name in names(kernel)):
            given = name.declaration.type == "parameter_declaration" and name.kind == "scalar"
            if given and name.type == "int":
                yield [replace(field(name.declaration, "type"), rng.choice(["long long", "long"]))]

    return _edited(text, _some(rng, found()))


def left_shifts(rng: Random, text: str) -> str | None:
    """Products with powers of two as shifts, and remainders as bits, of what is whole."""

    def found() -> Iterator[list[Edit]]:
        for node in walk(parse(text).root):
            if node.type != "binary_expression":
                continue
            sign, right = src(field(node, "operator")), src(field(node, "right"))
            function = enclosing(node, "function_definition")
            if (
                function is None
                or not right.isdigit()
                or int(right) & (int(right) - 1)
                or int(right) == 0
            ):
                continue
            left = field(node, "left")
            if (
                is_integer(left, types(function))
                and sign == "*"
                and left.type != "binary_expression"
            ):
                yield [replace(node, f"({src(left)} << {int(right).bit_length() - 1})")]

    return _edited(text, _some(rng, found()))


def dressed(rng: Random, one: Made) -> Made:
    """The program in up to two of the dresses."""
    for dress in rng.sample(DRESSES, 2):
        text = dress(rng, one.text)
        if text is not None and not (one.args and dress is taken_names):
            one = replaced(one, text=text, forms=(*one.forms, dress.__name__))
    return one


DRESSES: tuple[Dress, ...] = (braces, closures, commas, switches, narrow, short_circuits, turned_subscripts, shadows, taken_names, taken_away, macros, structured, volatiles, selects, once_around, wide_sizes, left_shifts)  # fmt: skip
