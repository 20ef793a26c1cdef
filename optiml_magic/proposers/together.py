"""The best edit of every launch as one: a chain gains little where one of its launches is edited.

Each launch has its share of the time, and so have the chances of its edits. One idea has the best
of each launch that has one, so that a search need not find them one behind the other. What rules
say about expressions alone goes along with the shape of its launch, whatever that is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.kernels.primitives.costs import rough_seconds
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.model.facts import Facts
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.source.program import Program, parse_program

NAME = "every_launch"
ALONG = "with_expressions"
_AND = " + "  # between the keys of several
_LEAST = 0.4  # chance of an edit from which on it is made without being tried alone: ours
SPELLED = ("float_literals", "fast_functions")  # rules that leave the shape of a kernel alone
_SHAPES = 2  # that are tried along with expressions: ours
_BEFORE = 0.01  # of a chance, by which one idea comes before another
_MORE = 0.2  # of a chance, by which expressions make a shape likelier at most: ours
_ALONE = 0.8  # of the chance of a shape, beside the same with fast expressions: ours
_RATIONALE = (
    "A program of several launches takes as long as all of them. Each gets what looks best for it "
    "at once, so that none hides what the others gain."
)
_ALONG = (
    "The shape of a kernel decides how its bytes come, its expressions how many instructions each "
    "of them takes. Either hides what the other gains, so both change at once."
)

Again = Callable[[str, Program, View], Iterable[Idea | Refusal]]
"""The ideas of the rule of this name for a program."""


def weighed(ideas: Sequence[Idea], program: Program, view: View) -> list[Idea]:
    """The ideas, each by the time that its launches take, beside the longest launch.

    What joins launches, and is likely by itself, comes before the edits of these alone, which are
    in its way: also where a finding has lifted them.
    """
    if len({name for idea in ideas for name in idea.launches}) < 2:
        return [*ideas]
    shares = _shares(program, view.facts)

    def weight(idea: Idea) -> float:
        share = min(1.0, sum(shares.get(name, 1.0) for name in idea.launches))
        return idea.prior * share if idea.launches else idea.prior

    found = [replace(idea, prior=round(weight(idea), 3)) for idea in ideas]
    for at, (idea, now) in enumerate(zip(ideas, found, strict=True)):
        if idea is _first(ideas, idea.launches) and idea.prior >= _LEAST:
            alone = [o.prior for o in found if len(o.launches) == 1 < len(idea.launches)
                     and o.launches[0] in idea.launches]  # fmt: skip
            prior = max(now.prior, max(alone, default=0.0) + _BEFORE)
            found[at] = replace(now, prior=round(min(prior, 1.0), 3))
    return found


def _first(ideas: Sequence[Idea], launches: tuple[str, ...]) -> Idea:
    """The likeliest idea about exactly these launches."""
    return max((i for i in ideas if i.launches == launches), key=lambda idea: idea.prior)


def together(ideas: Sequence[Idea], view: View, again: Again) -> Iterator[Idea]:
    """Ideas that have the best edit of each launch, where several launches have one.

    One with what joins launches, and one without, which comes behind: it is in the way of that.
    ``ideas`` have the chances that their rules give them.
    """
    likely = sorted((i for i in ideas if i.prior >= _LEAST), key=lambda idea: -idea.prior)
    yield from _along(likely, view, again)
    if len({name for idea in likely for name in idea.launches}) < 2:
        return
    ranked = sorted(likely, key=lambda idea: idea.proposer in SPELLED)
    known: dict[str, bool] = {}
    joined = _chosen(sorted(ranked, key=lambda idea: -len(idea.launches)), known)
    alone = _chosen((idea for idea in ranked if len(idea.launches) < 2), known)
    several = any(len(part.launches) > 1 for part in joined)
    most = 1.0
    if several:
        one = _as_one(joined, view, again)
        most = one.prior if len(joined) > 1 else joined[0].prior
        if len(joined) > 1:
            yield from _both(one, joined, likely, view, again)
    if len(alone) > 1:
        one = _as_one(alone, view, again)
        prior = round(min(one.prior, most - _BEFORE), 3) if several else one.prior
        yield from _both(replace(one, prior=prior), alone, likely, view, again)


def _both(
    one: Idea, parts: tuple[Idea, ...], likely: Sequence[Idea], view: View, again: Again
) -> Iterator[Idea]:
    """The best of each launch with what changes in their expressions, and then without."""
    shaped = [part.launches[0] for part in parts if part.proposer not in SPELLED]
    told = {word for part in parts for word in part.arithmetic}
    more = tuple(
        idea for idea in _spelled(likely, shaped)
        if not idea.arithmetic or not told.issuperset(idea.arithmetic)
    )  # fmt: skip
    if not more:
        yield one
        return
    with_them = _as_one((*parts, *more), view, again)
    names = tuple(dict.fromkeys(with_them.launches))
    yield replace(with_them, prior=one.prior, launches=names)
    yield replace(one, prior=round(_ALONE * one.prior, 3))


def behind(ideas: Sequence[Idea], more: Sequence[Idea]) -> list[Idea]:
    """The ideas; a shape that is also offered with fast expressions is less likely by itself.

    It is nearly always slower. Once such expressions were wrong, no shape is offered with them
    (``doubted``).
    """
    along = [idea for idea in more if idea.proposer == ALONG]  # by the title of their shape first
    return [
        replace(idea, prior=round(_ALONE * idea.prior, 3))
        if any(a.title.startswith(f"{idea.title}; ") and a.launches == idea.launches for a in along)
        else idea
        for idea in ideas
    ]  # fmt: skip


def in_step(ideas: Sequence[Idea], more: Sequence[Idea], view: View, again: Again) -> list[Idea]:
    """The ideas, where several launches are of one kernel with each edit of all of them at once.

    What pays off for one sweep does so for the next, however likely it is, and for one sweep of
    many it gains little. ``more`` are edits of several launches that need not be made again.
    """
    found = list[Idea]()
    known = {_keys(idea) for idea in more}
    behind = set[str]()
    for parts in _of_copies(ideas):
        one = _as_one(parts, view, again)
        behind.update(part.key for part in parts)
        if _keys(one) not in known:
            prior = min(max(part.prior for part in parts) + _BEFORE, 1.0)
            found.append(replace(one, prior=round(prior, 3), title=_titled(parts)))
    alone = [replace(i, prior=round(_ALONE * i.prior, 3)) if i.key in behind else i for i in ideas]
    return [*alone, *found]


def _keys(idea: Idea) -> frozenset[str]:
    return frozenset(idea.key.removeprefix(f"{NAME} ").split(_AND))


def _of_copies(ideas: Sequence[Idea]) -> list[tuple[Idea, ...]]:
    """The ideas of one rule about one site of several copies of a kernel, for each such site."""
    found: dict[tuple[str, str], dict[str, Idea]] = {}
    for idea in ideas:
        if len(idea.launches) == 1:
            (name,) = idea.launches
            site = idea.proposer, idea.key.replace(name, _copied(name), 1)
            found.setdefault(site, {}).setdefault(name, idea)
    return [tuple(parts.values()) for parts in found.values() if len(parts) > 1]


def _copied(launch: str) -> str:
    """The kernel that a launch has a copy of, by its name (``apart``)."""
    bare, opening, arguments = launch.partition("<")
    return re.sub(r"_\d+$", "", bare) + opening + arguments


def _titled(parts: Sequence[Idea]) -> str:
    return f"{', '.join(part.launches[0] for part in parts)}: {parts[0].title}"


def _along(likely: Sequence[Idea], view: View, again: Again) -> Iterator[Idea]:
    """The likeliest shapes of the only launch with what changes in its expressions, each as one."""
    names = {name for idea in likely for name in idea.launches}
    shapes = [idea for idea in likely if idea.proposer not in SPELLED][:_SHAPES]
    for shape in [[one] for one in shapes] or [[]]:
        told = {word for idea in shape for word in idea.arithmetic}
        spelled = [i for i in _spelled(likely, [*names])
                   if not i.arithmetic or not told.issuperset(i.arithmetic)]  # fmt: skip
        if len(names) == 1 and len(shape) + len(spelled) > 1:
            yield _with_expressions((*shape, *spelled), view, again)


def _with_expressions(parts: tuple[Idea, ...], view: View, again: Again) -> Idea:
    """A shape, where there is one, and what is said about expressions, as one idea."""
    one = _as_one(parts, view, again)
    return replace(
        one,
        title="; ".join(part.title for part in parts),
        proposer=ALONG,
        key=f"{ALONG} {one.key}",
        move=f"{ALONG} {one.move}",
        rationale=_ALONG,
        hypothesis=parts[0].hypothesis,
        prior=round(
            min(max(part.prior for part in parts) + _BEFORE, parts[0].prior + _MORE, 1.0), 3
        ),
        starts=parts[0].starts,
        launches=tuple(dict.fromkeys(one.launches)),
    )


def _spelled(likely: Sequence[Idea], names: Iterable[str]) -> tuple[Idea, ...]:
    """Of each rule about expressions its likeliest idea for each of these launches."""
    found = {}
    for name in names:
        for rule in SPELLED:
            own = (i for i in likely if i.proposer == rule and i.launches == (name,))
            found[rule, name] = next(own, None)
    return tuple(idea for idea in found.values() if idea is not None)


def _chosen(ranked: Iterable[Idea], known: dict[str, bool]) -> tuple[Idea, ...]:
    """The first idea of each launch, none about a launch that an earlier one is about.

    One that refuses late is none: the whole would promise what it does not have. ``known`` says by
    key which become a text.
    """
    found: list[Idea] = []
    taken = set[str]()
    for idea in ranked:
        if not idea.launches or taken & {*idea.launches}:
            continue
        if idea.key not in known:
            known[idea.key] = isinstance(idea.make(), str)
        if known[idea.key]:
            found.append(idea)
            taken |= {*idea.launches}
    return tuple(found)


def _as_one(parts: tuple[Idea, ...], view: View, again: Again) -> Idea:
    most = max(part.prior for part in parts)
    return Idea(
        title="; ".join(f"{part.launches[0]}: {part.title}" for part in parts),
        proposer=NAME,
        make=partial(_made, parts, view, again),
        key=f"{NAME} {_AND.join(part.key for part in parts)}",
        rationale=_RATIONALE,
        hypothesis=Hypothesis(TIME, "lower", "every launch is faster", (1.2, 32.0)),
        prior=round(most + (1 - most) / 2, 3),
        arithmetic=tuple(dict.fromkeys(word for part in parts for word in part.arithmetic)),
        move=f"{NAME} {_AND.join(part.move for part in parts)}",
        launches=tuple(name for part in parts for name in part.launches),
    )


def _shares(program: Program, facts: Facts | None) -> Mapping[str, float]:
    """The time of each launch beside that of the longest; none where they are not all known."""
    times = {k.launch.kernel or k.function.name: rough_seconds(k) for k in kernels(program, facts)}
    known = {name: seconds for name, seconds in times.items() if seconds is not None}
    longest = max(known.values(), default=0.0)
    return {name: seconds / longest for name, seconds in known.items()} if longest else {}


def _made(parts: Sequence[Idea], view: View, again: Again) -> str | Refusal:
    """The parts one after the other; a refusal where one is refused beside the others."""
    text = view.step.candidate.text
    left = {name for part in parts for name in part.launches}
    told = [part for part in parts if part.proposer in SPELLED]
    changed = not told
    for part in parts:
        made = (_spelled_anew if part in told else _next)(part, text, view, left, again)
        if isinstance(made, Refusal):
            return replace(made, reason=f"beside other edits: {made.reason}")
        changed = changed or (part in told and made != text)
        text = made
        left -= {*part.launches}
    return text if changed else _is_gone(told[0])


def _next(part: Idea, text: str, view: View, left: set[str], again: Again) -> str | Refusal:
    """What one part makes of a text: the idea of the same key that its rule has there."""
    ideas = _ideas(part, text, view, left, again)
    if isinstance(ideas, Refusal):
        return ideas
    found = next((idea for idea in ideas if idea.key == part.key), None)
    return found.make() if found is not None else _is_gone(part)


def _spelled_anew(part: Idea, text: str, view: View, left: set[str], again: Again) -> str | Refusal:
    """What a rule about expressions makes of a text: of all that has become of its launch.

    An edit before may have made several launches of it, or given its kernel another name; all these
    begin with the name before. Each gets its likeliest idea.
    """
    bare, others = part.launches[0].partition("<")[0], _names(view) - {*part.launches}
    done = set[tuple[str, ...]]()
    while True:
        ideas = _ideas(part, text, view, left, again)
        if isinstance(ideas, Refusal):
            return ideas
        same = [
            idea for idea in ideas
            if all(name.startswith(bare) and name not in others for name in idea.launches)
            if idea.launches not in done
        ]  # fmt: skip
        if not same:  # what it calls may have changed along with another launch
            return text
        likeliest = max(same, key=lambda idea: idea.prior)
        made = likeliest.make()
        if isinstance(made, str):
            text = made
        elif not done:
            return made
        done.add(likeliest.launches)


def _ideas(
    part: Idea, text: str, view: View, left: set[str], again: Again
) -> Iterator[Idea] | Refusal:
    """What the rule of a part has for a text, as long as somebody asks for more."""
    try:
        program = parse_program(text)
    except SourceError as unfit:
        return Refusal(NAME, unfit.message, unfit.line or 0)
    candidate = replace(
        view.step.candidate, proposal=replace(view.step.candidate.proposal, text=text)
    )
    facts = _facts(program, view.facts, left)
    here = replace(view, step=replace(view.step, candidate=candidate), find_facts=lambda: facts)
    return (idea for idea in again(part.proposer, program, here) if isinstance(idea, Idea))


def _is_gone(part: Idea) -> Refusal:
    return Refusal(part.proposer, f"`{part.launches[0]}` is not what it was beside its neighbours")


def _names(view: View) -> set[str]:
    launches = parse_program(view.step.candidate.text).launches
    return {launch.kernel for launch in launches if launch.kernel}


def _facts(program: Program, facts: Facts | None, left: set[str]) -> Facts | None:
    """What is known of the launches, on the lines where they stand now.

    Those that are not ``left`` as they were may have another name, which begins with theirs, and
    have the arrays that they had, in another grid.
    """
    if facts is None:
        return None
    here = [(launch.kernel, launch.line) for launch in program.launches if launch.kernel]
    named = {launch.kernel: launch for launch in facts.launches}
    as_were = {*named} & left
    known = [replace(named[name], line=line) for name, line in here if name in as_were]
    for name, line in here:
        old = next((o for n, o in named.items() if n not in left and name.startswith(n)), None)
        if name in as_were or old is None:
            continue
        moved = replace(old, kernel=name, line=line)
        for kernel in kernels(program, replace(facts, launches=(moved,))):
            with suppress(SourceError):
                known += [f] if (f := with_grid(kernel).facts) is not None else []
    return replace(facts, launches=tuple(known))
