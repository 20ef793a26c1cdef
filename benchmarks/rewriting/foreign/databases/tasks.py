"""Queries: windows, partitions, samples, the top of groups."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent
i4 = np.int32


def orders(rng: Generator, customers: int, most: int) -> Values:
    first = np.zeros(customers + 1, i4)
    np.cumsum(rng.integers(most // 2, most, customers), out=first[1:])
    amount = uniform(rng, int(first[-1]), low=0, high=1000)
    return {"first": first, "amount": amount, "customers": customers}


def lines(rng: Generator, rows: int) -> Values:
    return {
        "price": uniform(rng, rows, low=1, high=1000),
        "discount": uniform(rng, rows, low=0, high=0.1),
        "shipped": rng.integers(0, 2500, rows, i4),
        "quantity": rng.integers(1, 51, rows, np.uint8),
        "lo": 700,
        "hi": 1100,
        "most": 24,
        "rows": rows,
    }


def sorted_texts(rng: Generator, rows: int, width: int) -> Values:
    """Short words and what is left empty, in order."""
    text = rng.integers(97, 99, (rows, width), np.uint8)
    text[np.arange(width) >= rng.integers(1, width + 1, rows)[:, None]] = 0
    text = text[np.lexsort(text.T[::-1])]
    return {"text": text.view("u4"), "rows": rows, "width": width}


tasks = [
    Task(
        HERE / "moving_total.cu",
        inputs=lambda rng, rows: {"cents": rng.integers(-9999, 99999, rows, i4), "rows": rows},
        sizes={"rows": 1 << 22},
        verify_sizes={"rows": 2500},
        outputs={"total": "i8[rows]"},
    ),
    Task(
        HERE / "top_orders.cu",
        inputs=orders,
        sizes={"customers": 2048, "most": 1024},
        verify_sizes={"customers": 37, "most": 90},
        outputs={"best": "f4[customers, 5]", "which": "i4[customers, 5]"},
    ),
    Task(
        HERE / "revenue.cu",
        inputs=lines,
        sizes={"rows": 1 << 24},
        verify_sizes={"rows": 2001},
        outputs={"out": "f4[rows]"},
    ),
    Task(
        HERE / "sampled_groups.cu",
        inputs=lambda rng, groups, size: {
            "value": uniform(rng, groups, size),
            "phase": rng.integers(0, 16, groups, i4),
            "groups": groups,
            "size": size,
        },
        sizes={"groups": 16384, "size": 1024},
        verify_sizes={"groups": 50, "size": 133},
        outputs={"mean": "f4[groups]"},
    ),
    Task(
        HERE / "share_of_group.cu",
        inputs=lambda rng, shops, rows: {
            "amount": uniform(rng, shops, rows, low=1, high=9),
            "shops": shops,
            "rows": rows,
        },
        sizes={"shops": 4096, "rows": 512},
        verify_sizes={"shops": 9, "rows": 45},
        outputs={"share": "f4[shops, rows]"},
    ),
    Task(
        HERE / "column_statistics.cu",
        inputs=lambda rng, rows, columns: {
            "table": uniform(rng, rows, columns, low=3, high=5),
            "rows": rows,
            "columns": columns,
        },
        sizes={"rows": 8192, "columns": 2048},
        verify_sizes={"rows": 150, "columns": 40},
        outputs={"mean": "f4[columns]", "spread": "f4[columns]"},
    ),
    Task(
        HERE / "busy.cu",
        inputs=lambda rng, rows, stations: {
            "failed": rng.integers(0, 2, (stations, rows), np.uint8),
            "rows": rows,
            "stations": stations,
        },
        sizes={"rows": 1 << 16, "stations": 40},
        verify_sizes={"rows": 700, "stations": 3},
        outputs={"around": "i2[stations, rows]"},
    ),
    Task(
        HERE / "rows_to_columns.cu",
        inputs=lambda rng, rows: {"record": rng.integers(0, 999, (rows, 16), i4), "rows": rows},
        sizes={"rows": 1 << 20},
        verify_sizes={"rows": 333},
        outputs={"column": "i4[16, rows]"},
    ),
    Task(
        HERE / "closest_centroid.cu",
        inputs=lambda rng, rows, lists, quads: {
            "vec": uniform(rng, rows, quads, 4),
            "centroid": uniform(rng, lists, quads, 4),
            "half_norm": uniform(rng, lists, low=0, high=2),
            "rows": rows,
            "lists": lists,
            "quads": quads,
        },
        sizes={"rows": 65536, "lists": 256, "quads": 24},
        verify_sizes={"rows": 270, "lists": 13, "quads": 7},
        outputs={"list": "i4[rows]"},
    ),
    Task(
        HERE / "code_matches.cu",
        inputs=lambda rng, rows, words: {
            "codes": rng.integers(0, 1 << 32, (rows, words), np.uint32),
            "asked": rng.integers(0, 1 << 32, words, np.uint32),
            "rows": rows,
            "words": words,
        },
        sizes={"rows": 1 << 18, "words": 16},
        verify_sizes={"rows": 270, "words": 5},
        outputs={"agree": "u2[rows]"},
    ),
    Task(
        HERE / "common_prefix.cu",
        inputs=sorted_texts,
        sizes={"rows": 1 << 18, "width": 64},
        verify_sizes={"rows": 150, "width": 20},
        outputs={"prefix": "i4[rows]"},
    ),
    Task(
        HERE / "sales_by_region.cu",
        inputs=lambda rng, n, regions: {
            "region": rng.integers(0, regions, n, np.int32),
            "amount": uniform(rng, n),
            "n": n,
            "regions": regions,
        },
        sizes={"n": 1 << 20, "regions": 64},
        verify_sizes={"n": 300, "regions": 13},
        outputs={"total": "f4[regions]", "rows": "i4[regions]"},
    ),
    Task(
        HERE / "late_orders.cu",
        inputs=lambda rng, n, shops: {
            "shop": rng.integers(0, shops, n, np.int32),
            "promised": rng.integers(1, 30, n, np.int32),
            "delivered": rng.integers(1, 40, n, np.int32),
            "n": n,
            "shops": shops,
        },
        sizes={"n": 1 << 20, "shops": 96},
        verify_sizes={"n": 300, "shops": 13},
        outputs={"late": "i4[shops]"},
    ),
]
