// Winograd's F(2x2, 3x3): 16 products for the four results of a tile, in place of 36
#pragma optiml scratch transformed f4[16]
#pragma optiml launch transform_filter grid(1) block(1)
#pragma optiml launch winograd grid(cdiv(width - 2, 32), cdiv(height - 2, 32)) block(16, 16)
__global__ void transform_filter(const float* weights, float* transformed) {
    float half_way[4][3];
    for (int j = 0; j < 3; j++) {
        float top = weights[j];
        float middle = weights[3 + j];
        float bottom = weights[6 + j];
        half_way[0][j] = top;
        half_way[1][j] = 0.5f * (top + middle + bottom);
        half_way[2][j] = 0.5f * (top - middle + bottom);
        half_way[3][j] = bottom;
    }
    for (int i = 0; i < 4; i++) {
        float left = half_way[i][0];
        float middle = half_way[i][1];
        float right = half_way[i][2];
        transformed[4 * i] = left;
        transformed[4 * i + 1] = 0.5f * (left + middle + right);
        transformed[4 * i + 2] = 0.5f * (left - middle + right);
        transformed[4 * i + 3] = right;
    }
}

// a thread has a tile of 2 x 2 results, for which it reads 4 x 4 pixels
__global__ void winograd(const float* image, const float* transformed, float* out, int width,
                         int height) {
    int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    int y = 2 * (blockIdx.y * blockDim.y + threadIdx.y);
    int out_width = width - 2;
    int out_height = height - 2;
    if (x >= out_width || y >= out_height) return;

    float pixels[4][4];
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            bool inside = y + i < height && x + j < width;
            pixels[i][j] = inside ? image[(y + i) * width + x + j] : 0.0f;
        }
    }

    // the pixels, down the columns and then along the rows
    float down[4][4];
    for (int j = 0; j < 4; j++) {
        down[0][j] = pixels[0][j] - pixels[2][j];
        down[1][j] = pixels[1][j] + pixels[2][j];
        down[2][j] = pixels[2][j] - pixels[1][j];
        down[3][j] = pixels[1][j] - pixels[3][j];
    }
    float product[4][4];
    for (int i = 0; i < 4; i++) {
        product[i][0] = (down[i][0] - down[i][2]) * transformed[4 * i];
        product[i][1] = (down[i][1] + down[i][2]) * transformed[4 * i + 1];
        product[i][2] = (down[i][2] - down[i][1]) * transformed[4 * i + 2];
        product[i][3] = (down[i][1] - down[i][3]) * transformed[4 * i + 3];
    }

    // and back: four columns of two, then two of two
    float sums[2][4];
    for (int j = 0; j < 4; j++) {
        sums[0][j] = product[0][j] + product[1][j] + product[2][j];
        sums[1][j] = product[1][j] - product[2][j] - product[3][j];
    }
    for (int i = 0; i < 2; i++) {
        if (y + i < out_height) {
            int at = (y + i) * out_width + x;
            out[at] = sums[i][0] + sums[i][1] + sums[i][2];
            if (x + 1 < out_width) {
                out[at + 1] = sums[i][1] - sums[i][2] - sums[i][3];
            }
        }
    }
}
