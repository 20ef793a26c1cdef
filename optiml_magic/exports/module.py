"""The functions of an exported module, each written once into the module that needs it."""

from __future__ import annotations

NEEDS = {"_remainder": ("_divide",)}

FUNCTIONS = {
    "_array": '''\
def _array(name, value, dtype, ndim, lanes=1):
    """`value` as a CuPy array without a copy; refused where the kernel could not read it."""
    if not isinstance(value, cp.ndarray):
        if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
            raise TypeError(f"{name} is {type(value)}: pass a CuPy array, cupy.asarray({name})")
        value = cp.from_dlpack(value)
    if value.dtype != dtype:
        raise TypeError(f"{name} holds {value.dtype}, the kernel wants {np.dtype(dtype).name}")
    if value.ndim != ndim:
        raise ValueError(f"{name} has {value.ndim} axes, not {ndim}")
    if not value.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous: pass cupy.ascontiguousarray({name})")
    if value.size % lanes or value.data.ptr % (lanes * value.itemsize):
        raise ValueError(f"{name} is read {lanes} elements at a time: its size or start is odd")
    return value
''',
    "_table": '''\
def _table(name, value, dtype, shape):
    """`value` as an array of the task's shape, on the GPU if it is there already."""
    array = value if isinstance(value, cp.ndarray) else np.asarray(value)
    if isinstance(value, (cp.ndarray, np.ndarray, np.void)):
        if array.dtype != dtype:
            raise TypeError(f"{name} holds {array.dtype}, the kernel wants {np.dtype(dtype).name}")
    else:
        array = array.astype(dtype)
        if array.dtype.kind in "iub" and not np.array_equal(array, value):
            raise OverflowError(f"{name} is {value}, which {array.dtype.name} cannot hold")
    if array.nbytes != np.dtype(dtype).itemsize * math.prod(shape):
        raise ValueError(f"{name} has the shape {array.shape}; the variable's is {shape}")
    return array.reshape(shape)
''',
    "_fill": '''\
def _fill(name, array):
    """The variable of that name expression filled, on CuPy's current stream."""
    place = MODULE.get_global(MODULE.module.mapping[name])
    held = cp.ndarray(array.nbytes, np.uint8, place)
    if isinstance(array, cp.ndarray):
        held[...] = cp.ascontiguousarray(array).reshape(-1).view(np.uint8)
    else:
        held.set(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
''',
    "_integer": """\
def _integer(name, value):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, the kernel wants an integer") from None
""",
    "_agreed": """\
def _agreed(name, *values):
    if any(value != values[0] for value in values):
        raise ValueError(f"{name} could be any of {values}: the shapes of the inputs disagree")
    return values[0]
""",
    "_count": """\
def _count(name, value, least=1):
    if value < least:
        raise ValueError(f"{name} is {value}, which is less than {least}")
    return value
""",
    "_extents": '''\
def _extents(what, *axes):
    """Grid or block as three numbers, within what any GPU takes."""
    axes = (*axes, 1, 1)[:3]
    limits = (2**31 - 1, 65535, 65535) if what == "grid" else (1024, 1024, 64)
    for axis, value, limit in zip("xyz", axes, limits):
        if not 1 <= value <= limit:
            raise ValueError(f"{what}.{axis} is {value}, not between 1 and {limit}")
    if what == "block" and axes[0] * axes[1] * axes[2] > 1024:
        raise ValueError(f"a block of {axes} threads; 1024 is the most")
    return axes
''',
    "_launch": '''\
def _launch(name, grid, block, arguments, shared=0):
    """On CuPy's current stream."""
    kernel = MODULE.get_function(name)
    if shared > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = shared
    kernel(grid, block, arguments, shared_mem=shared)
''',
    "_fit": """\
def _fit(name, value, dtype):
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OverflowError(f"{name} is {value}, which {np.dtype(dtype).name} cannot hold")
    return dtype(value)
""",
    "_record": '''\
def _record(name, value, size):
    """By value, as CuPy passes a NumPy array of one element of any kind."""
    if not isinstance(value, (np.generic, np.ndarray)) or value.nbytes != size:
        raise TypeError(f"{name} must be a NumPy value of {size} bytes")
    return np.frombuffer(value.tobytes(), np.dtype((np.void, size)))[:1]
''',
    "_cdiv": '''\
def _cdiv(a, b):
    """a / b, rounded up."""
    return -(-a // b)
''',
    "_divide": '''\
def _divide(a, b):
    """a / b as C has it, rounded toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
''',
    "_remainder": '''\
def _remainder(a, b):
    """a % b as C has it, with the sign of a."""
    return a - _divide(a, b) * b
''',
    "_shift": """\
def _shift(bits):
    if not 0 <= bits <= 63:
        raise ValueError(f"a shift by {bits} bits")
    return bits
""",
}
