"""The loops of random kernels: every way to write one, and some to write it badly."""

from __future__ import annotations

from collections.abc import Callable

from .random_kernels import Maker
from .random_numbers import Local

_INT = "int"


def _bound(maker: Maker, most: int) -> str:
    """A number from 0 to ``most``, as an ``int``."""
    if maker.rng.random() < 0.35:
        return maker.rng.choice(["n", "m", str(most)]) if most >= 7 else str(most)
    return f"(int)({maker.positive(most).text})"


def _for_up(maker: Maker) -> None:
    rng = maker.rng
    kind = rng.choice([_INT, _INT, "unsigned", "long long", "short", "size_t"])
    start, step = rng.randrange(4), rng.choice([1, 1, 2, 3])
    bound = _bound(maker, 8)
    name = maker.fresh("k", bound)
    test = rng.choice(["{0} < {1}", "{0} <= {1}", "{1} > {0}", "!({0} >= {1})", "{0} + 1 < {1}"])
    moved = rng.choice(["{0} += {1}", "{0} = {0} + {1}"] if step > 1 else ["++{0}", "{0}++"])
    head = f"for ({kind} {name} = {start}; {test.format(name, bound)}; {moved.format(name, step)})"
    _run(maker, head, Local(name, kind if kind != "short" else _INT, 0, 12), 9)


def _for_thread(maker: Maker) -> None:
    """From a thread's own place in strides of its block."""
    name, bound = maker.fresh("k"), maker.rng.choice(["n", "m", "9", "n * 2"])
    kind = maker.rng.choice([_INT, "unsigned"])
    stride = maker.rng.choice(["blockDim.x", "2 * blockDim.x", "gridDim.x * blockDim.x"])
    head = f"for ({kind} {name} = threadIdx.x; {name} < {bound}; {name} += {stride})"
    _run(maker, head, Local(name, kind, 0, 60), 14)


def _for_down(maker: Maker) -> None:
    rng = maker.rng
    bound = _bound(maker, 8)
    name = maker.fresh("k", bound)
    head = rng.choice([
        "for (int {0} = {1} - 1; {0} >= 0; --{0})",
        "for (int {0} = {1}; {0} > 0; {0}--)",
        "for (int {0} = {1}; {0} > -3; {0} -= 2)",
        "for (int {0} = {1}; {0}-- > 0;)",
        "for (unsigned {0} = {1}; {0}-- > 0;)",
        "for (unsigned {0} = {1}; {0}--;)",
        "for (int {0} = {1}; --{0} >= 0;)",
        "for (int {0} = {1} * 3; {0} >= 1; {0} -= 3)",
    ]).format(name, bound)  # fmt: skip
    _run(maker, head, Local(name, _INT, -4, 24), 9)


def _for_unequal(maker: Maker) -> None:
    bound = _bound(maker, 7)
    name = maker.fresh("k", bound)
    head = maker.rng.choice([
        "for (int {0} = 0; {0} != {1}; ++{0})", "for (int {0} = {1}; {0}; --{0})",
        "for (int {0} = {1}; {0} != 0; {0}--)", "for (int {0} = -2; {0} != {1} + 1; {0}++)",
    ]).format(name, bound)  # fmt: skip
    _run(maker, head, Local(name, _INT, -3, 9), 10)


def _for_powers(maker: Maker) -> None:
    name = maker.fresh("s")
    head = maker.rng.choice([
        "for (int {0} = 1; {0} < 40; {0} *= 2)", "for (int {0} = 32; {0} > 0; {0} >>= 1)",
        "for (int {0} = 40; {0}; {0} /= 3)", "for (unsigned {0} = 1; {0} <= n * 3; {0} <<= 1)",
        "for (int {0} = n * 4; {0} > 1; {0} /= 2)", "for (int {0} = 2; {0} < n * m; {0} = {0} * 3)",
    ]).format(name)  # fmt: skip
    _run(maker, head, Local(name, _INT, 0, 64), 6)


def _for_two(maker: Maker) -> None:
    first, second = maker.fresh("a"), f"b{maker.made}"
    if first == second:
        return
    head = maker.rng.choice([
        "for (int {0} = 0, {1} = n; {0} < {1}; ++{0}, --{1})",
        "for (int {0} = 0, {1} = 3; {0} < 6; {0}++, {1} += {2})",
        "for (int {0} = 1, {1} = m; {1} > 0 && {0} < 7; {0} += 2, {1}--)",
    ]).format(first, second, "2")  # fmt: skip
    other = Local(second, _INT, -2, 20, fixed=True)
    maker.line("{")
    maker.locals.append(other)
    _run(maker, head, Local(first, _INT, 0, 9), 7)
    maker.locals.remove(other)
    maker.line("}")


def _for_moving_bound(maker: Maker) -> None:
    """Its bound, or the counter itself, moves in the body as well."""
    most = _bound(maker, 8)
    name, bound = maker.fresh("k", most), f"e{maker.made}"
    maker.line(f"int {bound} = {most};")
    maker.locals.append(Local(bound, _INT, -3, 9, fixed=True))
    if maker.rng.random() < 0.5:
        head = f"for (int {name} = 0; {name} < {bound}; ++{name})"
        _run(maker, head, Local(name, _INT, 0, 9), 9, last=maker.rng.choice([
            f"if ({maker.condition(1)}) --{bound};", f"{bound}--;"]))  # fmt: skip
    else:
        head = f"for (int {name} = 0; {name} < {bound}; ++{name})"
        _run(maker, head, Local(name, _INT, 0, 12), 9, last=maker.rng.choice([
            f"if ({maker.condition(1)}) {name}++;", f"{name} += 1;",
            f"if ({maker.condition(1)}) {name} += 2;"]))  # fmt: skip


def _outer(maker: Maker) -> None:
    """Its counter lives before and after it."""
    rng = maker.rng
    bound = _bound(maker, 8)
    name = maker.fresh("w", bound)
    maker.line(f"int {name} = {rng.randrange(3)};")
    counter = Local(name, _INT, -1, 12, spare=0)
    maker.locals.append(counter)
    step = rng.choice([f"++{name};", f"{name} += 2;", f"{name}++;", f"{name} = {name} + 1;"])
    shape = rng.randrange(7)
    if shape == 0:
        with maker.block(f"while ({name} < {bound})"), maker.inside(9, counter):
            maker.endless = True
            maker.body(2)
            maker.line(step)
    elif shape == 1:
        with maker.block(f"while ({name} < {bound})"), maker.inside(9, counter):
            maker.line(step)
            maker.body(2)
    elif shape == 2:
        with maker.block("do", f"}} while (++{name} < {bound});"), maker.inside(9, counter):
            maker.body(2)
    elif shape == 3:
        with maker.block("do", f"}} while ({name} < {bound});"), maker.inside(9, counter):
            maker.line(step)
            maker.body(2)
    elif shape == 4:
        head = rng.choice(["while (true)", "for (;;)", "while (1)"])
        with maker.block(head), maker.inside(9, counter):
            maker.line(f"if ({name} >= {bound}) break;")
            maker.endless = True
            maker.body(2)
            maker.line(step)
    elif shape == 5:
        with maker.block("while (true)"), maker.inside(9, counter):
            maker.endless = True
            maker.body(1)
            maker.line(step)
            maker.line(f"if ({name} > {bound}) break;")
            maker.body(1)
    else:
        with maker.block(f"for (; {name} < {bound}; {step[:-1]})"), maker.inside(9, counter):
            maker.body(2)
    counter.fixed = rng.random() < 0.5
    counter.low, counter.high, counter.spare = -20, 40, 15


def _walking(maker: Maker) -> None:
    """A pointer is the counter."""
    rng = maker.rng
    name = f"p{maker.made}"
    maker.made += 1
    start, length = rng.randrange(40), _bound(maker, 8)
    head = rng.choice([
        "for (const float* {0} = in + base + {1}; {0} < in + base + {1} + {2}; ++{0})",
        "for (const float *{0} = in + base + {1}, *e{0} = {0} + {2}; {0} != e{0}; ++{0})",
        "for (const float* {0} = in + base + {1} + {2}; {0} > in + base + {1}; {0} -= 2)",
    ]).format(name, start, length)  # fmt: skip
    with maker.block(head), maker.inside(9, None):
        maker.line(f"acc += *{name};")
        maker.line(f"out[base + (int)({name} - in) - {4096}] = acc;")
        maker.body(1)


def _same_name(maker: Maker) -> None:
    """Two loops inside each other over variables of one name."""
    bound = _bound(maker, 5)
    name = maker.fresh("k", bound)
    head = f"for (int {name} = 0; {name} < {bound}; ++{name})"
    inner = f"for (int {name} = {name}0; {name} < 3; ++{name})"
    with maker.block(head), maker.inside(5, None):
        maker.line(f"int {name}0 = {name};")
        maker.line(f"out[base + AT({name}, 1)] = 1.0f;")
        with maker.block(inner), maker.inside(3, None):
            maker.locals.append(Local(name, _INT, 0, 9, fixed=True))
            maker.body(1)
            maker.line(f"out[base + {name} * 3 + {name}0 + 50] = 3.0f;")
        maker.line(f"out[base + {name} * 11] = 2.0f;")


def _through_a_nest(maker: Maker) -> None:
    """A place that goes on in each round of the inner loop, from wherever it is."""
    rng = maker.rng
    one, two, at = maker.fresh("a"), f"b{maker.made}", f"at{maker.made}"
    kind, outer = rng.choice([_INT, _INT, "unsigned"]), rng.choice(["3", "n", "m"])
    inner = rng.choice([
        "for (int {0} = -1; {0} <= 1; ++{0})", "for (int {0} = 0; {0} < 3; {0}++)",
        "for (int {0} = 4; {0} > 0; {0} -= 2)", "for (int {0} = 0; {0} < m; ++{0})",
        "for (int {0} = {1}; {0} < 3; ++{0})", "for (int {0} = 3; {0} < 1; ++{0})",
    ]).format(two, one)  # fmt: skip
    moved = rng.choice(["{0}++", "++{0}", "{0} += 2", "{0} = {0} + 1"]).format(at)
    maker.line(f"{kind} {at} = {rng.randrange(3)};")
    with maker.block(f"for (int {one} = 0; {one} < {outer}; ++{one})"), maker.inside(9, None):
        if rng.random() < 0.3:
            maker.line(
                rng.choice([f"{at}++;", f"if ({one} == 1) continue;", f"if ({one} == 2) {at} = 0;"])
            )
        with maker.block(inner), maker.inside(4, None):
            if rng.random() < 0.2:
                maker.line(rng.choice([f"if ({two} == 1) break;", f"if ({two} == 0) continue;"]))
            maker.line(f"out[base + AT((int){at}, 1)] = 1.0f;")
            maker.line(f"{moved};")
            if rng.random() < 0.2:
                maker.line(f"if ({two} == 2) {moved};")
        maker.line(f"out[base + 60 + (int){at}] = 2.0f;")
    maker.line(f"out[base + 90 + (int){at}] = 3.0f;")


def _run(maker: Maker, head: str, counter: Local, most: int, last: str = "") -> None:
    counter.fixed = True
    with maker.block(head), maker.inside(most, counter):
        maker.locals.append(counter)
        maker.body(maker.rng.randrange(1, 4))
        if last:
            maker.line(last)


LOOPS: tuple[Callable[[Maker], None], ...] = (
    _for_up, _for_up, _for_up, _for_thread, _for_down, _for_down, _for_unequal, _for_powers,
    _for_two, _for_moving_bound, _outer, _outer, _outer, _walking, _same_name, _through_a_nest,
)  # fmt: skip
