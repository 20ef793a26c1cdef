"""The composite objective of a candidate: runtime, hardware bottleneck proxies, guardrails. Pure.

OptiML (arXiv 2602.12305) states the three parts; the form and every constant below are ours:

    S = ln(t_root / t)                                        speed-up, symmetric in the logarithm
    B = sum_k w_k clip(ln((m_k,root + 1) / (m_k + 1)), -1, 1)      proxies: lower is better
    G = sum_j l max(0, (m_j + 1) / (m_j,root + 1) - 1.1)           guardrails
    R = clip((S + 0.15 B - G) / ln 65536, -1, 1)                   -1 for a candidate that failed

Where the objective is energy, t is the joules of a run instead of its seconds. A program that takes
more than 1.05 times as long as the input kernel, or whose joules are unknown, gets at most the
reward of its speed-up.

A doubling of the speed is always worth a sixteenth: the step from 8.5 to 17 times the speed of the
input kernel counts as much as that from 4.25 to 8.5. The search scales rewards by those of its run.
The proxies only guide the search; the winner is picked by what was measured alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from optiml_magic.model.measurement import Measurement
from optiml_magic.model.objective import SLOWER, Objective, saving_interval

FAILED = -1.0
_MOST = math.log(65536)  # of a speed-up


@dataclass(frozen=True)
class RewardWeights:
    """Constants of the objective, ours. Weights of absent metrics are renormalised away."""

    beta: float = 0.15
    proxies: dict[str, float] = field(
        default_factory=lambda: {
            "dram__bytes.sum": 0.4,
            "smsp__inst_executed.sum": 0.3,
            "launch__spill_bytes": 0.1,
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 0.2,
        }
    )
    guardrails: tuple[str, ...] = ("launch__registers_per_thread", "launch__local_bytes_per_thread")
    guardrail_weight: float = 0.05
    guardrail_tolerance: float = 0.10


DEFAULT = RewardWeights()


def reward(
    root: Measurement,
    measured: Measurement,
    weights: RewardWeights = DEFAULT,
    *,
    objective: Objective = "speed",
) -> float:
    """The reward of a verified candidate against the input kernel, in [-1, 1].

    Every term compares one metric with the same metric of the same source on the same chip; raises
    ValueError where the two measurements are of different sources or chips.
    """
    if (root.source, root.chip) != (measured.source, measured.chip):
        raise ValueError("a reward needs two measurements of one source on one chip")
    gain = math.log(root.seconds / measured.seconds)
    if objective == "energy":
        gain = _saved(root, measured, gain)
    total = gain + weights.beta * _proxies(root, measured, weights)
    total -= _guardrails(root, measured, weights)
    return min(1.0, max(FAILED, total / _MOST))


def _saved(root: Measurement, measured: Measurement, speed: float) -> float:
    """The logarithm of how many times fewer joules, with that of the speed-up where it counts."""
    saved = saving_interval(root, measured)
    if saved is None:
        return min(speed, 0.0)
    return math.log(saved[0]) if speed >= -math.log(SLOWER) else min(math.log(saved[0]), speed)


def _proxies(root: Measurement, measured: Measurement, weights: RewardWeights) -> float:
    total = weight_sum = 0.0
    for name, weight in weights.proxies.items():
        before, after = root.get(name), measured.get(name)
        if before is not None and after is not None:
            total += weight * min(1.0, max(-1.0, math.log((before + 1) / (after + 1))))
            weight_sum += weight
    return total / weight_sum if weight_sum else 0.0


def _guardrails(root: Measurement, measured: Measurement, weights: RewardWeights) -> float:
    total = 0.0
    for name in weights.guardrails:
        before, after = root.get(name), measured.get(name)
        if before is not None and after is not None:
            excess = (after + 1) / (before + 1) - (1 + weights.guardrail_tolerance)
            total += weights.guardrail_weight * max(0.0, min(1.0, excess))
    return total
