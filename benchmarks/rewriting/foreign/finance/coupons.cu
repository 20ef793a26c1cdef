// Present value of bonds that pay every sixth month, on a monthly curve.
__global__ void bond_value(const float* discount, const int* first, const float* coupon, float* value, int bonds, int months) {
    int b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b >= bonds) return;
    float pv = 0.0f;
    for (int m = 1; m <= months; ++m) {
        if ((m - first[b]) % 6 != 0) continue;
        pv += coupon[b] * discount[m];
    }
    value[b] = pv + 100.0f * discount[months];
}
#pragma optiml launch bond_value grid(cdiv(bonds, 256)) block(256)
