// Included before every program: the names that CUDA C++ texts use bare and that NVRTC does not define.
#pragma once
#include <stdint.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <sys/types.h>
