"""Maps: neighbouring elements that threads take one each, taken several at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.amid import amid
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.coalescing import side_by_side
from optiml_magic.kernels.primitives.coarsened import Coarse, coarsen, names
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.fields_in_turn import fields_in_turn
from optiml_magic.kernels.primitives.flat import flat
from optiml_magic.kernels.primitives.floored import floored
from optiml_magic.kernels.primitives.items import WIDEST
from optiml_magic.kernels.primitives.mapped import mapped
from optiml_magic.kernels.primitives.neighbours import Neighbours
from optiml_magic.kernels.primitives.searched_once import search_once
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sized import multipliers, sized
from optiml_magic.kernels.primitives.sizes import threads, usual_rounds
from optiml_magic.kernels.primitives.spaced import spaced
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.unwaited import unwaited
from optiml_magic.kernels.primitives.written import written
from optiml_magic.kernels.reading import Access
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
#: Bytes that a thread of a full multiprocessor has to have under way, so that there are 48 KB:
#: NVIDIA/cccl, cub/device/dispatch/tuning/tuning_transform.cuh, for the H200.
_UNDER_WAY = 24
_BLOCK = 256
_ALONE = 8  # loads of an item that no vector brings, from which on it is less of a map: ours
_RARELY = 0.3  # of its chance, which is left of it at least: ours
_FILLED = 0.8  # the same where a thread stored a part of several sectors by itself: ours
_SCATTERED = 0.1  # the same where neighbours that were stored together lie apart: ours
_RECORD = 128  # bytes of an item that neighbours' requests fill lines of the cache with: ours
_UNKNOWN = 8  # rounds of a loop of which nothing is known: ours
_FIELDS = 4  # of an item, such as the channels of a pixel, that are taken as a number: ours
_THREAD = "threadIdx.x"


class VectoriseMap(KernelRule):
    """Element by element: activations, blends, copies, biases, one item of a few fields each."""

    name = "vectorise_map"
    before = (
        fields_in_turn, unwaited, unstaged, spaced, bounded, unstrided, linear, in_full, floored,
        flat, written,
    )  # fmt: skip
    teaches = (
        "Each thread loaded and stored one element of an array by an instruction of its own. A "
        "thread that takes several neighbours loads 16 bytes at once, so the same bytes need a "
        "quarter of the requests or fewer, indices and guards are computed once for all of them, "
        "and more bytes of each thread are under way at any time."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        given: dict[str, int] = {}
        if not _lies_along(kernel):
            kernel, given = _of_fields(kernel)
        if not _lies_along(kernel):
            return
        effects = Effects(kernel)
        items = mapped(kernel, effects)
        groups = Neighbours(kernel, items, effects, amid(kernel, items, effects))
        loads = any(group.does("load") for group in groups.found)
        widths = [groups.most] if groups.most > 1 else []
        if not groups.fill(1):
            widths.append(1)
        if not widths:
            raise NotLegal("its elements fill a vector already")
        for width in widths:
            title = (
                f"take items in vectors of {width}"
                if width > 1
                else "take an item's elements at once"
            )
            title += "".join(f", where {name} is {size}" for name, size in given.items())
            yield Site(
                f"map {width}", title, partial(_coarsened, kernel, width),
                round(_chance(kernel, width) * _share(kernel, groups, width), 2),
                Hypothesis(
                    _REQUESTS.format("ld" if loads else "st"), "lower",
                    "one request brings several elements of a thread", (2.0, 16.0),
                ),
                _points(kernel, groups.loaded() * width),
            )  # fmt: skip


def _coarsened(kernel: Kernel, width: int) -> Kernel | Refused:
    """Several items a thread, which search once for what they look for side by side."""
    made = coarsen(kernel, Coarse(width))
    return made if isinstance(made, Refused) else where_legal(search_once, made)


def _of_fields(kernel: Kernel) -> tuple[Kernel, dict[str, int]]:
    """The kernel with how many fields an item has as a number, such as the channels of a pixel."""
    given = multipliers(kernel, _FIELDS, "store")
    made = sized(kernel, given) if given else kernel
    return (where_legal(written, made), given) if isinstance(made, Kernel) else (kernel, {})


def _lies_along(kernel: Kernel) -> bool:
    """Whether neighbouring threads write neighbouring elements, or every few of them."""
    symbols = kernel.reading.symbols
    for access in kernel.reading.accesses:
        form, size = access.offset, access.element.size
        if access.space != "global" or access.mode == "load" or access.loops or form is None:
            continue
        places = {_THREAD} | {
            name for name in form.symbols
            if symbols[name].op == "%" and _steps(symbols[name].arguments[0])
        }  # fmt: skip
        steps = [by.value for name in places if (by := form.coefficient(name)) is not None]
        if size and any(by is not None and 0 < abs(by) <= max(4 * size, WIDEST) for by in steps):
            return True
    return False


def _steps(form: Polynomial) -> bool:
    """Whether the next thread has the next number."""
    by = form.coefficient(_THREAD)
    return by is not None and by.value == 1


def _chance(kernel: Kernel, width: int) -> float:
    """Less where there are not threads for every multiprocessor when each takes so many items."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    enough = count is None or chip is None or count // width >= 2 * _BLOCK * chip.sms
    return 0.7 if enough else 0.2


def _share(kernel: Kernel, groups: Neighbours, width: int) -> float:
    """What is left of the chance: all of it where neighbours search for their places at once."""
    plain = (s for s in loops_in(kernel.function.body) if not s.before and not s.update)
    if width > 1 and any(plain):
        made = coarsen(kernel, Coarse(width))
        if isinstance(made, Kernel) and isinstance(search_once(made), Kernel):
            return 1.0
    return _brought(kernel, groups, width)


def _brought(kernel: Kernel, groups: Neighbours, width: int) -> float:
    """The share of an item's loads that come by vectors, where many do not; no less than some.

    Next to none where neighbours are stored one by one: of each sector a thread then stores a part.
    """
    grouped = {access for group in groups.found for access in group.accesses}
    stores = (a for a in groups.accesses if a.mode == "store" and a not in grouped)
    if width > 1 and any(side_by_side(kernel, access) for access in stores):
        return _SCATTERED
    loads = {a: _times(kernel, a) for a in groups.accesses if a.mode == "load"}
    alone, total = sum(n for a, n in loads.items() if a not in grouped), sum(loads.values())
    least = _FILLED if any(g.does("store") and g.apart > 1 for g in groups.found) else _RARELY
    brought = max(least, 1 - alone / total) if alone >= _ALONE else 1.0
    return brought if width == 1 else max(_RARELY, brought * _narrow(groups))


def _narrow(groups: Neighbours) -> float:
    """The share of an item's bytes that are not of records as wide as a vector, or wider.

    The loads of one of these fill their sectors already, and those of several lie apart.
    """
    found = {g.accesses[0].array: g.size * g.apart for g in groups.found}
    taken = dict(found)
    for access in groups.accesses:
        step = access.offset.coefficient(_THREAD) if access.offset is not None else None
        apart = abs(step.value or 0) if step is not None else 0
        if access.array not in found and WIDEST <= apart <= _RECORD:
            taken[access.array] = apart
    narrow = sum(size for size in found.values() if size < WIDEST)
    return narrow / sum(taken.values()) if taken else 1.0


def _times(kernel: Kernel, access: Access) -> int:
    """How often an item loads."""
    found = (usual_rounds(kernel, axis) for axis in kernel.reading.loops(access))
    return prod(_UNKNOWN if made is None else max(1, made) for made in found)


def _points(kernel: Kernel, loaded: int) -> tuple[Point, ...]:
    """As many vectors a thread as keep enough bytes under way, then twice as many."""
    items, block = names(kernel)
    few = 1 if not loaded or loaded >= _UNDER_WAY else 2
    own = {block: _BLOCK} if block else {}
    return ({items: few, **own}, {items: 2 * few, **own}, {items: few, **dict.fromkeys(own, 128)})
