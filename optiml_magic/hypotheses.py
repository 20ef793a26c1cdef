"""Whether an edit did what it promised: a child's measurement against its parent's. Pure.

Confirmed is a change in the promised direction that is beyond noise; how far it was promised to go
is shown beside it and decides nothing. A promise is kept where the time is no longer, beyond noise.
The constants are ours: counts of one program repeat exactly or nearly so, and a change below 5 % is
too small to have been the point of an edit; counts of a sampled grid add their sampling error;
times must lie beyond their interval.
"""

from __future__ import annotations

from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.hypothesis import (
    TIME,
    Hypothesis,
    HypothesisState,
    HypothesisTest,
    TimeState,
    untested,
)
from optiml_magic.model.measurement import Measurement, Metric

LEAST_CHANGE = 0.05  # of a counter, relative


def assess(
    hypothesis: Hypothesis, parent: Measurement | None, evaluation: Evaluation
) -> HypothesisTest:
    """The state of a hypothesis once its candidate was evaluated."""
    child = evaluation.measurement
    if child is None or not evaluation.verdict.passed:
        return untested(evaluation.verdict.outcome)
    if parent is None:
        return HypothesisTest("not_measurable", reason="its parent was not measured")
    if parent.chip != child.chip:
        reason = f"measured on {parent.chip} before and on {child.chip} after"
        return HypothesisTest("not_measurable", reason=reason)
    name = hypothesis.metric
    before, after = _by_source(parent, name), _by_source(child, name)
    if not before or not after:
        where = "neither" if not before and not after else "only one"
        why = parent.why(name) or child.why(name)
        reason = f"{where} of the two programs has {name}: {why}"
        return HypothesisTest("not_measurable", reason=reason)
    source = next((source for source in before if source in after), None)
    if source is None:
        reason = f"{', '.join(before)} before and {', '.join(after)} after do not compare"
        return HypothesisTest("not_measurable", reason=reason)
    was, became = before[source], after[source]
    state, reason = _judged(hypothesis, was.value, became.value, _noise(was, parent, child))
    time, times = _timed(parent, child)
    return HypothesisTest(state, was.value, became.value, was.unit, source, reason, time, times)


def _timed(parent: Measurement, child: Measurement) -> tuple[TimeState, float | None]:
    """The same rule for the time, and after over before."""
    if parent.source != child.source or not parent.seconds:
        return "", None
    noise = max(parent.ratio_error, child.ratio_error)
    times = child.seconds / parent.seconds
    if times > noise:
        return "longer", times
    return ("shorter" if times * noise < 1.0 else "alike"), times


def _judged(
    hypothesis: Hypothesis, before: float, after: float, noise: float
) -> tuple[HypothesisState, str]:
    """Ratios are compared the same way up and down: beyond ``1 + noise`` or below its inverse."""
    lower = hypothesis.direction == "lower"
    if lower and before == 0.0:
        return "refuted", "there was nothing to lower"
    low, high = (after, before) if lower else (before, after)
    if high > low * (1.0 + noise):
        return "confirmed", ""
    if low > high * (1.0 + noise):
        return "refuted", "it went the other way"
    return "refuted", "it did not move" if before == after else "no more than noise"


def _by_source(measured: Measurement, name: str) -> dict[str, Metric]:
    """A metric of each source that gave it."""
    if name == TIME:
        return {measured.source: Metric(TIME, measured.seconds, "s", measured.source)}
    found: dict[str, Metric] = {}
    for metric in measured.metrics:
        if metric.name == name:
            found.setdefault(metric.source, metric)
    return found


def _noise(metric: Metric, parent: Measurement, child: Measurement) -> float:
    if metric.name == TIME:
        return max(parent.ratio_error, child.ratio_error) - 1.0
    if metric.source not in ("emulated", "modelled", "sass", "estimated"):
        return LEAST_CHANGE
    return LEAST_CHANGE + sum(_sampling_error(measured) for measured in (parent, child))


def _sampling_error(measured: Measurement) -> float:
    return max((k.sampled.error for k in measured.kernels if k.sampled), default=0.0)
