#pragma optiml launch point_lengths grid(cdiv(n, 64)) block(64)
__global__ void point_lengths(const float* points, float* lengths, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float squares = 0.0f;
    for (int axis = 0; axis < 3; axis++) {
        squares += points[i * 3 + axis] * points[i * 3 + axis];
    }
    lengths[i] = sqrtf(squares);
}
