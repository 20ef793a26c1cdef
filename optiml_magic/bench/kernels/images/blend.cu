#pragma optiml launch blend grid(cdiv(n, 256)) block(256)
__global__ void blend(const unsigned char* front, const unsigned char* back,
                      const unsigned char* alpha, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int a = alpha[i];
        out[i] = (front[i] * a + back[i] * (255 - a) + 127) / 255;
    }
}
