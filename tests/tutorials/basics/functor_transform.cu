struct Square {
    __device__ float operator()(float x) const { return x * x; }
};

struct Clamp {
    static constexpr float low = -0.5f, high = 0.5f;
    __device__ float operator()(float x) const { return fminf(fmaxf(x, low), high); }
};

template <typename First, typename Second>
struct Compose {
    First first;
    Second second;
    __device__ float operator()(float x) const { return second(first(x)); }
};

#pragma optiml launch transform<Compose<Clamp, Square>> grid(cdiv(n, 128)) block(128)
template <typename Op>
__global__ void transform(const float *in, float *out, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    Op op;
    out[i] = op(in[i]);
}
