__device__ float lerp(float start, float end, float weight) {
    return fmaf(weight, end, fmaf(-weight, start, start));
}

#pragma optiml launch adamw grid(cdiv(n, 256)) block(256)
__global__ void adamw(float* params, const float* grads, float* m, float* v, int n, float rate,
                      float beta1, float beta2, float correction1, float correction2, float eps,
                      float decay) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    m[i] = beta1 * m[i] + (1.0f - beta1) * grads[i];
    v[i] = lerp(grads[i] * grads[i], v[i], beta2);
    float mean = m[i] / correction1;
    float square = v[i] / correction2;
    params[i] -= rate * (mean / (sqrtf(square) + eps) + decay * params[i]);
}
