"""A step of a search, made by hand."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.hypotheses import assess
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.measurement import Bound, Measurement, Metric
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View

SCALE = """\
#pragma optiml tune BLOCK in {128, 256} = 256
#pragma optiml launch scale grid(cdiv(n, BLOCK)) block(BLOCK)
__global__ void scale(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 1 == 0) {
        out[i] = 2.0f * a[i];
    }
}
"""
FINDING = Finding(
    "uncoalesced_access",
    "critical",
    "The store on line 6 touches 32 sectors a request.",
    (Evidence("sectors.ratio", 32.0, 6.0, "sector/request", "emulated", 6),),
    (Action("Let threadIdx.x run along the contiguous dimension.", "coalesce_mapping"),),
    (1.0, 8.0),
)


RIGHT = Verdict(Outcome.PASSED, "12 output elements right")


def measured(seconds: float, sectors: float = 32.0) -> Measurement:
    metrics = (Metric("sectors.ratio", sectors, "sector/request", "emulated"),)
    return Measurement("h200", "estimated", seconds, 1.3, metrics, (Bound("dram", seconds),), ())


def step(
    text: str = SCALE,
    *,
    number: int = 0,
    seconds: float = 8e-6,
    title: str = "the input kernel",
    verdict: Verdict = RIGHT,
    sectors: float = 32.0,
    duplicate_of: int | None = None,
) -> Step:
    hypothesis = Hypothesis("sectors.ratio", "lower", "fewer", (2.0, 8.0))
    candidate = Candidate(
        number,
        0 if number else None,
        Proposal(text, title, "user", hypothesis=hypothesis if number else None),
    )
    evaluation = Evaluation(
        number,
        str(number),
        verdict,
        measured(seconds, sectors) if verdict.passed else None,
        roofline="memory",
        findings=(FINDING,),
        duplicate_of=duplicate_of,
    )
    if number:
        test = assess(hypothesis, measured(8e-6), evaluation)
        evaluation = replace(evaluation, test=test)
    return Step(candidate, evaluation)


def view(text: str = SCALE, *tried: Step) -> View:
    return View(step(text), step(text), tried)
