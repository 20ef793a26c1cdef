#pragma optiml launch softmax_rows grid(cdiv(N, 128)) block(128)
__global__ void softmax_rows(float* out, const float* inp, int N, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        const float* row = inp + i * C;
        float* result = out + i * C;
        float largest = -INFINITY;
        for (int j = 0; j < C; j++) {
            if (row[j] > largest) largest = row[j];
        }
        double sum = 0.0;
        for (int j = 0; j < C; j++) {
            result[j] = expf(row[j] - largest);
            sum += result[j];
        }
        for (int j = 0; j < C; j++) {
            result[j] /= (float)sum;
        }
    }
}
