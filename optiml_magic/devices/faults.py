"""What an error of the CUDA runtime or driver means for a kernel."""

from __future__ import annotations

import re

from optiml_magic.devices.base import Fault
from optiml_magic.model.verdict import Outcome

# cudaError_t by name to what it means for a kernel. Source: CUDA Runtime API, "Data types".
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


def fault(error: Exception) -> Fault:
    """One that is known by name is sticky: the context is lost with it."""
    text = str(error)
    for name, (outcome, message) in _FAULTS.items():
        if name in text or _driver_name(name) in text:
            return Fault(outcome, message, sticky=True)
    return Fault(Outcome.LAUNCH_ERROR, text.splitlines()[0][:200])


def _driver_name(runtime_name: str) -> str:
    """``cudaErrorIllegalAddress`` as the driver spells it: ``CUDA_ERROR_ILLEGAL_ADDRESS``."""
    words = re.findall(r"[A-Z][a-z]*", runtime_name.removeprefix("cudaError"))
    return "CUDA_ERROR_" + "_".join(words).upper()
