__global__ void adamw(float *params, const float *grads, float *m_memory, float *v_memory, int num_parameters,
                      float learning_rate, float beta1, float beta2, float beta1_correction, float beta2_correction,
                      float eps, float weight_decay)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_parameters) return;
    float grad = grads[i];
    float m = m_memory[i];
    float v = v_memory[i];
    m = beta1 * m + (1.0f - beta1) * grad;
    m_memory[i] = m;
    v = beta2 * v + (1.0f - beta2) * grad * grad;
    v_memory[i] = v;
    m /= beta1_correction;
    v /= beta2_correction;
    params[i] -= learning_rate * (m / (sqrtf(v) + eps) + weight_decay * params[i]);
}
