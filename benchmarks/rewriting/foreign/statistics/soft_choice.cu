// Multinomial choice: inclusive value and mean price of each household, alternatives along columns.
__global__ void soft_choice(const float *utility, const float *price, float *inclusive, float *paid, int households, int goods)
{
    int h = blockIdx.x * blockDim.x + threadIdx.x;
    if (h >= households) return;
    float u_max = -INFINITY;
    float denominator = 0.0f, spent = 0.0f;
    int g = 0;
    while (g < goods) {
        float u = utility[g * households + h];
        float old = u_max;
        u_max = max(u_max, u);
        denominator *= expf(old - u_max);
        spent *= expf(old - u_max);
        denominator += expf(u - u_max);
        spent += price[g] * expf(u - u_max);
        g++;
    }
    inclusive[h] = u_max + logf(denominator);
    paid[h] = spent / denominator;
}
#pragma optiml launch soft_choice grid(cdiv(households, 128)) block(128)
