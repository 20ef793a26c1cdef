// Vertices of a soft gripper in each frame: bones count by how near they are, the same in all frames.
#pragma optiml launch skinning grid(cdiv(frames, 64), vertices) block(64)
__global__ void skinning(const float* distance, const float* lift, float* height, int vertices, int bones, int frames) {
    const int f = blockIdx.x * blockDim.x + threadIdx.x;
    const int v = blockIdx.y;
    if (f >= frames) return;
    float nearest = 1e30f;
    for (int b = 0; b < bones; b++) nearest = fminf(nearest, distance[v * bones + b]);
    float whole = 0.0f, sum = 0.0f;
    for (int b = 0; b < bones; b++) {
        float w = expf(nearest - distance[v * bones + b]);
        whole += w;
        sum += w * lift[b * frames + f];
    }
    height[v * frames + f] = sum / whole;
}
