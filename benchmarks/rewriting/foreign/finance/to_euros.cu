// Trades of all currencies in euros, with costs.
typedef struct { float bid; float ask; } Quote;
#pragma optiml launch to_euros grid(cdiv(trades, 512)) block(512)
__global__ void to_euros(const float* nominal, const unsigned char* currency, const Quote* quotes, float* euros, int trades) {
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    if (t >= trades) return;
    const float amount = nominal[t];
    const Quote q = quotes[currency[t]];
    euros[t] = amount * (amount > 0.0f ? q.bid : q.ask);
}
