#pragma optiml init(out) = 0
#pragma optiml launch scatter grid(cdiv(n, 64)) block(64)
__global__ void scatter(const float* values, const int* targets, float* out, int n, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int target = targets[i];
    if (target < 0 || target >= size) return;
    out[target] = values[i];
}
