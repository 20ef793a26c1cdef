struct Mat3 {
    double m[3][3];

    __device__ double cofactor(int r, int c) const
    {
        int r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
        return m[r1][c1] * m[r2][c2] - m[r1][c2] * m[r2][c1];
    }
    __device__ double determinant() const
    {
        double sum = 0;
        for (int c = 0; c < 3; ++c) sum += m[0][c] * cofactor(0, c);
        return sum;
    }
    __device__ Mat3 inverse() const
    {
        Mat3 out;
        double scale = 1.0 / determinant();
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 3; ++c) out.m[c][r] = scale * cofactor(r, c);
        return out;
    }
};

__global__ void invert(const double *in, double *out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Mat3 a;
    for (int k = 0; k < 9; ++k) a.m[k / 3][k % 3] = in[9 * i + k];
    Mat3 b = a.inverse();
    for (int k = 0; k < 9; ++k) out[9 * i + k] = b.m[k / 3][k % 3];
}
