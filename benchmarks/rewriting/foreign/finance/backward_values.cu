// Discounted values of cash flows, from the last date back, a path a thread.
#pragma optiml launch roll_back grid(cdiv(paths, 256)) block(256)
__global__ void roll_back(double* flow, int paths, int dates, double discount) {
    const int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= paths) return;
    double value = 0.0;
    for (int t = dates - 1; t >= 0; --t) {
        value = flow[(size_t)t * paths + path] + discount * value;
        flow[(size_t)t * paths + path] = value;
    }
}
