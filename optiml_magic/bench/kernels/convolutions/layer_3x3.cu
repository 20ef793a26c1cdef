// valid convolution: x is [images, channels, height + 2, width + 2], out [images, filters, height, width]
#pragma optiml launch layer_3x3 grid(cdiv(width, 16), cdiv(height, 16), images * filters) block(16, 16)
__global__ void layer_3x3(const float* x, const float* weights, float* out, int images,
                          int channels, int filters, int height, int width) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int image = blockIdx.z / filters;
    int filter = blockIdx.z % filters;
    if (col < width && row < height) {
        float sum = 0.0f;
        for (int c = 0; c < channels; c++) {
            for (int i = 0; i < 3; i++) {
                for (int j = 0; j < 3; j++) {
                    sum += x[((image * channels + c) * (height + 2) + row + i) * (width + 2) + col + j]
                           * weights[((filter * channels + c) * 3 + i) * 3 + j];
                }
            }
        }
        out[((image * filters + filter) * height + row) * width + col] = sum;
    }
}
