"""Filters along time whose state few operations hand on, and many make something of."""

from __future__ import annotations

from random import Random

from tests.rewriting.writing import Array, Made, axes, program

_MANY, _LONG = (1, 2, 5, 31, 33, 64), (64, 65, 70, 100, 131)
_SHORT = (1, 2, 3, 33, 64)
_LOOPS = (
    "for (int t = 0; t < m; t++) {{\n{0}\n}}",
    "for (int t = 0; t < m; ++t) {{\n{0}\n}}",
    "for (int t = 0; t <= m - 1; t += 1) {{\n{0}\n}}",
    "int t = 0;\nwhile (t < m) {{\n{0}\nt++;\n}}",
)
_FOLLOW = """\
__device__ float follow(float env, float level, float up, float down) {
    float by = level > env ? up : down;
    return by * env + (1.0f - by) * level;
}
"""
_GAIN = """\
__device__ float gain_of(float level, float threshold) {
    float db = 20.0f * log10f(level + 1e-6f);
    if (db <= threshold) return 1.0f;
    return powf(10.0f, (threshold - db) * 0.0375f);
}
"""
_SETTINGS = "struct Settings {\n    float up, down, threshold;\n};\n"
_CONSTANTS = ("0.5f", "0.9375f", "0.25f", "0.99f")


def _made(
    rng: Random,
    name: str,
    body: str,
    *,
    given: str = "",
    above: str = "",
    outs: int = 1,
    arrays: dict[str, Array] | None = None,
    scalars: dict[str, float] | None = None,
) -> Made:
    """Rows of samples ``x``, and results ``y`` of the same places, in one of their layouts.

    In ``body``, ``@x`` and ``@y`` are what a round has of its own.
    """
    place = rng.choice(["c * m + t", "c * m + t", "t * n + c", "t + c * m", "(t + 1) * n - 1 - c"])
    if rng.choice([0, 0, 0, 1]) and place.startswith("c * m"):
        body = f"const float* row = x + c * m;\n{body}".replace("@x", "row[t]")
    for array in "xyz":
        body = body.replace(f"@{array}", f"{array}[{place}]")
    shape = ("n", "m") if "c * m" in place else ("m", "n")
    pointers = "".join(f", float* {out}" for out in "yz"[:outs])
    numbers = "".join(f", float {scalar}" for scalar in scalars or {})
    parameters = f"const float* x{pointers}, int n, int m{given}{numbers}"
    text = program(rng, name, parameters, axes(rng, ("c", "n")), body, above=above)
    every = {
        "x": Array("f4", shape), **{out: Array("f4", shape, "zeros") for out in "yz"[:outs]},
        **(arrays or {}),
    }  # fmt: skip
    first = {"n": rng.choice(_MANY), "m": rng.choice(_LONG)}
    others = {"n": rng.choice(_MANY), "m": rng.choice(_SHORT)}
    return Made(name, text, every, first, others, scalars=scalars or {}, exact=False)


def _loop(rng: Random, body: str) -> str:
    return rng.choice([*_LOOPS[:2], *_LOOPS]).format(body)


def compressors(rng: Random) -> Made:
    """An envelope with an attack and a release, and a gain that is a power of it."""
    how = rng.choice(["numbers", "struct", "pointer"])
    up, down, threshold = {
        "numbers": ("up", "down", "threshold"),
        "struct": ("0.25f * p.up", "0.375f * p.down", "-9.0f * p.threshold"),
        "pointer": ("0.25f * p[0].up", "0.375f * p->down", "-9.0f * p->threshold"),
    }[how]
    level = rng.choice(["fabsf(v)", "v * v", "fmaxf(v, -v)"])
    step = rng.choice([
        (f"if (level > env)\nenv = {up} * env + (1.0f - {up}) * level;\n"
        f"else\nenv = {down} * env + (1.0f - {down}) * level;"),
        f"float by = level > env ? {up} : {down};\nenv = by * env + (1.0f - by) * level;",
        f"float by = {up};\nif (level < env) by = {down};\nenv += (1.0f - by) * (level - env);",
        f"env = follow(env, level, {up}, {down});",
        f"env = fmaxf(level, env * {down});",
    ])  # fmt: skip
    gain = rng.choice([
        f"float gain = gain_of(env, {threshold});",
        f"const float gain = powf(env + 0.01f, 0.5f * ({threshold}) / 9.0f);",
        (f"float gain = 1.0f;\nif (env > 0.3f) {{\nfloat db = 20.0f * log10f(env);\n"
        f"gain = powf(10.0f, ({threshold} - db) * 0.0375f);\n}}"),
        (f"float gain = 1.0f;\nif (env > 0.3f) {{\nfloat db = 8.7f * logf(env);\n"
        f"gain = expf(({threshold} - db) * 0.086f);\n}}"),
        (f"float over = fmaxf(0.0f, 20.0f * log10f(env + 1e-6f) - ({threshold}));\n"
        "float gain = powf(10.0f, -0.0375f * over);"),
    ])  # fmt: skip
    end = rng.choice(["@y = v * gain;", "@y = v * gain;", "@y = gain * @x;", "@y = v * gain;\n@z = gain;"])  # fmt: skip
    held = "const float v = @x;" if rng.choice([0, 1]) else "float v = @x;"
    body = f"float env = 0.0f;\n{_loop(rng, f'{held}{chr(10)}float level = {level};{chr(10)}{step}{chr(10)}{gain}{chr(10)}{end}')}"  # fmt: skip
    above = f"{_FOLLOW if 'follow' in step else ''}{_GAIN if 'gain_of' in gain else ''}"
    given, arrays, scalars = "", {}, None
    if how == "numbers":
        scalars = {"up": 0.25, "down": 0.9, "threshold": -9.0}
    else:
        above = _SETTINGS + above
        given = ", Settings p" if how == "struct" else ", const Settings* p"
        shape = () if how == "struct" else ("1",)
        arrays = {"p": Array("up:f4 down:f4 threshold:f4", shape, "positive")}
    return _made(
        rng, "compressors", body, given=given, above=above, outs=1 + ("@z" in end), arrays=arrays,
        scalars=scalars,
    )  # fmt: skip


def gates(rng: Random) -> Made:
    """A gate that opens and closes at two levels, and fades by a function of its state."""
    state = rng.choice([
        ("if (level > 1.3f) open = 1;\nelse if (level < 0.3f) open = 0;\n"
        "g = open ? g + 0.25f * (1.0f - g) : g * 0.75f;"),
        ("if (level > 1.3f) hold = 5;\nelse if (hold > 0) hold--;\n"
        "float aim = hold > 0 ? 1.0f : 0.0f;\ng += (aim - g) * 0.25f;"),
        ("bool loud = level > 0.7f;\nopen = loud || (open && level > 0.3f);\n"
        "g = 0.5f * g + (open ? 0.5f : 0.0f);"),
    ])  # fmt: skip
    fade = rng.choice([
        "@y = v * powf(g, 1.5f);", "@y = v * (1.0f - expf(-4.0f * g));",
        "float gain = 0.5f - 0.5f * cosf(3.14159f * g);\n@y = v * gain;",
        "float gain = g < 0.01f ? 0.0f : powf(g, 0.7f);\n@y = gain * v;",
        "@y = v * sinf(1.5f * g);\n@z = g;",
    ])  # fmt: skip
    begun = "float g = 0.0f;\n"
    begun += "int hold = 0;" if "hold" in state else "int open = 0;"
    body = f"{begun}\n{_loop(rng, f'float v = @x;{chr(10)}float level = fabsf(v);{chr(10)}{state}{chr(10)}{fade}')}"  # fmt: skip
    return _made(rng, "gates", body, outs=1 + ("@z" in fade))


def saturations(rng: Random) -> Made:
    """Filters of one pole or two, and what bends their output."""
    pole, other = rng.sample(_CONSTANTS[:3], 2)
    begun, step, value = rng.choice([
        ("float s = 0.0f;", f"s += {pole} * (v - s);", "s"),
        ("float s = 0.0f;", f"s = {pole} * s + v;", "s"),
        ("float s = 0.0f, q = 0.0f;", f"s += {pole} * (v - s);\nq += {other} * (s - q);", "q"),
        ("float s = 0.0f, q = 0.0f;", f"float o = v - q;\ns = {pole} * s + o;\nq = v;", "s"),
        ("float s = 0.0f, q = 0.0f;",
         "float o = 0.25f * v + s;\ns = 0.5f * v - 0.25f * o + q;\nq = 0.25f * v - 0.125f * o;", "o"),
        ("float s[2] = {0.0f, 0.0f};", f"s[0] += {pole} * (v - s[0]);\ns[1] += 0.25f * (s[0] - s[1]);", "s[1]"),
        ("double s = 0.0;", f"s = {pole} * s + v;", "(float)s"),
        ("float2 s = make_float2(0.0f, 0.0f);", f"s.x += {pole} * (v - s.x);\ns.y = 0.5f * s.y + s.x;", "s.y"),
    ])  # fmt: skip
    bend = rng.choice([
        f"@y = atanf(drive * {value}) * 0.6366f;", f"@y = erff({value}) + drive * @x;",
        f"float u = {value};\n@y = u / powf(1.0f + powf(fabsf(u), 2.5f), 0.4f);",
        f"float u = {value} * drive;\n@y = copysignf(1.0f - powf(2.5f, -fabsf(u)), u);",
        f"@y = tanhf({value} * drive) + tanhf({value});", f"@y = sinf(drive * {value});",
        f"@y = asinhf(drive * {value});", f"@y = 1.0f / (1.0f + expf(-drive * {value}));",
    ])  # fmt: skip
    held = rng.choice(["float v = @x;", "const float v = @x;", "float v = @x * 0.5f;"])
    body = f"{begun}\n{_loop(rng, f'{held}{chr(10)}{step}{chr(10)}{bend}')}"
    return _made(rng, "saturations", body, scalars={"drive": 1.5})


def volatilities(rng: Random) -> Made:
    """Variances that forget, and how likely each value is; the last state is kept, too."""
    begun = rng.choice(["1.0f", "omega / (1.0f - 0.875f)", "x[c] * x[c] + 0.5f"])
    step = rng.choice([
        "h = omega + 0.25f * r * r + 0.625f * h;", "h = 0.9375f * h + 0.0625f * r * r + 1e-4f;",
        "h = fmaxf(omega, 0.75f * h + 0.25f * fabsf(r));",
        "float bad = r < 0.0f ? 0.25f : 0.0f;\nh = omega + (0.125f + bad) * r * r + 0.5f * h;",
    ])  # fmt: skip
    done = rng.choice([
        "@y = powf(h, 0.75f);", "@y = sqrtf(h) * erff(r / (2.0f * h));",
        "float z = r / sqrtf(h);\n@y = 0.5f * erfcf(-z * 0.70711f);",
        "@y = -0.5f * (logf(h) + r * r / h);", "@y = cosf(h);\n@z = r * rsqrtf(h);",
    ])  # fmt: skip
    around = rng.choice([f"{step}\n{done}", f"{step}\n{done}", f"{done}\n{step}"])
    end = rng.choice(["", "", "\nlast[c] = h;"])
    body = f"float h = {begun};\n{_loop(rng, f'float r = @x;{chr(10)}{around}')}{end}"
    given, arrays = (", float* last", {"last": Array("f4", ("n",), "zeros")}) if end else ("", {})
    return _made(
        rng, "volatilities", body, given=given, arrays=arrays, outs=1 + ("@z" in done),
        scalars={"omega": 0.125},
    )  # fmt: skip


def oscillators(rng: Random) -> Made:
    """Phases that go on by what a row says, and waves of them."""
    wrapped = rng.choice([
        "", "\nif (phase >= 1.0f) phase -= 1.0f;", "\nphase -= floorf(phase);",
    ])  # fmt: skip
    wave = rng.choice([
        "@y = sinf(6.25f * phase);", "@y = amplitude * cosf(6.25f * phase) * expf(-0.01f * t);",
        "float s, k;\nsincosf(6.25f * phase, &s, &k);\n@y = s + k;",
        "float w = sinf(6.25f * phase);\nfor (int h = 2; h < 5; h++) w += sinf(6.25f * phase * h) / h;\n@y = w;",
    ])  # fmt: skip
    order = rng.choice(["{0}\n{1}", "{1}\n{0}"])
    step = f"phase += 0.015625f * (@x + 2.0f);{wrapped}"
    body = f"float phase = 0.0f;\n{_loop(rng, order.format(step, wave))}"
    return _made(rng, "oscillators", body, scalars={"amplitude": 0.5})


def fed_back(rng: Random) -> Made:
    """What is handed on is the long function itself, or who comes after asks for the result."""
    step = rng.choice([
        "s = tanhf(0.5f * s + v);\n@y = s;", "s = 0.5f * s + v;\nfloat g = expf(-fabsf(s));\n@y = g;\ns *= g;",
        "s += 0.25f * v;\n@y = expf(-s * s);\nif (s > 3.0f) break;",
        "s = 0.5f * s + v;\ny[c] = expf(-s * s);", "s = 0.5f * s + (t > 0 ? q : 0.0f);\nq = sinf(s) + v;\n@y = q;",
        "s = 0.5f * s + v;\n@y = logf(2.0f + s * s);\nq += s;\n@z = q;",
        "if (v > 1.0f) continue;\ns = 0.5f * s + v;\n@y = expf(-s * s);",
        "s = 0.5f * s + v;\n@y = expf(-s * s);\n@y = @y + 1.0f;",
        "s = fmaxf(s, v);\natomicAdd(&y[c], expf(-s * s));",
        "s = 0.5f * s + v;\n@y = expf(-s * s);\nif (v < 0.0f) s = 0.0f;",
        "q = expf(-fabsf(s));\n@y = q * v;\ns = 0.5f * s + v;", "@y = expf(-fabsf(s));\ns = 0.5f * s + @y;",
        "float d = s;\ns = 0.5f * s + v;\n@y = expf(-fabsf(d - s));\nv = 0.0f;",
    ])  # fmt: skip
    body = f"float s = 0.0f, q = 0.0f;\n{_loop(rng, f'float v = @x;{chr(10)}{step}')}"
    if "continue" in step:
        body = body.replace("while (t < m)", "while (++t < m)").replace("int t = 0;\nwhile", "int t = -1;\nwhile").replace("\nt++;\n}", "\n}")  # fmt: skip
    return _made(rng, "fed_back", body, outs=1 + ("@z" in step))


FAMILY = (compressors, gates, saturations, volatilities, oscillators, fed_back)
