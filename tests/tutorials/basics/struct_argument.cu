struct Camera {
    float focal;
    float2 centre;
    int width, height;
};

#pragma optiml launch project grid(cdiv(n, 128)) block(128)
__global__ void project(Camera camera, const float *points, int *pixels, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float z = points[3 * i + 2];
    int u = (int)floorf(camera.focal * points[3 * i] / z + camera.centre.x);
    int v = (int)floorf(camera.focal * points[3 * i + 1] / z + camera.centre.y);
    bool inside = u >= 0 && u < camera.width && v >= 0 && v < camera.height;
    pixels[i] = inside ? v * camera.width + u : -1;
}
