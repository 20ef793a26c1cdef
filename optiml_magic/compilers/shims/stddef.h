#pragma once
#include <stdint.h>
#define offsetof(type, member) __builtin_offsetof(type, member)
