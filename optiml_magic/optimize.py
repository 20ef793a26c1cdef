"""The composition root: the only place that names concrete members and puts them together."""

from __future__ import annotations

import hashlib
import inspect
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.calls import call
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.choice import Choice, choose
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation import Evaluator, Tools
from optiml_magic.findings import TOOLS
from optiml_magic.journal import SCHEMA, Journal, RunHeader
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.task import Task
from optiml_magic.proposers.base import Proposer
from optiml_magic.proposers.mixture import mixed
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.reports.summary import Summary
from optiml_magic.result import Kernel, Result
from optiml_magic.search.loop import Budget, run
from optiml_magic.search.mcts import Mcts
from optiml_magic.settings import Settings
from optiml_magic.source.program import parse_program
from optiml_magic.verifiers.problem import Problem, prepare

Progress = Callable[[Step], None]
_BATCH = 1  # the emulated device has one host; a batch would only wait in line


@dataclass(frozen=True)
class Session:
    """The members in use and the device they were chosen for."""

    tools: Tools
    choice: Choice


@contextmanager
def session(settings: Settings, options: CompileOptions = CompileOptions()) -> Iterator[Session]:  # noqa: B008  # frozen
    """Compiler, device host and tools for the length of one command."""
    choice = choose(settings.device)
    compiler = CachedCompiler(NvrtcCompiler(), settings.cache)
    device = HostedDevice(choice.name, seconds=settings.run_seconds)
    try:
        tools = Tools(compiler, options, device, choice.chip, TOOLS, settings.instructions)
        yield Session(tools, choice)
    finally:
        device.close()


def optimize(
    task: Task,
    settings: Settings,
    *,
    resume: Path | None = None,
    progress: Progress = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Result:
    """Search for a faster program; the best is verified, and never worse than the input."""
    began = time.monotonic()
    problem = prepare(task, seeds=settings.verify_seeds)
    proposers: tuple[Proposer, ...] = (RuleProposer(),)
    with session(settings) as members:
        header = _header(problem, members, settings, proposers)
        path = resume or settings.runs / f"{header.run}.jsonl"
        journal = Journal.resume(path, header) if resume else Journal.create(path, header)
        try:
            evaluator = Evaluator(problem, members.tools)
            root = Proposal(problem.program.text, "the input kernel", "user", prior=1.0)
            expand = journal.remember_expand(partial(mixed, proposers))
            search = Mcts(root, expand, seed=settings.seed)
            evaluate = journal.remember_evaluate(evaluator, evaluator.remember)
            trajectory = run(
                search,
                partial(_reporting, evaluate, progress),
                Budget(settings.budget, settings.seconds),
                batch=_BATCH,
                stop=stop,
            )
        finally:
            journal.close()
    summary = Summary(
        task=problem.name,
        device=members.choice.name,
        device_reason=members.choice.reason,
        oracle=problem.oracle,
        launch=problem.launch,
        notes=problem.notes,
        trajectory=trajectory,
        wall_seconds=time.monotonic() - began,
        journal=path,
    )
    return Result(summary, partial(kernel, problem, settings))


@dataclass(frozen=True)
class Checked:
    """One program evaluated alone: for ``check`` and ``profile``."""

    problem: Problem
    choice: Choice
    evaluation: Evaluation


def evaluate_once(task: Task, settings: Settings, *, program: str | None = None) -> Checked:
    """Compile, verify and measure the task's kernel, or ``program`` in its place."""
    problem = prepare(task, seeds=settings.verify_seeds)
    with session(settings) as members:
        evaluator = Evaluator(problem, members.tools)
        root = Candidate(0, None, Proposal(problem.program.text, "the input kernel", "user"))
        (evaluation,) = evaluator([root])
        if program is not None:
            other = Candidate(1, 0, Proposal(program, "another program", "user"))
            (evaluation,) = evaluator([other])
    return Checked(problem, members.choice, evaluation)


def run_once(task: Task, settings: Settings, *, program: str | None = None) -> dict[str, Any]:
    """The outputs of the task's kernel, or of ``program``, on the task's own inputs, by name.

    The outputs hold a poison before the run, so what the kernel leaves out is plain to see. Nothing
    is compared; raises UsageError where the kernel does not compile or faults.
    """
    problem = prepare(task, seeds=1)
    with session(settings) as members:
        text = program or problem.program.text
        return call(problem, members.tools, text, problem.instances[0].values)


def kernel(problem: Problem, settings: Settings, text: str) -> Kernel:
    """A program of a problem as a callable on the user's arrays."""
    choice = choose(settings.device)
    parameters = [b.name for b in problem.interface.named("input", "inout")]
    scalars = [s for s in problem.interface.scalars if s not in parse_program(text).values]
    return Kernel(
        parse_program(text),
        [*parameters, *scalars],
        choice.name,
        partial(_run_kernel, problem, settings),
    )


def _run_kernel(
    problem: Problem, settings: Settings, program: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    with session(settings) as members:
        return call(problem, members.tools, program, values)


def _reporting(
    evaluate: Callable[[Sequence[Candidate]], Sequence[Evaluation]],
    progress: Progress,
    candidates: Sequence[Candidate],
) -> Sequence[Evaluation]:
    evaluations = evaluate(candidates)
    for candidate, evaluation in zip(candidates, evaluations, strict=True):
        progress(Step(candidate, evaluation))
    return evaluations


def _header(
    problem: Problem, members: Session, settings: Settings, proposers: Sequence[Proposer]
) -> RunHeader:
    reference = problem.task.reference
    return RunHeader(
        schema=SCHEMA,
        run=f"{problem.name}-{uuid.uuid4().hex[:8]}",
        task=problem.name,
        program=problem.program.text,
        inputs_digest=_inputs_digest(problem),
        reference=getattr(reference, "__qualname__", "") if reference else "",
        reference_digest=_source_digest(reference) if reference else "",
        device=members.choice.name,
        compiler=members.tools.compiler.version,
        seed=settings.seed,
        batch=_BATCH,
        proposers=tuple(proposer.name for proposer in proposers),
    )


def _inputs_digest(problem: Problem) -> str:
    digest = hashlib.sha256()
    for instance in problem.instances:
        for name, value in sorted(instance.values.items()):
            digest.update(name.encode())
            is_array = isinstance(value, np.ndarray)
            digest.update(
                np.ascontiguousarray(value).tobytes() if is_array else repr(value).encode()
            )
    return digest.hexdigest()[:16]


def _source_digest(reference: Callable[..., Any]) -> str:
    try:
        source = inspect.getsource(reference)
    except (OSError, TypeError):
        return "unknown"
    return hashlib.sha256(source.encode()).hexdigest()[:16]
