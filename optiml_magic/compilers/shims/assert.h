// Host side; what device code uses of it is built into NVRTC.
#pragma once
