"""Language models: recurrences, decoding, norms."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent


def gated(rng: Generator, heads: int, tokens: int, dv: int) -> Values:
    return {
        "q": uniform(rng, heads, tokens, 64),
        "k": uniform(rng, heads, tokens, 64, low=-0.2, high=0.2),
        "v": uniform(rng, heads, tokens, dv),
        "gate": uniform(rng, heads, tokens, low=1, high=4),
        "heads": heads,
        "tokens": tokens,
        "dv": dv,
    }


def fast_weights(rng: Generator, heads: int, length: int) -> Values:
    shape = (heads, length, 32)
    return {
        "query": uniform(rng, *shape),
        "key": uniform(rng, *shape, low=-0.3, high=0.3),
        "value": uniform(rng, *shape),
        "beta": uniform(rng, heads, length, low=-2, high=2),
        "heads": heads,
        "length": length,
    }


tasks = [
    Task(
        HERE / "gated_recurrence.cu",
        inputs=gated,
        sizes={"heads": 16, "tokens": 256, "dv": 64},
        verify_sizes={"heads": 2, "tokens": 19, "dv": 7},
        outputs={"o": "f4[heads, tokens, dv]"},
    ),
    Task(
        HERE / "delta_rule.cu",
        inputs=fast_weights,
        sizes={"heads": 64, "length": 512},
        verify_sizes={"heads": 2, "length": 21},
        outputs={"out": "f4[heads, length, 32]"},
    ),
    Task(
        HERE / "decode_sums.cu",
        inputs=lambda rng, rows, vocab: {
            "scores": uniform(rng, rows, vocab, low=-8, high=8),
            "temperature": 0.7,
            "rows": rows,
            "vocab": vocab,
        },
        sizes={"rows": 1024, "vocab": 8192},
        verify_sizes={"rows": 11, "vocab": 155},
        outputs={"log_norm": "f4[rows]", "expected": "f4[rows]"},
    ),
    Task(
        HERE / "attend_one.cu",
        inputs=lambda rng, heads, keys: {
            "score": uniform(rng, heads, keys, low=-6, high=6),
            "values": uniform(rng, heads, keys, 16),
            "heads": heads,
            "keys": keys,
        },
        sizes={"heads": 1024, "keys": 1024},
        verify_sizes={"heads": 7, "keys": 55},
        outputs={"out": "f4[heads, 16]"},
    ),
    Task(
        HERE / "top_logits.cu",
        inputs=lambda rng, rows, vocab: {
            "logits": uniform(rng, rows, vocab),
            "rows": rows,
            "vocab": vocab,
        },
        sizes={"rows": 1024, "vocab": 4096},
        verify_sizes={"rows": 9, "vocab": 133},
        outputs={"top": "f4[rows, 8]", "token": "i4[rows, 8]"},
    ),
    Task(
        HERE / "swiglu.cu",
        inputs=lambda rng, tokens, hidden: {
            "gate": uniform(rng, tokens, hidden),
            "up": uniform(rng, tokens, hidden),
            "tokens": tokens,
            "hidden": hidden,
        },
        sizes={"tokens": 2048, "hidden": 11008},
        verify_sizes={"tokens": 3, "hidden": 517},
        outputs={"out": "f4[tokens, hidden]"},
    ),
    Task(
        HERE / "query_norm.cu",
        inputs=lambda rng, tokens, heads, dim: {
            "q": uniform(rng, tokens, heads, dim),
            "scale": uniform(rng, dim),
            "tokens": tokens,
            "heads": heads,
            "dim": dim,
        },
        sizes={"tokens": 2048, "heads": 16, "dim": 128},
        verify_sizes={"tokens": 5, "heads": 3, "dim": 37},
        outputs={"out": "f4[tokens, heads, dim]"},
    ),
    Task(
        HERE / "scaled_sums.cu",
        inputs=lambda rng, rows, cols: {
            "similarity": uniform(rng, rows, cols),
            "temperature": 0.3,
            "rows": rows,
            "cols": cols,
        },
        sizes={"rows": 4096, "cols": 4096},
        verify_sizes={"rows": 23, "cols": 41},
        outputs={"loss": "f4[rows]"},
    ),
    Task(
        HERE / "decode_block.cu",
        inputs=lambda rng, heads, length, dim: {
            "q": uniform(rng, heads, dim),
            "keys": uniform(rng, heads, length, dim),
            "values": uniform(rng, heads, length, dim),
            "length": length,
            "dim": dim,
        },
        sizes={"heads": 512, "length": 1024, "dim": 64},
        verify_sizes={"heads": 2, "length": 45, "dim": 33},
        outputs={"out": "f4[heads, dim]"},
    ),
    Task(
        HERE / "block_softmax.cu",
        inputs=lambda rng, rows, cols: {"x": uniform(rng, rows, cols), "cols": cols},
        sizes={"rows": 4096, "cols": 1000},
        verify_sizes={"rows": 3, "cols": 133},
        outputs={"y": "f4[rows, cols]"},
    ),
    Task(
        HERE / "block_norm.cu",
        inputs=lambda rng, rows, cols: {
            "x": uniform(rng, rows, cols),
            "gain": uniform(rng, cols),
            "cols": cols,
        },
        sizes={"rows": 8192, "cols": 1024},
        verify_sizes={"rows": 3, "cols": 133},
        outputs={"y": "f4[rows, cols]"},
    ),
    Task(
        HERE / "attend_all.cu",
        inputs=lambda rng, n, width: {
            **{name: uniform(rng, n, width) for name in "qkv"},
            "n": n,
            "width": width,
        },
        sizes={"n": 2048, "width": 64},
        verify_sizes={"n": 70, "width": 64},
        outputs={"out": "f4[n, width]"},
    ),
    Task(
        HERE / "attend_before.cu",
        inputs=lambda rng, heads, length: {
            **{name: uniform(rng, heads, length, 64) for name in "qkv"},
            "heads": heads,
            "length": length,
            "scale": 0.125,
        },
        sizes={"heads": 16, "length": 512},
        verify_sizes={"heads": 2, "length": 37},
        outputs={"out": "f4[heads, length, 64]"},
    ),
    Task(
        HERE / "expert_gate.cu",
        inputs=lambda rng, tokens: {
            "logits": uniform(rng, tokens, 64, low=-4, high=4),
            "tokens": tokens,
        },
        sizes={"tokens": 65536},
        verify_sizes={"tokens": 77},
        outputs={"weight": "f4[tokens, 2]", "expert": "i4[tokens, 2]", "load": "i4[64]"},
    ),
    Task(
        HERE / "similarity.cu",
        inputs=lambda rng, questions, pages, width: {
            "question": uniform(rng, questions, width),
            "page": uniform(rng, pages, width),
            "questions": questions,
            "pages": pages,
            "width": width,
        },
        sizes={"questions": 512, "pages": 2048, "width": 256},
        verify_sizes={"questions": 19, "pages": 37, "width": 21},
        outputs={"alike": "f4[questions, pages]"},
    ),
    Task(
        HERE / "retrieve.cu",
        inputs=lambda rng, questions, passages, width: {
            "question": rng.integers(-127, 128, (questions, width), np.int8),
            "passage": rng.integers(-127, 128, (passages, width), np.int8),
            "scale": uniform(rng, passages, low=0.001, high=0.002),
            "questions": questions,
            "passages": passages,
            "width": width,
        },
        sizes={"questions": 8192, "passages": 512, "width": 128},
        verify_sizes={"questions": 150, "passages": 13, "width": 21},
        outputs={"found": "i4[questions]", "score": "f4[questions]"},
    ),
    Task(
        HERE / "attend_biased.cu",
        inputs=lambda rng, n_heads, seq_len: {
            **{name: uniform(rng, n_heads, seq_len, 64) for name in "QKV"},
            "slopes": 2.0 ** -np.linspace(1, 8, n_heads, dtype=np.float32),
            "seq_len": seq_len,
            "n_heads": n_heads,
        },
        sizes={"n_heads": 8, "seq_len": 1024},
        verify_sizes={"n_heads": 2, "seq_len": 37},
        outputs={"O": "f4[n_heads, seq_len, 64]"},
    ),
    Task(
        HERE / "attend_window.cu",
        inputs=lambda rng, heads, tokens, window: {
            **{name: uniform(rng, heads, tokens, 32) for name in "qkv"},
            "tokens": tokens,
            "window": window,
            "heads": heads,
        },
        sizes={"heads": 8, "tokens": 4096, "window": 512},
        verify_sizes={"heads": 2, "tokens": 70, "window": 19},
        outputs={"y": "f4[heads, tokens, 32]"},
    ),
    Task(
        HERE / "attend_across.cu",
        inputs=lambda rng, batch, targets, sources: {
            "query": uniform(rng, batch, targets, 48),
            "key": uniform(rng, batch, sources, 48),
            "value": uniform(rng, batch, sources, 48),
            "padding": (rng.random((batch, sources)) < 0.2).astype(np.uint8),
            "batch": batch,
            "targets": targets,
            "sources": sources,
        },
        sizes={"batch": 32, "targets": 256, "sources": 768},
        verify_sizes={"batch": 2, "targets": 33, "sources": 45},
        outputs={"context": "f4[batch, targets, 48]"},
    ),
    Task(
        HERE / "attend_grouped.cu",
        inputs=lambda rng, tokens, heads: {
            "q": uniform(rng, tokens, heads, 64),
            "k": uniform(rng, tokens, heads // 4, 64),
            "v": uniform(rng, tokens, heads // 4, 64),
            "tokens": tokens,
            "heads": heads,
            "scale": 0.125,
        },
        sizes={"tokens": 1024, "heads": 16},
        verify_sizes={"tokens": 35, "heads": 8},
        outputs={"o": "f4[tokens, heads, 64]"},
    ),
    Task(
        HERE / "topic_weights.cu",
        inputs=lambda rng, tokens, topics: {
            "topic": rng.integers(0, topics, tokens, np.int32),
            "weight": uniform(rng, tokens),
            "tokens": tokens,
            "topics": topics,
        },
        sizes={"tokens": 1 << 20, "topics": 50},
        verify_sizes={"tokens": 300, "topics": 13},
        outputs={"total": "f4[topics]"},
    ),
    Task(
        HERE / "letters.cu",
        inputs=lambda rng, n: {"text": rng.integers(32, 127, n, np.uint8), "n": n},
        sizes={"n": 1 << 22},
        verify_sizes={"n": 700},
        outputs={"often": "i4[256]"},
    ),
]
