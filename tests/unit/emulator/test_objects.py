"""Object code on disk: found again, mended when broken, shared by writers."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from optiml_magic import emulator
from optiml_magic.emulator import jit, objects
from optiml_magic.emulator.objects import ObjectCache, key_of
from optiml_magic.emulator.ternlog import without_avx512
from tests.present import sampled

from .conftest import launch, ptx_of

SOURCE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }'


def doubled(folder: Path) -> emulator.Run:
    x = np.arange(32, dtype=np.float32)
    run = launch(emulator.load(ptx_of(SOURCE), objects=folder), "twice", 1, 32, x)
    np.testing.assert_array_equal(x, 2 * np.arange(32))
    return run


@pytest.fixture
def compilations(monkeypatch):
    made = []
    compiled = jit._compiled

    def counted(text, *how):
        if "@k0_twice" in text:
            made.append(1)
        return compiled(text, *how)

    monkeypatch.setattr(jit, "_compiled", counted)
    return made


def test_code_is_compiled_once_and_counts_the_same(tmp_path, compilations):
    first, second = doubled(tmp_path), doubled(tmp_path)
    assert len(compilations) == 1
    assert first.counters == second.counters
    assert first.counters.thread_instructions > 0


@pytest.mark.parametrize("damage", sampled(["flip", "cut", "empty"], 3))
def test_a_damaged_file_is_made_anew(tmp_path, compilations, damage):
    doubled(tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path, whole in files.items():
        middle = len(whole) // 2
        path.write_bytes(
            {
                "cut": whole[:middle],
                "flip": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
                "empty": b"",
            }[damage]
        )
    doubled(tmp_path)
    assert len(compilations) == 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_another_processor_or_llvm_has_files_of_its_own(tmp_path, compilations, monkeypatch):
    doubled(tmp_path)
    before = len(list(tmp_path.iterdir()))
    monkeypatch.setattr(jit, "_versions", lambda: ("0.0", "0"))
    doubled(tmp_path)
    assert len(compilations) == 2
    assert len(list(tmp_path.iterdir())) == 2 * before


def test_the_library_is_compiled_once_for_all_kernels(tmp_path, monkeypatch):
    """Most of the machine code of a small kernel is the library's."""
    doubled(tmp_path)
    before = set(tmp_path.iterdir())
    halved = SOURCE.replace("2.0f", "0.5f")
    emulator.load(ptx_of(halved), objects=tmp_path)
    (new,) = set(tmp_path.iterdir()) - before
    assert new.stat().st_size < sum(path.stat().st_size for path in before)
    monkeypatch.setattr(jit, "_KNOWN", jit._Known())
    made = []
    compiled = jit._compiled
    monkeypatch.setattr(jit, "_compiled", lambda *a: made.append(1) or compiled(*a))
    for text in (SOURCE, halved, SOURCE):
        emulator.load(ptx_of(text))
    assert len(made) == len(before) + 2


def test_where_a_part_is_suspect_all_are_made_without_avx512(tmp_path, monkeypatch):
    """Callers and callees pass vectors as their features say."""
    made = []
    monkeypatch.setattr(jit, "is_suspect", lambda code: True)
    machine = jit._machine
    monkeypatch.setattr(jit, "_machine", lambda *a: made.append(a[:1]) or machine(*a))
    assert doubled(tmp_path).fault is None
    wholly, without = made.count((str,)), made.count((without_avx512,))
    assert wholly > 1
    # The features are in the key, so a processor without AVX-512 finds what it has made.
    assert without == (wholly if "+avx512f" in jit._processor()[1] else 0)


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path, compilations):
    file = tmp_path / "file"
    file.write_text("not a folder")
    doubled(file)
    doubled(file)
    assert len(compilations) == 2


def test_another_process_finds_the_code(tmp_path):
    program = (
        "import sys\nfrom pathlib import Path\nfrom optiml_magic import emulator\n"
        "from optiml_magic.emulator import jit\njit._compiled = None\n"
        "emulator.load(sys.stdin.read(), objects=Path(sys.argv[1]))"
    )
    doubled(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        input=ptx_of(SOURCE), text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_readers_never_see_half_a_file(tmp_path):
    cache, key = ObjectCache(tmp_path), key_of(["x"])
    contents = [bytes([n]) * 200_000 for n in range(4)]
    seen: list[bytes | None] = []
    writers = [
        threading.Thread(target=lambda c=c: [cache.put(key, c) for _ in range(20)])
        for c in contents
    ]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        seen.append(cache.get(key))
    assert set(seen) - {None} <= set(contents)
    assert cache.get(key) in contents
    assert [p.name for p in tmp_path.iterdir()] == [f"{key}.o"]


def test_the_folder_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "_MOST", 10)
    cache = ObjectCache(tmp_path)
    for number in range(40):
        cache.put(key_of([str(number)]), b"x")
    assert len(list(tmp_path.iterdir())) <= 10
    assert cache.get(key_of(["39"])) == b"x"
