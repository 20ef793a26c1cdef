"""What a search is worth to later ones."""

from __future__ import annotations

from optiml_magic.experience.entries import entry_of
from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.experience import Entry, Move, Origin

from .entries import kind
from .trajectories import KERNEL, measured, step, trajectory

ORIGIN = Origin("run", "2026-11-22", "CUDA 13", "nvrtc 13.0", "0.1.0")
TUNED = "#pragma optiml tune {} in {{1, 2, 4}} = {}\n"


def found(*steps: Step) -> Entry:
    entry = entry_of(Trajectory((step(0, 8.0, parent=None), *steps), "spent"), kind(), ORIGIN)
    assert entry is not None
    return entry


def test_the_path_has_the_numbers_that_each_edit_had_in_the_end() -> None:
    first = TUNED.format("A", 1) + KERNEL
    entry = found(
        step(1, 6.0, "rows 0 warp", text=first),
        step(2, 5.0, "rows 0 warp", 1, text=first.replace("= 1", "= 4"), tuned=True),
        step(3, 4.0, "tile 0 copy", 2, text=TUNED.format("B", 2) + first.replace("= 1", "= 4")),
    )
    assert entry.moves == (Move("rows 0 warp", {"A": 4}), Move("tile 0 copy", {"A": 4, "B": 2}))
    assert (entry.gain, entry.roofline, entry.evidence.origin) == (2.0, "memory", ORIGIN)


def test_numbers_that_the_author_named_are_nobody_elses() -> None:
    own = TUNED.format("MINE", 1) + KERNEL
    root = step(0, 8.0, parent=None, text=own)
    edited = step(1, 4.0, "tile 0 copy", text=TUNED.format("B", 2) + own)
    entry = entry_of(Trajectory((root, edited), "spent"), kind(), ORIGIN)
    assert entry is not None
    assert entry.moves == (Move("tile 0 copy", {"B": 2}),)


def test_what_a_model_wrote_is_no_path_nor_is_what_stands_on_it() -> None:
    entry = found(step(1, 2.0), step(2, 1.0, "tile 0 copy", 1), step(3, 4.0, "rows 0 warp"))
    assert entry.path == ("rows 0 warp",)


def test_only_what_was_timed_once_more_has_won() -> None:
    run = trajectory(("rows 0 warp", 4.0), ("tile 0 copy", 2.0), ("block_size 0 block", 3.0))
    again = {0: measured(8.0), 1: measured(4.0), 2: measured(7.9)}
    entry = entry_of(run.settled(again), kind(), ORIGIN)
    assert entry is not None
    assert (entry.path, entry.gain) == (("rows 0 warp",), 2.0)


def test_what_gained_less_than_a_tenth_has_not_won() -> None:
    entry = found(step(1, 7.5, "rows 0 warp"))
    assert (entry.moves, entry.gain) == ((), 1.0)
    assert entry.vain == ()


def test_moves_beside_the_path_that_brought_nothing_are_kept() -> None:
    entry = found(
        step(1, 4.0, "rows 0 warp"),
        step(2, 9.0, "tile 0 copy"),
        step(3, None, "stage 0 loops (0,)"),
        step(4, 7.0, "block_size 0 block"),
        step(5, 5.0, "block_size 0 block", 1),
        step(6, 8.5, "tile 0 copy", 4),
    )
    assert entry.path == ("rows 0 warp",)
    assert entry.vain == (
        ("tile 0 copy",),
        ("stage 0 loops (0,)",),
        ("rows 0 warp", "block_size 0 block"),
    )


def test_a_run_that_measured_nothing_is_no_entry() -> None:
    failed = Trajectory((step(0, None, parent=None),), "failed")
    assert entry_of(failed, kind(), ORIGIN) is None
    assert entry_of(trajectory(("a 0 b", None)), kind(), ORIGIN) is not None
