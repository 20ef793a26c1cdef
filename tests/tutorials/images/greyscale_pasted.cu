#include <helper_cuda.h>

#define CHANNELS 3  // we have 3 channels corresponding to RGB

__global__ void colorConvert(unsigned char *grayImage, unsigned char *rgbImage, int width, int height)
{
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;

    if (x < width && y < height) {
        // get 1D coordinate for the grayscale image
        int grayOffset = y * width + x;
        int rgbOffset = grayOffset * CHANNELS;
        unsigned char r = rgbImage[rgbOffset];
        unsigned char g = rgbImage[rgbOffset + 1];
        unsigned char b = rgbImage[rgbOffset + 2];
        grayImage[grayOffset] = 0.25f * r + 0.5f * g + 0.25f * b;
    }
}

void convert(unsigned char *h_rgb, unsigned char *h_gray, int width, int height)
{
    unsigned char *d_rgb, *d_gray;
    cudaMalloc(&d_rgb, width * height * CHANNELS);
    cudaMalloc(&d_gray, width * height);
    cudaMemcpy(d_rgb, h_rgb, width * height * CHANNELS, cudaMemcpyHostToDevice);

    const dim3 blockSize(32, 16, 1);
    const dim3 gridSize(ceil(width / 32.0), ceil(height / 16.0), 1);
    colorConvert<<<gridSize, blockSize>>>(d_gray, d_rgb, width, height);
    cudaDeviceSynchronize();

    cudaMemcpy(h_gray, d_gray, width * height, cudaMemcpyDeviceToHost);
    cudaFree(d_rgb);
    cudaFree(d_gray);
}
