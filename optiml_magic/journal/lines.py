"""The lines of a journal, and reading them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from optiml_magic.errors import UsageError
from optiml_magic.model.called import Called
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.codec import from_json
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.experience import Known, Origin
from optiml_magic.model.hit_rates import HitRates
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.objective import Objective
from optiml_magic.model.peer import Peer
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.suggestion import HAND, Suggestion
from optiml_magic.model.thought import Author, Wave
from optiml_magic.model.verdict import Verdict

SCHEMA = 7


@dataclass(frozen=True)
class RunHeader:
    """What makes two runs the same run, and who proposed. Digests are SHA-256, 16 hex digits."""

    schema: int
    run: str
    task: str
    program: str  # the input kernel's text
    inputs_digest: str
    reference: str  # qualified name
    reference_digest: str  # of its source text; "" where there is none
    device: str
    compiler: str
    seed: int
    policy: str  # of the search
    batch: int
    proposers: tuple[str, ...]
    plugins: tuple[str, ...]  # of other packages, with their versions
    exact: bool  # whether every bit of the outputs must stay
    options_digest: str  # of how it is compiled: flags, and the headers that the program reaches
    objective: Objective = "speed"

    def differences(self, other: RunHeader) -> tuple[str, ...]:
        """Names of the fields that differ; its own name and who proposes may.

        What was proposed stands in the journal, so a run goes on with another model or none.
        """
        return tuple(
            name
            for name in self.__dataclass_fields__
            if name not in ("run", "proposers") and getattr(self, name) != getattr(other, name)
        )


@dataclass(frozen=True)
class Asked:
    """The command that a run is of: its words, and its cell; None for one of the command line."""

    words: tuple[str, ...]
    cell: str | None = None


@dataclass(frozen=True)
class About:
    """What a report says of a run beside its steps, known when it began."""

    device_reason: str = ""
    oracle: str = ""
    launch: str = ""
    notes: tuple[str, ...] = ()
    model: str = ""
    origin: Origin | None = None
    author: Author | None = None  # of the input kernel, where the user did not write it
    peer: Peer | None = None  # in whose place such a kernel is to stand
    call: Called | None = None  # how its programs are called; None where it would be large
    asked: Asked | None = None  # None where no command was given


@dataclass(frozen=True)
class Noted:
    """An idea as it was given; the text of its proposal is "" where it was still to be made."""

    key: str
    proposal: Proposal
    starts: tuple[dict[str, int], ...] = ()
    paid: bool = False


@dataclass(frozen=True)
class Expansion:
    """What the proposers answered, the ``call``-th time they were asked about a candidate."""

    candidate: int
    call: int
    ideas: tuple[Noted, ...]
    refused: tuple[Refusal, ...]
    more: bool = False


@dataclass(frozen=True)
class Made:
    """What an idea for a candidate became when the search came to it."""

    candidate: int
    key: str
    made: str | Refusal


@dataclass(frozen=True)
class Evaluated:
    """A candidate and what became of it."""

    candidate: Candidate
    evaluation: Evaluation


@dataclass(frozen=True)
class Taken:
    """When the oldest suggestion that was not taken yet was: as candidate ``number``.

    So many candidates were told by then.
    """

    number: int
    told: int


@dataclass(frozen=True)
class Ended:
    """How a run ended; ``settled`` has what the finalists came to, by number, 0 among them."""

    stopped: str
    notes: tuple[str, ...]
    settled: dict[int, Measurement | Verdict]
    timings: dict[str, float]  # seconds by stage, together those of the command


@dataclass(frozen=True)
class Line:
    """One line: one of these is there, and of a first line the first three."""

    header: RunHeader | None = None
    hit_rates: HitRates | None = None
    about: About | None = None
    expansion: Expansion | None = None
    known: Known | None = None
    made: Made | None = None
    wave: Wave | None = None
    suggested: Suggestion | None = None
    taken: Taken | None = None
    evaluated: Evaluated | None = None
    ended: Ended | None = None


NOT_TOLD = About()


def read_lines(path: Path) -> tuple[RunHeader, Sequence[Line]]:
    """A journal that another run may still be writing; UsageError if it is none.

    A last line that was cut short is left out.
    """
    lines, _ = read_whole(path)
    return headed(lines, path), lines


def left_by_hand(lines: Iterable[Line]) -> int:
    """How many programs were written by hand and not evaluated."""
    left = 0
    for line in lines:
        left += line.suggested is not None
        tried = line.evaluated
        left -= tried is not None and tried.candidate.proposal.proposer == HAND
    return left


def said_of_left(count: int) -> tuple[str, ...]:
    """What a report says of so many programs that were written by hand and not evaluated."""
    if count < 1:
        return ()
    programs, them = ("a program", "it") if count == 1 else (f"{count} programs", "them")
    return (f"the search ended before {programs} written by hand; --resume evaluates {them}",)


def headed(lines: Sequence[Line], path: Path) -> RunHeader:
    if not lines or lines[0].header is None:
        raise UsageError(f"{path} is not a journal", fix="name a journal of an earlier run")
    return lines[0].header


def read_whole(path: Path) -> tuple[list[Line], int]:
    """The whole lines of a journal and the offset behind the last good one."""
    try:
        raw = path.read_bytes()
    except OSError as cause:
        raise UsageError(f"no journal at {path}", fix="name a journal of an earlier run") from cause
    lines: list[Line] = []
    good = 0
    while (end := raw.find(b"\n", good)) >= 0:
        if not lines:
            _require_schema(raw[:end], path)
        try:
            lines.append(from_json(Line, raw[good:end]))
        except ValueError:
            if lines:
                raise UsageError(
                    f"line {len(lines) + 1} of {path.name} cannot be read",
                    fix="fix or remove that line by hand; nothing was changed",
                ) from None
            break
        good = end + 1
    return lines, good


def _require_schema(first: bytes, path: Path) -> None:
    """UsageError for the journal of a release that wrote other lines; anything else passes."""
    try:
        schema = json.loads(first)["header"]["schema"]
    except (ValueError, KeyError, TypeError):
        return
    if schema != SCHEMA:
        release = "an earlier" if isinstance(schema, int) and schema < SCHEMA else "a later"
        raise UsageError(
            f"{release} release of optiml-magic wrote {path.name}: its lines are of schema "
            f"{schema}, and this release reads {SCHEMA}",
            fix="read it with that release, or run the search again",
        )
