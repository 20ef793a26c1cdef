// Curiously recurring template pattern: polymorphism without virtual calls on the device.
template <class Derived>
class Activation {
public:
    __device__ float apply(float x) const { return static_cast<const Derived *>(this)->value(x); }
    __device__ void apply_to(float *x, int count) const
    {
        for (int i = 0; i < count; ++i) x[i] = apply(x[i]);
    }
};

class LeakyRelu : public Activation<LeakyRelu> {
    float slope;

public:
    __device__ explicit LeakyRelu(float slope) : slope(slope) {}
    __device__ float value(float x) const { return x > 0 ? x : slope * x; }
};

class Sigmoid : public Activation<Sigmoid> {
public:
    __device__ float value(float x) const { return 1.0f / (1.0f + expf(-x)); }
};

#pragma optiml launch activate grid(cdiv(rows, 32)) block(32)
__global__ void activate(const float *in, float *out, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float v[4];
    for (int i = 0; i < 4; ++i) v[i] = in[4 * row + i];
    LeakyRelu(0.1f).apply_to(v, 2);
    Sigmoid().apply_to(v + 2, 2);
    for (int i = 0; i < 4; ++i) out[4 * row + i] = v[i];
}
