// sorts as far as the middle of nine
__device__ unsigned char median_of_nine(unsigned char* values) {
    for (int i = 0; i < 5; i++) {
        int least = i;
        for (int j = i + 1; j < 9; j++) {
            if (values[j] < values[least]) least = j;
        }
        unsigned char value = values[least];
        values[least] = values[i];
        values[i] = value;
    }
    return values[4];
}

// each colour on its own; beyond the edge it is black, and alpha is cleared
#pragma optiml launch median_3x3 grid(cdiv(width, 16), cdiv(height, 16)) block(16, 16)
__global__ void median_3x3(const uchar4* image, uchar4* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    unsigned char red[9], green[9], blue[9];
    int count = 0;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            int px = x + dx;
            int py = y + dy;
            uchar4 pixel = make_uchar4(0, 0, 0, 0);
            if (px >= 0 && px < width && py >= 0 && py < height) {
                pixel = image[py * width + px];
            }
            red[count] = pixel.x;
            green[count] = pixel.y;
            blue[count] = pixel.z;
            count++;
        }
    }
    out[y * width + x] =
        make_uchar4(median_of_nine(red), median_of_nine(green), median_of_nine(blue), 0);
}
