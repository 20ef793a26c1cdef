"""The gate: how much each strategy is worth a try, before any program of it exists.

A softmax of scores. OptiML (arXiv 2602.12305) has a mixture of thoughts and does not say how it is
gated; that it is so, and every weight in the files, is ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence

from optiml_magic.model.thought import Thought
from optiml_magic.synthesis.thoughts.strategies import Strategy


def weighed(
    strategies: Sequence[Strategy],
    words: str,
    features: Collection[str] = (),
    limit: str = "",
) -> tuple[Thought, ...]:
    """Every strategy as a thought, the likeliest first.

    Args:
        strategies: all there are.
        words: what the user asks for.
        features: of the traced reference; none where it has no graph.
        limit: what limits the baseline: memory, compute, latency, launch or mixed; "" if unknown.
    """
    reasons = [tuple(_reasons(one, words, features, limit)) for one in strategies]
    scores = [math.exp(sum(weight for weight, _ in told)) for told in reasons]
    whole = sum(scores)
    found = [
        Thought(one.name, one.title, score / whole, tuple(f"{w:+g} {why}" for w, why in told))
        for one, score, told in zip(strategies, scores, reasons, strict=True)
    ]
    return tuple(sorted(found, key=lambda thought: (-thought.weight, thought.name)))


def _reasons(
    strategy: Strategy, words: str, features: Collection[str], limit: str
) -> Iterator[tuple[float, str]]:
    for feature, weight in strategy.graph.items():
        if feature in features:
            yield weight, feature
    for pattern, weight in strategy.words.items():
        found = re.search(rf"\b(?:{pattern})", words, re.IGNORECASE)
        if found:
            yield weight, f"the words say `{found[0]}`"
    if limit in strategy.limits:
        yield strategy.limits[limit], f"the baseline is limited by {limit}"
