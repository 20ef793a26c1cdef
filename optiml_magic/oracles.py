"""Words without a reference: what a model wrote for them, shown, confirmed, and kept.

What was shown is kept, so that what a user accepts is what was seen, and so that a run with the
same words goes on with the same reference.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optiml_magic.errors import KernelFailed, UsageError
from optiml_magic.llms.choice import choose
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.oracle import Example, Oracle
from optiml_magic.model.task import Task
from optiml_magic.printable import printable
from optiml_magic.proposers.interface import inputs_of
from optiml_magic.proposers.model import opened
from optiml_magic.reports.quantities import number_of
from optiml_magic.settings import Settings
from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.written import functions

_HOW = (
    "Nobody has confirmed that this is what was meant, so nothing is checked against it. If the "
    "examples are right, run it again with --accept; else give some of your own with --examples, "
    "or say more in your words."
)


@dataclass(frozen=True)
class Shown:
    """What a model wrote, for a person to look at; ``task`` has it where a person confirmed it."""

    oracle: Oracle
    task: Task | None = None

    def __repr__(self) -> str:
        told = f"Confirmed by {self.oracle.confirmed}." if self.task is not None else _HOW
        return printable("\n".join([*self.lines(), "", told]))

    def lines(self) -> list[str]:
        """The reference and its examples, and who wrote them."""
        oracle = self.oracle
        whose = f"{oracle.model} wrote this reference"
        told = f"{whose} and these examples, which agree with it:"
        examples = [f"  {one.inputs}\n    gives {one.output}" for one in oracle.examples]
        source = [f"  {line}" for line in oracle.source.strip().splitlines()]
        sizes = ", ".join(f"{name} = {value}" for name, value in oracle.sizes.items())
        return [told, "", *source, "", *examples, *([f"  sizes: {sizes}"] if sizes else [])]


def referenced(
    task: Task,
    settings: Settings,
    words: str,
    *,
    examples: Sequence[Example] = (),
    accept: bool = False,
    ask: Callable[[Shown], bool] = lambda _: False,
) -> Shown:
    """A reference that a model wrote; the task has it where the user confirmed it.

    Args:
        task: without a reference.
        settings: which model, and where what it wrote is kept.
        words: what is wanted.
        examples: the user's: a reference that agrees with them is confirmed by them.
        accept: the user accepts the examples that were shown.
        ask: shows them and asks, where somebody can be asked.

    Raises UsageError where there are no words, no model, or nothing was shown that could be
    accepted; KernelFailed where the model wrote nothing that can be used.
    """
    if not words.strip():
        raise UsageError(
            "there is neither a reference nor a description",
            fix="describe what you want, or give a reference: a NumPy function of the inputs",
        )
    given = inputs_of(task) if task.inputs else ""
    path = _place(settings, words, given)
    kept = _kept(path)
    if accept and kept is None:
        raise UsageError(
            "there is nothing to accept: no reference was shown for these words",
            fix="run it without --accept first, and look at the reference and its examples",
        )
    if kept is None or _differing(kept, examples):
        kept = _asked(settings, words, given, examples)
        _keep(path, kept)
    if not kept.confirmed:
        kept = replace(kept, confirmed=_confirmed(kept, examples, accept=accept, ask=ask))
        _keep(path, kept)
    return Shown(kept, _task(task, kept) if kept.confirmed else None)


def _confirmed(
    oracle: Oracle, examples: Sequence[Example], *, accept: bool, ask: Callable[[Shown], bool]
) -> str:
    """By whom; "" where nobody does."""
    if examples:
        return f"{number_of(len(examples), 'example')} that the user gave"
    if accept or ask(Shown(oracle)):
        return f"{number_of(len(oracle.examples), 'example')} that the user accepted"
    return ""


def _task(task: Task, oracle: Oracle) -> Task:
    made = _functions(oracle)
    told = f"a reference that {oracle.model} wrote, confirmed by {oracle.confirmed}"
    task = replace(task, reference=made["reference"], oracle=told)
    if "inputs" in made and not task.inputs:
        task = replace(task, inputs=made["inputs"], sizes=oracle.sizes)
    return replace(task, name=task.name or "kernel")


def _functions(oracle: Oracle) -> dict[str, Any]:
    made = functions(oracle.source, "reference")
    if isinstance(made, Refused):  # it was kept by an earlier release that let it pass
        raise UsageError(
            f"the reference that was kept cannot be used: {made.reason}",
            fix="describe it in other words",
        )
    return made


def _differing(oracle: Oracle, examples: Sequence[Example]) -> bool:
    from optiml_magic.proposers.oracle import disagreement  # it loads what reads replies

    reference = _functions(oracle)["reference"]
    return any(disagreement(reference, one) for one in examples)


def _asked(settings: Settings, words: str, given: str, examples: Sequence[Example]) -> Oracle:
    from optiml_magic.proposers.oracle import written

    chosen = choose(settings.llm, settings.llm_url)
    with opened(chosen, settings) as llm:
        if llm is None:
            raise UsageError(
                f"words alone need a model, and there is {chosen.reason}",
                fix="give a reference, or a model: --llm, OPENAI_API_KEY",
            )
        found = written(llm, words, given, examples, max_tokens=settings.llm_tokens)
    if isinstance(found, str):
        raise KernelFailed(
            f"{chosen.name} wrote no reference for these words: {found}",
            fix="describe more, or give a reference",
        )
    return found


def _place(settings: Settings, words: str, given: str) -> Path:
    digest = hashlib.sha256(f"{words.strip()}\n\n{given}".encode(errors="surrogatepass"))
    return settings.home / "oracles" / f"{digest.hexdigest()[:16]}.json"


def _kept(path: Path) -> Oracle | None:
    try:
        return from_json(Oracle, path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise UsageError(f"{path} is not a reference that was kept", fix="remove it") from None


def _keep(path: Path, oracle: Oracle) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(to_json(Oracle, oracle), encoding="utf-8")
    beside.replace(path)
