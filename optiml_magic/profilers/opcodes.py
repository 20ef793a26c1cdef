"""What a machine instruction does, by its opcode. Source: CUDA Binary Utilities, instruction sets.

An opcode with its modifiers is as nvdisasm prints it, ``LDG.E.128.CONSTANT``. A leading U is the
uniform datapath's twin of an instruction.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from optiml_magic.model.counters import Access, Space

CLASSES = (
    "fp32", "fp64", "fp16", "tensor", "int", "sfu", "memory", "control", "barrier", "other",
)  # fmt: skip

_WORDS = {
    "fp32": "FADD FADD32I FMUL FMUL32I FFMA FFMA32I FADD2 FMUL2 FFMA2 FSEL FSET FSETP FMNMX FMNMX3 "
    "FCHK FSWZADD FRND",
    "fp64": "DADD DMUL DFMA DSET DSETP DMNMX",
    "fp16": "HADD2 HMUL2 HFMA2 HSET2 HSETP2 HMNMX2 HADD2_32I HMUL2_32I HFMA2_32I",
    "tensor": "HMMA IMMA DMMA BMMA QMMA HGMMA IGMMA QGMMA BGMMA OMMA UTCHMMA UTCIMMA UTCQMMA",
    "int": "IADD IADD3 IADD32I IMAD IMUL IABS IDP IDP4A IMNMX VIMNMX VIMNMX3 VIADD VIADDMNMX "
    "VABSDIFF "
    "ISET ISETP ISCADD LEA LOP LOP3 SHF SHL SHR SEL BMSK BREV FLO POPC PRMT SGXT",
    "sfu": "MUFU F2I I2F F2F F2FP I2FP I2I I2IP",
    "memory": "LD LDG LDS LDL LDSM LDGSTS LDTM ST STG STS STL STSM STAS ATOM ATOMG ATOMS RED REDG "
    "REDAS "
    "TEX TLD TLD4 SULD SUST SUATOM SURED BLKCP TMALDG TMASTG TMAREDG BLKRED BLKPF",
    "control": "BRA BRX BRXU JMP JMX CALL RET EXIT KILL BREAK BSSY BSYNC BMOV BPT NANOSLEEP "
    "WARPSYNC YIELD RPCMOV ACQBULK ELECT",
    "barrier": "BAR BARSET MEMBAR DEPBAR LDGDEPBAR ERRBAR SYNCS FENCE CGABAR_ARV CGABAR_WAIT "
    "CGABAR_GET ARRIVES WARPGROUP CCTL CCTLL",
}  # fmt: skip
_CLASS = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_ACCESSES: dict[str, tuple[Space, Access]] = {
    "LDG": ("global", "load"), "LD": ("global", "load"), "STG": ("global", "store"),
    "ST": ("global", "store"), "ATOMG": ("global", "atomic"), "ATOM": ("global", "atomic"),
    "RED": ("global", "atomic"), "REDG": ("global", "atomic"), "LDGSTS": ("global", "load"),
    "LDS": ("shared", "load"), "LDSM": ("shared", "load"), "STS": ("shared", "store"),
    "STSM": ("shared", "store"), "ATOMS": ("shared", "atomic"), "LDL": ("local", "load"),
    "STL": ("local", "store"),
}  # fmt: skip
_BITS = re.compile(r"\.[USFI]?(8|16|64|128)\b")
_SHAPE = re.compile(r"\.(\d+)x(\d+)x(\d+)\b|\.(\d{4,6})\b")
_SHAPES = {"1688": 16 * 8 * 8, "16816": 16 * 8 * 16, "16832": 16 * 8 * 32, "16864": 16 * 8 * 64,
           "884": 8 * 8 * 4, "8816": 8 * 8 * 16, "8832": 8 * 8 * 32}  # fmt: skip


class MemoryAccess(NamedTuple):
    """Where an instruction goes, how, and with how many bytes a lane."""

    space: Space
    access: Access
    width: int


def kind(opcode: str) -> str:
    """The class of an instruction, one of ``CLASSES``."""
    word = opcode.split(".", maxsplit=1)[0]
    return _CLASS.get(word) or _CLASS.get(word.removeprefix("U"), "other")


def opcode_of(text: str) -> str:
    """The opcode of an instruction's text: that of ``@!P0 LDG.E R2, [R2.64]`` is ``LDG.E``.

    ptxas also writes constants by a product of zeros, ``HFMA2.MMA R3, -RZ, RZ, 0, 0``: that is MOV.
    """
    words = text.replace("{", " ").replace(",", " ").replace(";", " ").split()
    while words and words[0].startswith("@"):
        words.pop(0)
    if not words:
        return ""
    return "MOV" if words[0].startswith("HFMA2") and words[2:4] == ["-RZ", "RZ"] else words[0]


def access(opcode: str) -> MemoryAccess | None:
    """The memory access that an instruction is; None for any other."""
    word = opcode.split(".", maxsplit=1)[0]
    if word not in _ACCESSES:
        return None
    bits = _BITS.search(opcode)
    return MemoryAccess(*_ACCESSES[word], int(bits[1]) // 8 if bits else 4)


def flops(opcode: str) -> tuple[str, float]:
    """The precision, and the operations that one thread does with one instruction.

    ``("", 0)`` for what is no arithmetic of floating-point numbers. A product of the tensor cores
    is shared by 32 threads, one of a warp group by 128 in four warps.
    """
    word = opcode.split(".", maxsplit=1)[0]
    precision = {"fp32": "f32", "fp64": "f64", "fp16": "f16"}.get(kind(opcode), "")
    if kind(opcode) == "tensor" and word[0] != "I" and word[0] != "B":
        return "tensor", 2.0 * _products(opcode) / (128 if "GMMA" in word else 32)
    if word[1:4] not in ("ADD", "MUL", "FMA") or not precision:
        return "", 0.0
    each = 2.0 if word[1:4] == "FMA" else 1.0
    return precision, each * (2.0 if "2" in word.replace("32I", "") else 1.0)


def _products(opcode: str) -> float:
    found = _SHAPE.search(opcode)
    if found is None:
        return 0.0
    if found[4]:
        return float(_SHAPES.get(found[4], 0))
    return float(int(found[1]) * int(found[2]) * int(found[3]))
