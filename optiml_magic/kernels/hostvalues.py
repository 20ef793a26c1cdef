"""What the locals of a host function are where it launches: numbers, and ``dim3`` extents."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostarguments import COUNT, Arguments
from optiml_magic.kernels.hostbraces import arguments_of, braces, given, is_braced
from optiml_magic.kernels.hostchanges import (
    PROPERTIES,
    asked_of_device,
    changed_by_calls,
    first_round,
    given_anew,
    is_given_from_outside,
    is_listed,
    is_only_read,
    last_set,
    set_once,
    set_over,
    target,
)
from optiml_magic.kernels.hosthiding import hiding, is_seen
from optiml_magic.kernels.hostliterals import (
    cast_of,
    computed,
    converted,
    literal_number,
    made_by_function,
    named_number,
)
from optiml_magic.kernels.hostmembers import members_set
from optiml_magic.source.aliases import resolve
from optiml_magic.source.dtypes import scalar_dtype
from optiml_magic.source.formals import declared, text_of
from optiml_magic.source.operators import SM_COUNT
from optiml_magic.source.syntax import parse, walk
from optiml_magic.source.values import Values, changes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tree_sitter import Node

    from optiml_magic.source.definitions import Definition

_NAMED = frozenset({"identifier", "field_expression", "call_expression"})
_REAL = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_VECTOR = re.compile(r"(?:std|thrust)?(?:::)?(?:host_|device_)?vector\s*<")
_COPIED = re.compile(r"(\w+)(?:\.begin\(\))?")
_SIZE = re.compile(r"(\w+)\.size\(\)")
RESIZED = re.compile(
    r"\b(\w+)(?:\.|->)(?:push_back|emplace_back|resize|assign|insert|erase|clear|pop_back|swap)\b"
)
_DEEPEST = 8


class HostValues(Values):
    """The locals of a host function, with the axes of its ``dim3`` ones.

    One that is declared bare and set once, outside of any branch, has that value. With ``as_run``,
    one that only the command line changes has its value where none is given there, and, but for all
    ``rounds`` of a loop, one that this counts its first. ``spelled`` has names for what a launch
    passes that is not a name itself, ``mat.rows``, by its text. Locals are those that are seen from
    ``place``, where that is given. What is not known has its number by ``otherwise``, where that is
    given, and is told in ``assumed``. ``types`` are those of the function's template parameters,
    ``reals`` its parameters that are not whole numbers. Functions ``referring`` may change what
    they are called with.
    """

    def __init__(  # noqa: PLR0913  # what is known around it
        self,
        body: Node,
        constants: Mapping[str, int] | None = None,
        kept: Collection[str] = (),
        functions: Mapping[str, Definition] | None = None,
        *,
        as_run: bool = False,
        place: Node | None = None,
        referring: Mapping[str, frozenset[int]] | None = None,
        rounds: bool = False,
    ) -> None:
        self._place = place
        self.body = body
        self.spelled: dict[str, str] = {}
        self.otherwise: HostValues | None = None
        self.types: Mapping[str, str] = {}
        self.reals: Mapping[str, float] = {}
        self.assumed: dict[str, int] = {}
        self._moved: dict[str, list[Node]] = {}  # changes of what is kept
        self._since: dict[str, int] = {}  # the places of what is read in another way than it stands
        self._constructed: dict[str, list[Node]] = {}
        self._vectors: dict[str, Node] = {}
        self._pointers: dict[str, Node] = {}
        self._dims: set[str] = set()
        self._made: dict[str, dict[str, Node]] = {}  # what is declared with nothing, or by members
        self.members: dict[str, Node] = {}
        self._runs = as_run
        self._whole: set[str] = set()  # locals of a type of integers
        super().__init__(body, (), constants, kept, functions)
        places: dict[str, list[Node]] = {}
        for name, node in (*changes(body), *given_anew(body)):
            if not is_listed(node):
                places.setdefault(name, []).append(node)
        self.changed = frozenset(places)
        by_calls = frozenset(changed_by_calls(body, referring or {}))
        several = hiding(body, (COUNT,), None)
        counted = as_run and COUNT in self.constants and COUNT not in several
        run = Arguments(self.number)
        if counted and COUNT not in self.changed | by_calls:
            comes = {
                n: [at for at in nodes if not run.is_left_out(at)] for n, nodes in places.items()
            }
            places = {name: nodes for name, nodes in comes.items() if nodes}
            self.changed = frozenset(places)
        unclear = several | by_calls
        made = {n: m for n, m in self._made.items() if n not in self._dims | unclear}
        self.members = members_set(body, made, places, unclear)
        for name in {found[1] for found in RESIZED.finditer(text_of(body))} | self.changed:
            self._vectors.pop(name, None)
        for name, nodes in places.items():
            if len(nodes) == 1 and (asked := asked_of_device(nodes[0])):
                self._read_again(name, asked, nodes[0])
                self.changed -= {name}
            if name in self._dims and name not in self.definitions and self.declared[name] == 1:
                self._set_by_axis(name, nodes)
            sure = name not in several and run.is_sure(nodes[0])
            right = set_once(nodes, body, sure=sure) if target(nodes[0]) == name else None
            bare = name not in self.definitions and name not in self._pointers
            if not bare and name not in self._pointers:
                right = set_over(name, nodes, body, run)
            elif not bare:
                right = None
            own = right is not None and any(text_of(n) == name for n in walk(right))
            once = self.declared.get(name) == 1 and name not in several
            if right is not None and once and not own:  # `dt = dt / 2` asks what it was
                self.definitions[name] = right
                self.changed -= {name}
            elif as_run and (
                all(map(is_given_from_outside, nodes))
                or (not rounds and first_round(name, nodes, place, body))
            ):
                self.changed -= {name}
        self._moved = {name: places[name] for name in self.kept if name in places}
        self.changed |= by_calls
        self._unclear = set(unclear)

    def hide(self, names: Collection[str]) -> None:
        """Take nothing for certain of names that are those of several things."""
        self.changed |= set(names)
        self._unclear |= set(names)
        self.kept -= set(names)
        self.members = {m: n for m, n in self.members.items() if m.split(".")[0] not in names}

    def number(self, node: Node | None) -> int | float | None:
        """The value of a literal, of what is computed from whole ones, or of a name for one."""
        if node is None:
            return None
        literal = literal_number(node)
        if literal is not None:
            return literal
        expression = self.expression(node)
        if expression is not None and not expression.names | expression.arrays:
            try:
                return expression.evaluate({})
            except SourceError:  # a division by zero
                return None
        if node.type == "identifier":
            local = self.definition(text_of(node))
            found = self.number(local) if local is not None else self._real_given(text_of(node))
            whole = text_of(node) in self._whole and isinstance(found, float)
            return converted(found, "int") if whole else found
        if node.type == "subscript_expression":
            return self.number(self._element(node))
        if node.type == "field_expression" and self._runs:
            right, given = self.members.get(text_of(node)), self._real_given(text_of(node))
            return self.number(right) if right is not None else given
        return self._real(node)

    def _element(self, node: Node) -> Node | None:
        """What an array that stays as it is was listed with at a place, ``sizes[0]``."""
        array, indices = (node.child_by_field_name(part) for part in ("argument", "indices"))
        name = text_of(array)
        listed = self._pointers.get(name) if is_only_read(name, self.body) else None
        at = self.number(indices.named_child(0)) if indices is not None else None
        if listed is None or listed.type != "initializer_list" or self.declared.get(name) != 1:
            return None
        every = [one for one in listed.named_children if one.type != "comment"]
        return every[at] if isinstance(at, int) and 0 <= at < len(every) else None

    def _real_given(self, name: str) -> float | None:
        """What a caller gives a parameter that stays as it is, or a constant of the C library."""
        if name.partition(".")[0] in {*self.changed, *self.declared}:
            return None
        return self.reals.get(name, named_number(name))

    def _real(self, node: Node) -> int | float | None:
        """A cast, or a sum, product and so on of which one side is not a whole number."""
        if node.type == "parenthesized_expression" and node.named_child_count == 1:
            return self.number(node.named_child(0))
        if (made := computed(node, self.number)) is not None:
            return made
        if (cast := cast_of(node)) is not None:
            return converted(self.number(cast[1]), resolve(cast[0], self.types)[0])
        if node.type != "binary_expression":
            return None
        left, right = (self.number(node.child_by_field_name(side)) for side in ("left", "right"))
        apply = _REAL.get(text_of(node.child_by_field_name("operator")))
        if left is None or right is None or apply is None:
            return None
        if isinstance(left, int) and isinstance(right, int):
            return None  # what whole numbers do has been asked
        try:
            return float(apply(left, right))
        except (ZeroDivisionError, OverflowError):
            return None

    def local(self, name: str) -> int | float | None:
        """The number that a local of that name stands for."""
        given = self.definition(name)
        return None if given is None else self.number(given)

    def _set_by_axis(self, name: str, nodes: list[Node]) -> None:
        """``dim3 grid; grid.x = 4;``, each axis once, where nothing can go around it."""
        axes = {axis: [n for n in nodes if target(n) == f"{name}.{axis}"] for axis in "xyz"}
        values = {axis: set_once(own, self.body, self._place) for axis, own in axes.items() if own}
        if sum(map(len, axes.values())) == len(nodes) and all(values.values()):
            words = ", ".join(text_of(values.get(axis)) or "1" for axis in "xyz")
            self._read_again(name, f"dim3({words})", nodes[0])
            self.changed -= {name}

    def _read_again(self, name: str, words: str, since: Node) -> None:
        """Take a local for what these words say where it is set."""
        if words == SM_COUNT:
            self.spelled[name] = words
            return
        reread = parse(f"auto x = {words};").root
        made = next((n for n in walk(reread) if n.type == "init_declarator"), None)
        value = made.child_by_field_name("value") if made is not None else None
        if value is not None:
            self.definitions[name] = value
            self._since[name] = since.start_byte

    def definition(self, name: str) -> Node | None:
        """What a local stands for, but for one that a kept name changes behind.

        Its new value is what is passed, and not what the local was computed from.
        """
        local = super().definition(name)
        if local is None or not self._moved:
            return local
        end = self._place.start_byte if self._place is not None else self.body.end_byte
        names = {text_of(node) for node in walk(local) if node.type == "identifier"}
        moved = (node for own in names for node in self._moved.get(own, ()))
        since = self._since.get(name, local.start_byte)
        return None if any(since < node.start_byte < end for node in moved) else local

    def held(self, name: Node) -> Node | None:
        """What a local that is set several times was set to last where a name stands."""
        own = text_of(name)
        root: Node | None = name
        while root is not None and root != self.body:
            root = root.parent
        if root is None or own in self._unclear or self.declared.get(own) != 1:
            return None
        return last_set(own, self.definitions.get(own), name, self.body)

    def vector(self, name: str, depth: int = 0) -> Node | None:
        """How many elements a vector has, which may be made of another."""
        count = self._vectors.get(name) if depth < _DEEPEST else None
        other = _COPIED.fullmatch(text_of(count)) if count is not None else None
        return self.vector(other[1], depth + 1) if other and other[1] in self._vectors else count

    def constructed(self, name: str) -> list[Node]:
        """What a local is made with, where its declaration gives its constructor something."""
        return self._constructed.get(name, [])

    def pointer(self, name: str) -> Node | None:
        """What a local that leads to memory is made from, if that is once and for all."""
        if name in self.changed or self.declared.get(name) != 1 or name in self._vectors:
            return None  # a vector that is made of another is a copy of it
        return self._pointers.get(name) or self.definitions.get(name)

    def declared_pointer(self, name: str) -> Node | None:
        """The same of one that is declared as a pointer: what ``auto`` stands for nobody says."""
        return self._pointers.get(name) if self.pointer(name) is not None else None

    def _declare(self, node: Node) -> None:
        """``dim3 block(TILE, TILE)`` reads like a function's declaration; it is none."""
        if self._place is not None and not is_seen(node, self._place):
            return
        super()._declare(node)
        for child in node.children_by_field_name("declarator"):
            value = child.child_by_field_name("value")
            if child.type == "init_declarator" and declared(child).depth == 1 and value is not None:
                self._pointers[declared(child).name] = value
        kind = text_of(node.child_by_field_name("type"))
        dtype = scalar_dtype(kind)
        for child in node.children_by_field_name("declarator"):
            listed = braces(child.child_by_field_name("value"))
            if child.type == "identifier" or (listed is not None and not _VECTOR.match(kind)):
                name = declared(child).name
                self._made[name] = given(kind, listed) if listed is not None else {}
            if dtype is not None and dtype[-2] in "iu":
                self._whole.add(declared(child).name)
            arguments = arguments_of(child)
            if arguments and self.declared.get(declared(child).name) == 1:
                self._constructed[declared(child).name] = arguments
                if _VECTOR.match(kind) and not is_braced(child):
                    self._vectors[declared(child).name] = arguments[0]
        if not kind.endswith("dim3"):
            return
        for child in node.children_by_field_name("declarator"):
            self._dims.add(declared(child).name)
            if child.type == "function_declarator":
                axes = text_of(child.child_by_field_name("parameters"))
                self._read_again(declared(child).name, f"dim3{axes}", child)

    def text(self, node: Node | None, depth: int = 0) -> str | None:
        found = self._told(node, depth)
        if found is None and node is not None and text_of(node) in self._whole:
            real = self.definition(text_of(node))  # as `int n = 1e6`
            whole = None if real is None else converted(literal_number(real), "int")
            found = None if whole is None else f"({whole})"
        if found is not None or node is None or self.otherwise is None or node.type not in _NAMED:
            return found
        number = self.otherwise.number(node)
        if not isinstance(number, int):
            return None
        self.assumed[text_of(node)] = number
        return f"({number})"

    def _told(self, node: Node | None, depth: int) -> str | None:
        if node is not None and text_of(node) in self.spelled:
            return self.spelled[text_of(node)]
        if node is not None and node.type == "conditional_expression":
            decided = self.number(node.child_by_field_name("condition"))
            if decided is not None:
                way = "consequence" if decided else "alternative"
                return self.text(node.child_by_field_name(way), depth + 1)
        if node is not None and node.type in ("call_expression", "subscript_expression"):
            known = self.constants.get(text_of(node)) if self._runs else None
            if known is not None:
                return f"({known})"
        if node is not None and node.type == "call_expression":
            size = _SIZE.fullmatch(text_of(node))
            count = self.vector(size[1]) if size is not None else None
            if count is not None:
                return self.text(count, depth + 1)
        if node is not None and node.type == "field_expression":
            field = text_of(node.child_by_field_name("field"))
            if field in PROPERTIES:
                return PROPERTIES[field]
            right = self.members.get(text_of(node)) if self._runs else None
            if right is not None:
                return self.text(right, depth + 1)
            root = text_of(node.child_by_field_name("argument"))
            if text_of(node) in self.constants and root not in {*self.changed, *self.declared}:
                return f"({self.constants[text_of(node)]})"
            owner = node.child_by_field_name("argument")
            known = owner is None or owner.type != "identifier" or root in self._dims
            axes = self.axes(owner) if known else None
            if axes is None or field not in ("x", "y", "z"):
                return None
            at = "xyz".index(field)
            return self.text(axes[at], depth + 1) if at < len(axes) else "1"
        return super().text(node, depth)

    def axes(self, node: Node | None) -> list[Node] | None:
        """The extents of a ``dim3`` expression; a number is its first; None if it is not known."""
        if node is None:
            return None
        if node.type == "identifier":
            local = self.definition(text_of(node)) or self.held(node)
            if local is not None and local.type in ("argument_list", "initializer_list",
                                                    "call_expression"):  # fmt: skip
                return self.axes(local)
            return [node]
        if node.type in ("argument_list", "initializer_list"):
            return list(node.named_children)
        if node.type == "call_expression" and text_of(
            node.child_by_field_name("function")
        ).endswith("dim3"):
            return self.axes(node.child_by_field_name("arguments"))
        if (made := made_by_function(node, self.functions)) is not None:
            return self.axes(made)
        if node.type == "compound_literal_expression":
            return self.axes(node.child_by_field_name("value"))
        return [node]
