// What each account holds after each of its bookings, in cents.
__global__ void balances(const int* bookings, const int* opening, int* balance, int accounts, int entries) {
    int account = blockIdx.x * blockDim.x + threadIdx.x;
    if (account >= accounts) return;
    int holds = opening[account];
    for (int e = 0; e < entries; ++e) {
        holds += bookings[account * entries + e];
        balance[account * entries + e] = holds;
    }
}
#pragma optiml launch balances grid(cdiv(accounts, 32)) block(32)
