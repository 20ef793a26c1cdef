"""A language model as a proposer, in three roles: it plans edits, writes them, and debugs them.

Deterministic as far as the model is; the journal keeps its answers, so a resumed run asks nothing
again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from optiml_magic.errors import UsageError
from optiml_magic.llms.base import Reply, Request
from optiml_magic.llms.together import together
from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.view import View
from optiml_magic.proposers import answer, brief, prompt
from optiml_magic.proposers.answer import Draft, Fault
from optiml_magic.proposers.asking import Asker
from optiml_magic.proposers.brief import ALL, Contents
from optiml_magic.proposers.drafts import Unusable, idea, one_line
from optiml_magic.proposers.judge import Agreement, Judge
from optiml_magic.source.program import Program, parse_program

_LONGEST_PROGRAM = 100_000  # characters that are put into a prompt
_LONGEST_QUOTE = 20_000  # characters of what cannot be used that the model is shown again
_MOST_QUOTED = 8
_MOST_NOTES = 50
_REPAIRS = 2  # of what cannot be used, and of what failed its evaluation
_MOST_USELESS = 5  # answers in a row, then the model is not asked again
_PART = 2  # of the evaluations that are left edits are asked for
_PRIOR, _PRIOR_STEP, _PRIOR_FLOOR = 0.6, 0.05, 0.1
_MARKS = (", repaired", ", repaired twice")
_SAMPLES = 1_000_000  # seeds apart from those of the plans


@dataclass(frozen=True)
class Role:
    """A part that a model plays: whether it may leave the code to be written, and how boldly."""

    name: str
    plans: bool
    temperature: float


WRITE = Role("write", plans=False, temperature=0.2)  # what is planned leaves little to choose; ours
DEBUG = Role("debug", plans=False, temperature=0.2)


@dataclass(frozen=True)
class _About:
    """What a question is about: what edits apply to, and how many it asks for."""

    role: Role
    view: View
    program: Program
    root: Program
    wanted: int
    sample: int = 0


@dataclass
class _Heard:
    """What a question brought, best first, and what a person should know of it."""

    found: list[Idea | Draft] = field(default_factory=list)
    waiting: tuple[int, ...] = ()
    notes: list[str] = field(default_factory=list)
    useless: bool | None = None  # None: there was no answer


class LlmProposer:
    """Has a few edits planned at a time, once those before are evaluated, and then each written.

    What cannot be used is asked for again, alone and twice at most; so is a program that failed its
    evaluation. Its order of what the others would try counts a little, as long as it agrees with
    what is measured. The model is not asked again where ``Asker`` says so, and after five useless
    answers. ``notes`` has what went wrong, the latest last.
    """

    def __init__(
        self,
        asker: Asker,
        *,
        temperature: float = 0.7,
        seed: int = 0,
        max_tokens: int = 8192,
        contents: Contents = ALL,
    ) -> None:
        self.name = asker.name
        self.asker = asker
        self._plan = Role("plan", plans=True, temperature=temperature)
        self._seed = seed
        self._max_tokens = max_tokens
        self._contents = contents
        self._judge = Judge()
        self._useless = 0
        self._titles: set[str] = set()  # of what it gave
        self._notes: deque[str] = deque(maxlen=_MOST_NOTES)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know, the latest last; older ones are forgotten."""
        return tuple(self._notes)

    def agreement(self, evaluated: Sequence[Step]) -> Agreement:
        """How its order of ideas compares with what was measured."""
        return self._judge.agreement(evaluated)

    def propose(self, view: View, count: int) -> Ideas:  # see above
        if self.asker.off or count < 1:
            return Ideas()
        if any(waiting.paid for waiting in view.queued):
            return Ideas(more=True)
        if len(view.step.candidate.text) > _LONGEST_PROGRAM:
            self._note(view, [f"the program is longer than {_LONGEST_PROGRAM} characters"])
            return Ideas()
        try:
            program = parse_program(view.step.candidate.text)
            root = parse_program(view.root.candidate.text)
        except UsageError as unfit:
            self._note(view, [f"the program cannot be parsed: {unfit.message}"])
            return Ideas()
        failed = self._failed(view) if self._contents.feedback else None
        found = Ideas(self._debugged(view, failed, root) if failed is not None else ())
        if not found.ideas:
            wanted = min(count, self._worth_asking(view))
            found = self._planned(_About(self._plan, view, program, root, wanted))
        self._titles.update(one.title for one in found.ideas)
        return found

    def _worth_asking(self, view: View) -> int:
        """How many edits there is room for beside those of others."""
        if self.asker.room.evaluations is None:
            return self.asker.room.most
        left = self.asker.room.evaluations - len(view.evaluated)
        return min(self.asker.room.most, max(1, left // _PART))

    def _planned(self, about: _About) -> Ideas:
        """Edits that were planned and then written, all at once, and the order of what waits."""
        view = about.view
        question = brief.plan(view, about.wanted, self._contents, self.name)
        heard = self._conversation(about, question)
        self._came(view, heard)
        plans = [one for one in heard.found if isinstance(one, Draft)]
        written = iter(together([partial(self._written, about, *one) for one in enumerate(plans)]))
        ideas: dict[str, Idea] = {}
        for one in heard.found:
            made: Idea | Draft | None = one
            if isinstance(one, Draft):
                answered = next(written)
                self._came(view, answered)
                made = answered.found[0] if answered.found else None
            if isinstance(made, Idea):
                prior = max(_PRIOR_FLOOR, round(_PRIOR - _PRIOR_STEP * len(ideas), 3))
                ideas.setdefault(made.key, replace(made, prior=prior))
        if not heard.found and heard.useless is False:
            self._note(view, ["the model has no more ideas"])
        return Ideas(tuple(ideas.values()), weights=self._judged(view, heard.waiting, ideas))

    def _judged(
        self, view: View, first: Sequence[int], own: dict[str, Idea]
    ) -> tuple[tuple[str, float], ...]:
        """What its order of ideas does to their chances: nothing where a coin does as well."""
        number = view.step.candidate.number
        before = self._judge.agreement(view.evaluated)
        weights = self._judge.weights(number, brief.waiting(view), first)
        self._judge.ordered(number, [*own.values()])
        return () if before.is_below_chance else tuple(weights.items())

    def _written(self, about: _About, number: int, plan: Draft) -> _Heard:
        """The edit that was planned."""
        asked = replace(about, role=WRITE, wanted=1, sample=_SAMPLES * (number + 1))
        return self._conversation(
            asked, brief.write(about.view, plan, self._contents), plan.written
        )

    def _conversation(
        self, about: _About, question: str, fill: Callable[[Draft], Draft] = lambda draft: draft
    ) -> _Heard:
        """What a question brings, with what was unusable at first and was asked for again."""
        heard, asked = _Heard(), question
        for _ in range(1 + _REPAIRS):
            reply = self.asker.reply(self._request(about, asked), heard.notes.append)
            if reply is None:
                return heard
            faults = self._read(about, reply, heard, fill)
            if not faults or len(heard.found) >= about.wanted:
                heard.useless = False
                return heard
            asked = f"{question}\n\n{_repair(faults)}"
        heard.notes.append(f"gave up after {_REPAIRS} repairs")
        heard.useless = not heard.found
        return heard

    def _read(
        self, about: _About, reply: Reply, heard: _Heard, fill: Callable[[Draft], Draft]
    ) -> list[Fault]:
        """What is wrong with a reply; what is right joins what was ``heard``."""
        tools = {finding.tool for finding in about.view.step.evaluation.findings}
        said = answer.read(reply.text)
        faults = [*said.faults]
        heard.waiting = said.waiting or heard.waiting
        for draft in map(fill, said.drafts[: about.wanted - len(heard.found)]):
            if about.role.plans and draft.is_plan:
                heard.found.append(draft)
                continue
            try:
                made = idea(draft, about.program, about.root, proposer=self.name, tools=tools)
            except Unusable as why:
                faults.append(Fault(draft.said, f"`{one_line(draft.title, 60)}`: {why}"))
                continue
            if self._contents.exact and made.arithmetic:
                rule = f"`{made.title}`: no edit may change the arithmetic"
                faults.append(Fault(draft.said, rule))
            elif all(isinstance(one, Draft) or one.key != made.key for one in heard.found):
                heard.found.append(made)
        heard.notes += (fault.why for fault in faults)
        return faults

    def _failed(self, view: View) -> Step | None:
        """The latest program of its own that failed, and that it was not shown yet."""
        own = [s for s in view.evaluated if s.candidate.proposal.proposer == self.name]
        titles = self._titles | {step.candidate.proposal.title for step in own}
        for step in reversed(own):
            again = _again(step.candidate.proposal.title)
            whole = step.evaluation.duplicate_of is None
            if again and again not in titles and whole and not step.evaluation.verdict.passed:
                return step
        return None

    def _debugged(self, view: View, failed: Step, root: Program) -> tuple[Idea, ...]:
        """What it makes of a program that failed, under a title that says so."""
        title = _again(failed.candidate.proposal.title)
        self._titles.add(title)  # it is shown once, whatever comes of it
        about = _About(DEBUG, view, parse_program(failed.candidate.text), root, 1)
        heard = self._conversation(about, prompt.failed(failed, exact=self._contents.exact))
        self._came(view, heard)
        same = failed.candidate.parent == view.step.candidate.number
        hypothesis = failed.candidate.proposal.hypothesis if same else None
        made = (one for one in heard.found if isinstance(one, Idea))
        return tuple(replace(one, title=title, hypothesis=hypothesis, prior=_PRIOR) for one in made)

    def _came(self, view: View, heard: _Heard) -> None:
        """Count an answer, and keep its notes."""
        self._note(view, heard.notes)
        if heard.useless is not None:
            self._useless = self._useless + 1 if heard.useless else 0
        if heard.useless and self._useless == _MOST_USELESS:
            notes: list[str] = []
            self.asker.end(f"{_MOST_USELESS} useless replies in a row", notes.append)
            self._note(view, notes)

    def _request(self, about: _About, question: str) -> Request:
        # A later visit of the same step shall not draw the same sample.
        seed = self._seed + 1000 * about.view.step.candidate.number + len(about.view.tried)
        return Request(
            prompt.system(),
            question,
            answer.SCHEMA_NAME,
            answer.schema(),
            about.role.temperature,
            seed + about.sample,
            self._max_tokens,
        )

    def _note(self, view: View, what: Sequence[str]) -> None:
        place = f"{self.name} on #{view.step.candidate.number}"
        self._notes += (f"{place}: {one_line(words, 300)}" for words in what)


def _again(title: str) -> str:
    """The title of what is made of a program that failed; empty where it had its chances."""
    once, twice = _MARKS
    if title.endswith(twice):
        return ""
    return title.removesuffix(once) + twice if title.endswith(once) else title + once


def _repair(faults: Sequence[Fault]) -> str:
    """What could not be used and why, for the model to fix."""
    shown = []
    for fault in faults[:_MOST_QUOTED]:
        quoted = fault.said[:_LONGEST_QUOTE].encode(errors="replace").decode()
        shown.append(f"{quoted}\n\nFault: {one_line(fault.why, 500)}")
    return "\n\n".join(
        ["# What could not be used", *shown, "# Your task now", prompt.text("repair")]
    )
