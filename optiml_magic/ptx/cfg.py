"""Basic blocks, where diverged lanes meet again, and which registers outlive a block."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.nouns import Function, Instruction, Label, Register, Symbol
from optiml_magic.ptx.traits import defined, is_barrier, is_exchange, used

EXIT = -1  # the index of the virtual exit block


@dataclass
class Block:
    """Straight-line code; ``end`` decides which successor runs (None: falls through).

    Successors of a conditional branch are (taken, fall-through). No successor: the lanes exit.
    """

    index: int
    instructions: list[Instruction] = field(default_factory=list)
    end: Instruction | None = None
    successors: tuple[int, ...] = ()
    meet: int = EXIT  # the immediate post-dominator
    live_out: frozenset[str] = frozenset()
    before_barrier: bool = False  # a barrier can be reached from here

    @property
    def every(self) -> list[Instruction]:
        """All instructions, the last one included."""
        return [*self.instructions, self.end] if self.end else self.instructions


@dataclass
class Graph:
    blocks: list[Block]
    registers: dict[str, Register]  # those that outlive a block
    joins: frozenset[int]  # blocks where diverged lanes meet


def build(function: Function, early: frozenset[int] = frozenset()) -> Graph:
    """``early`` are the lines of branches by which lanes leave the kernel, as its text has them."""
    blocks, labels = _split(function)
    _connect(blocks, labels, function)
    blocks = _exits_apart(_reachable(blocks))
    _mark_barriers(blocks)
    for block, meet in zip(blocks, _post_dominators(blocks, early), strict=True):
        block.meet = meet
    registers = _liveness(blocks)
    joins = frozenset(b.meet for b in blocks if len(b.successors) > 1 or _leaves(b))
    return Graph(blocks, registers, joins - {EXIT})


def ends_block(instruction: Instruction) -> bool:
    return instruction.base in ("bra", "brx", "ret", "exit", "trap") or is_barrier(instruction)


def _leaves(block: Block) -> bool:
    """Lanes may exit at the end of this block."""
    return not block.successors or (block.end is not None and block.end.base in ("ret", "exit"))


def _split(function: Function) -> tuple[list[Block], dict[str, int]]:
    blocks = [Block(0)]
    labels: dict[str, int] = {}

    def start() -> None:
        last = blocks[-1]
        if last.instructions or last.end:
            blocks.append(Block(len(blocks)))

    for item in function.body:
        if isinstance(item, Label):
            start()
            labels[item.name] = blocks[-1].index
        elif isinstance(item, Instruction):
            if blocks[-1].end is not None:
                start()
            if is_barrier(item) and "red" in item.parts:
                blocks[-1].end = replace(item, operands=item.operands[1:])
                start()
                answer = replace(item, opcode="answer." + item.opcode, counted=False)
                blocks[-1].instructions.append(replace(answer, operands=item.operands[:1]))
            elif ends_block(item):
                blocks[-1].end = item
            else:
                blocks[-1].instructions.append(item)
    return blocks, labels


def _connect(blocks: list[Block], labels: dict[str, int], function: Function) -> None:
    for block in blocks:
        following = (block.index + 1,) if block.index + 1 < len(blocks) else ()
        end = block.end
        if end is None or is_barrier(end):
            block.successors = following
        elif end.base == "brx":
            table = end.operands[1]
            if not isinstance(table, Symbol):
                raise UnsupportedPtx(end.opcode, end.line, "`brx.idx` needs a table of labels")
            block.successors = tuple(labels[name] for name in function.tables[table.name])
        elif end.base == "bra":
            target = end.operands[0]
            if not isinstance(target, Symbol):
                raise UnsupportedPtx(end.opcode, end.line, "`bra` needs a label")
            block.successors = (labels[target.name], *(following if end.guard else ()))
        else:
            block.successors = following if end.guard else ()


def _reachable(blocks: list[Block]) -> list[Block]:
    """The blocks that can run, renumbered; labels at the end of dead code make empty ones."""
    seen, todo = {0}, [0]
    while todo:
        for successor in blocks[todo.pop()].successors:
            if successor not in seen:
                seen.add(successor)
                todo.append(successor)
    number = {old: new for new, old in enumerate(sorted(seen))}
    kept = [blocks[old] for old in sorted(seen)]
    for block in kept:
        block.index = number[block.index]
        block.successors = tuple(number[s] for s in block.successors)
    return kept


def _exits_apart(blocks: list[Block]) -> list[Block]:
    """A bare ``ret`` for each way that leads to it.

    Lanes that return early would otherwise wait there for those that go on to a barrier.
    """
    out = list(blocks)
    for block in blocks:
        successors = []
        for at in block.successors:
            target = blocks[at]
            if not target.instructions and not target.successors and target.end is not None:
                out.append(Block(len(out), [], target.end))
                at = out[-1].index  # noqa: PLW2901  # the copy takes the target's place
            successors.append(at)
        block.successors = tuple(successors)
    return _reachable(out)


def _post_dominators(blocks: list[Block], early: frozenset[int]) -> list[int]:
    """Immediate post-dominators (Cooper, Harvey, Kennedy) with one virtual exit."""
    exit_ = len(blocks)
    edges = _ways(blocks, exit_, early)
    _escape_infinite_loops(edges, exit_)
    predecessors: list[list[int]] = [[] for _ in range(exit_ + 1)]
    for index, targets in enumerate(edges):
        for target in targets:
            predecessors[target].append(index)
    order = _postorder(exit_, predecessors)
    rank = {node: at for at, node in enumerate(order)}
    above: dict[int, int] = {exit_: exit_}
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            known = [t for t in edges[node] if t in above]
            best = known[0]
            for other in known[1:]:
                best = _common(best, other, above, rank)
            if above.get(node) != best:
                above[node] = best
                changed = True
    return [EXIT if above[i] == exit_ else above[i] for i in range(exit_)]


def _ways(blocks: list[Block], exit_: int, early: frozenset[int]) -> list[list[int]]:
    """Successors as far as lanes are to wait for each other at the end of them.

    On the way to a barrier or a shuffle nobody waits for lanes that return early. They do so if
    their way shares no block with that of the others, if the others' meeting place can be reached
    without this branch, or if the text says so: the compiler may let both share their last stores.
    Else the branch may as well be one around the meeting.
    """
    plain = [list(b.successors) for b in blocks]
    meets = {b.index for b in blocks if any(is_barrier(i) or is_exchange(i) for i in b.every)}
    reach = [_reached_by(plain, at) if meets else set() for at in range(len(blocks))]
    ways, leaving = [], set()
    for block in blocks:
        every = list(dict.fromkeys(block.successors))
        on = [s for s in every if reach[s] & meets]
        if not on or (block.end is not None and is_barrier(block.end)):
            ways.append(every + ([exit_] if _leaves(block) else []))
            continue
        shared = set().union(*(reach[s] for s in on))
        if len(on) < len(every):
            said = block.end is not None and block.end.line in early
            if said:
                leaving.add(block.index)
            if said or shared & meets & _reached_by(plain, 0, without=block.index):
                shared = set()
        ways.append([s for s in every if s in on or reach[s] & shared])
    whole = _endless(ways, exit_)
    ahead = {at: _reached_by(ways, at) for at in whole}
    for at in whole:  # a loop that meets in each turn: what leaves it is its end
        if at in leaving:
            ways[at].append(exit_)
        elif all(at in ahead[other] for other in ahead[at]):  # not merely a way to such a loop
            ways[at] = list(dict.fromkeys(blocks[at].successors))
            ways[at] += [exit_] if _leaves(blocks[at]) else []
    return ways


def _reached_by(edges: list[list[int]], start: int, *, without: int = EXIT) -> set[int]:
    """The blocks on any way from ``start``, itself included; no way leads on from ``without``."""
    seen, todo = {start}, [start] if start != without else []
    while todo:
        for successor in edges[todo.pop()]:
            if successor not in seen and successor != without:
                seen.add(successor)
                todo.append(successor)
    return seen


def _escape_infinite_loops(edges: list[list[int]], exit_: int) -> None:
    """Post-dominance needs a way out of every block: invent one where there is none."""
    for index in _endless(edges, exit_):
        edges[index].append(exit_)


def _endless(edges: list[list[int]], exit_: int) -> list[int]:
    """The blocks from which no way leads to the exit."""
    reaching = {exit_}
    grown = True
    while grown:
        more = {i for i, t in enumerate(edges) if i not in reaching and reaching & set(t)}
        reaching |= more
        grown = bool(more)
    return [i for i in range(len(edges)) if i not in reaching]


def _postorder(root: int, edges: list[list[int]]) -> list[int]:
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(edges[root]))]
    while stack:
        node, rest = stack[-1]
        following = next((n for n in rest if n not in seen), None)
        if following is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(edges[following])))
    return order


def _common(a: int, b: int, above: dict[int, int], rank: dict[int, int]) -> int:
    while a != b:
        while rank[a] < rank[b]:
            a = above[a]
        while rank[b] < rank[a]:
            b = above[b]
    return a


def _mark_barriers(blocks: list[Block]) -> None:
    changed = True
    while changed:
        changed = False
        for block in blocks:
            own = block.end is not None and is_barrier(block.end)
            if not block.before_barrier and (
                own or any(blocks[s].before_barrier for s in block.successors)
            ):
                block.before_barrier = changed = True


def _liveness(blocks: list[Block]) -> dict[str, Register]:
    """Fills ``live_out``; returns the registers that some block leaves to another."""
    needs: list[set[str]] = []
    makes: list[set[str]] = []
    registers: dict[str, Register] = {}
    for block in blocks:
        need: set[str] = set()
        make: set[str] = set()
        for instruction in block.every:
            for register in used(instruction):
                registers[register.name] = register
                if register.name not in make:
                    need.add(register.name)
            for register in defined(instruction):
                registers[register.name] = register
                make.add(register.name)
        needs.append(need)
        makes.append(make)
    live_in = [set(n) for n in needs]
    live_out: list[set[str]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            at = block.index
            out = set().union(*(live_in[s] for s in block.successors))
            into = needs[at] | (out - makes[at])
            if out != live_out[at] or into != live_in[at]:
                live_out[at], live_in[at], changed = out, into, True
    for block in blocks:
        block.live_out = frozenset(live_out[block.index])
    crossing = set().union(*live_in)
    return {name: registers[name] for name in sorted(crossing)}
