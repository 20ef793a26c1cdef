#define MASK_WIDTH 7
__constant__ float M[MASK_WIDTH];

__global__ void convolution_1d(const float *N, float *P, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width) {
        float value = 0;
        int start = i - (MASK_WIDTH / 2);
        for (int j = 0; j < MASK_WIDTH; j++) {
            if (start + j >= 0 && start + j < width) value += N[start + j] * M[j];
        }
        P[i] = value;
    }
}
