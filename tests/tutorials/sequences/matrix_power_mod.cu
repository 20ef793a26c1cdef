// Fibonacci numbers modulo a prime by powers of a 2x2 matrix; long long and % throughout.
template <typename T, int N>
struct SquareMatrix {
    T at[N][N];

    static __device__ SquareMatrix identity()
    {
        SquareMatrix m{};
        for (int i = 0; i < N; ++i) m.at[i][i] = 1;
        return m;
    }
};

template <typename T, int N>
__device__ SquareMatrix<T, N> multiply(const SquareMatrix<T, N> &a, const SquareMatrix<T, N> &b, T modulus)
{
    SquareMatrix<T, N> c{};
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j)
            for (int k = 0; k < N; ++k) c.at[i][j] = (c.at[i][j] + a.at[i][k] * b.at[k][j]) % modulus;
    return c;
}

__global__ void fibonacci_mod(const long long *indices, long long *out, long long modulus, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    auto result = SquareMatrix<long long, 2>::identity();
    SquareMatrix<long long, 2> base{{{1, 1}, {1, 0}}};
    for (long long e = indices[i]; e > 0; e >>= 1) {
        if (e & 1) result = multiply(result, base, modulus);
        base = multiply(base, base, modulus);
    }
    out[i] = result.at[0][1];
}
