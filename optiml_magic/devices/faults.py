"""What a CUDA error means for a kernel, by the error's name.

Source: CUDA Runtime API, "Data types used by CUDA Runtime", ``cudaError_t``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from optiml_magic.devices.base import Fault
from optiml_magic.model.verdict import Outcome

_FAULTS = {
    "cudaErrorIllegalAddress": (Outcome.OUT_OF_BOUNDS, "an access outside of every allocation"),
    "cudaErrorInvalidAddressSpace": (Outcome.OUT_OF_BOUNDS, "an access to the wrong memory space"),
    "cudaErrorInvalidPc": (Outcome.OUT_OF_BOUNDS, "the program counter left the kernel"),
    "cudaErrorMisalignedAddress": (Outcome.MISALIGNED, "an access that is not aligned"),
    "cudaErrorHardwareStackError": (Outcome.TRAP, "the stack overflowed"),
    "cudaErrorIllegalInstruction": (Outcome.TRAP, "an illegal instruction"),
    "cudaErrorAssert": (Outcome.TRAP, "an assertion failed"),
    "cudaErrorLaunchFailure": (Outcome.TRAP, "the kernel trapped"),
    "cudaErrorLaunchTimeout": (Outcome.TIMEOUT, "the driver ended the kernel"),
}


def fault_of(error: Exception) -> Fault:
    """The fault behind an exception of CuPy's runtime or driver; those of a kernel are sticky."""
    text = str(error)
    for name, (outcome, message) in _FAULTS.items():
        if name in text or _driver_name(name) in text:
            return Fault(outcome, message, sticky=True)
    return Fault(Outcome.LAUNCH_ERROR, text.splitlines()[0][:200])


def _driver_name(runtime_name: str) -> str:
    """``cudaErrorIllegalAddress`` as the driver spells it: ``CUDA_ERROR_ILLEGAL_ADDRESS``."""
    words = re.findall(r"[A-Z][a-z]*", runtime_name.removeprefix("cudaError"))
    return "CUDA_ERROR_" + "_".join(words).upper()


def outside(broken: Sequence[str]) -> Fault:
    """Sticky: who knows what lies behind the guards that were written over."""
    message = f"the kernel wrote just outside of {'; '.join(broken)}"
    return Fault(Outcome.OUT_OF_BOUNDS, message, sticky=True)
