// Beams of an array: each sample's thread finds the norm of its direction's weights anew.
__global__ void beams(const float* weights, const float* element, float* beam, int directions, int elements, int samples)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int d = blockIdx.y;
    if (t >= samples) return;
    float norm = 0.0f;
    for (int m = 0; m < elements; m++) norm += weights[d * elements + m] * weights[d * elements + m];
    float sum = 0.0f;
    for (int m = 0; m < elements; m++) sum += weights[d * elements + m] * element[m * samples + t];
    beam[d * samples + t] = sum / sqrtf(norm);
}
#pragma optiml launch beams grid(cdiv(samples, 128), directions) block(128)
