// Six weights depend on the place between two pixels alone, of which a factor has as many: they are known as
// the kernel is compiled. A thread goes down two columns; each row is stretched once, for six rows of results.
#pragma optiml launch lanczos_strips<2> grid(cdiv(width, 64), cdiv(height, 120)) block(32, 4) if (width % 2 == 0 && factor == 2)
#pragma optiml launch lanczos_strips<3> grid(cdiv(width, 64), cdiv(height, 120)) block(32, 4) else if (width % 2 == 0 && factor == 3)
#pragma optiml launch lanczos grid(cdiv(width * factor, 16), cdiv(height * factor, 16)) block(16, 16) else
#define A 3
#define PI 3.14159265358979f
constexpr int TAPS = 2 * A, ROWS = 5 * TAPS;  // 4096 x 2048 pixels are then 1152 blocks, and 1188 run at a time

__device__ constexpr double sine(double x) {
    double sum = 0.0, term = x;
    for (int k = 1; k < 30; k += 2) {
        sum += term;
        term *= -x * x / ((k + 1) * (k + 2));
    }
    return sum;
}

template <int FACTOR>
struct Weights {
    float of[FACTOR][TAPS];
};

// Of the pixels from two before to three after, by where between two pixels; at a pixel there is that one alone.
template <int FACTOR>
__device__ constexpr Weights<FACTOR> weights() {
    Weights<FACTOR> made = {};
    for (int place = 1; place < FACTOR; place++) {
        double all[TAPS] = {}, sum = 0.0;
        for (int k = 0; k < TAPS; k++) {
            const double x = 3.14159265358979323846 * ((double)place / FACTOR - (k - A + 1));
            all[k] = A * sine(x) * sine(x / A) / (x * x);
            sum += all[k];
        }
        for (int k = 0; k < TAPS; k++) made.of[place][k] = (float)(all[k] / sum);
    }
    return made;
}

// Two pixels with two before and three after them.
struct Line {
    float2 before, here, after, then;
};

template <int FACTOR>
__global__ void __launch_bounds__(128) lanczos_strips(const float* __restrict__ image, float* __restrict__ out,
                                                      int width, int height) {
    constexpr Weights<FACTOR> weight = weights<FACTOR>();
    const int x = (blockIdx.x * 32 + threadIdx.x) * 2, top = (blockIdx.y * 4 + threadIdx.y) * ROWS;
    if (x >= width || top >= height) return;
    const auto line_of = [&](int y) {
        const float* at = image + (size_t)min(max(y, 0), height - 1) * width + x;
        const float2 here = *reinterpret_cast<const float2*>(at);
        Line line = {{here.x, here.x}, here, {here.y, here.y}, {here.y, here.y}};
        if (x > 0) line.before = *reinterpret_cast<const float2*>(at - 2);
        if (x + 2 < width) line.after = *reinterpret_cast<const float2*>(at + 2);
        line.then.x = line.after.y;
        if (x + 4 < width) line.then.x = at[4];
        return line;
    };
    float rows[TAPS][2 * FACTOR];
    const auto stretched = [&](const Line& line, float (&row)[2 * FACTOR]) {
        const float a[7] = {line.before.x, line.before.y, line.here.x, line.here.y,
                            line.after.x, line.after.y, line.then.x};
        #pragma unroll
        for (int i = 0; i < 2; i++) {
            row[i * FACTOR] = a[i + A - 1];
            #pragma unroll
            for (int place = 1; place < FACTOR; place++) {
                float sum = 0.0f;
                #pragma unroll
                for (int k = 0; k < TAPS; k++) sum += weight.of[place][k] * a[i + k];
                row[i * FACTOR + place] = sum;
            }
        }
    };
    const auto store = [&](const float (&row)[2 * FACTOR], int y) {
        float* at = out + ((size_t)y * width + x) * FACTOR;
        if constexpr (FACTOR == 2) {
            __stcs(reinterpret_cast<float4*>(at), make_float4(row[0], row[1], row[2], row[3]));
        } else {
            #pragma unroll
            for (int k = 0; k < FACTOR; k++) {
                __stcs(reinterpret_cast<float2*>(at) + k, make_float2(row[2 * k], row[2 * k + 1]));
            }
        }
    };
    #pragma unroll
    for (int k = 0; k < TAPS - 1; k++) stretched(line_of(top + k - A + 1), rows[k]);
    Line next = line_of(top + A);
    #pragma unroll 1
    for (int turn = 0; turn < ROWS; turn += TAPS) {
        #pragma unroll
        for (int j = 0; j < TAPS; j++) {
            const int y = top + turn + j;
            if (y >= height) return;
            stretched(next, rows[(j + TAPS - 1) % TAPS]);
            next = line_of(y + A + 1);
            store(rows[(j + A - 1) % TAPS], y * FACTOR);
            #pragma unroll
            for (int place = 1; place < FACTOR; place++) {
                float row[2 * FACTOR] = {};
                #pragma unroll
                for (int k = 0; k < TAPS; k++) {
                    #pragma unroll
                    for (int i = 0; i < 2 * FACTOR; i++) row[i] += weight.of[place][k] * rows[(j + k) % TAPS][i];
                }
                store(row, y * FACTOR + place);
            }
        }
    }
}

__device__ float lanczos_weight(float x) {
    if (x == 0.0f) return 1.0f;
    if (x <= -A || x >= A) return 0.0f;
    return A * sinf(PI * x) * sinf(PI * x / A) / (PI * PI * x * x);
}

__global__ void lanczos(const float* image, float* out, int width, int height, int factor) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width * factor || y >= height * factor) return;
    float sx = (float)x / factor;
    float sy = (float)y / factor;
    int cx = floorf(sx);
    int cy = floorf(sy);
    float sum = 0.0f;
    float weights = 0.0f;
    for (int j = cy - A + 1; j <= cy + A; j++) {
        for (int i = cx - A + 1; i <= cx + A; i++) {
            float w = lanczos_weight(sx - i) * lanczos_weight(sy - j);
            int px = min(max(i, 0), width - 1);
            int py = min(max(j, 0), height - 1);
            sum += w * image[py * width + px];
            weights += w;
        }
    }
    out[y * width * factor + x] = sum / weights;
}
