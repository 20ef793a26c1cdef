// Lanes with the same bin find each other with __match_any_sync and elect one to add for all.
#pragma optiml zero(bins)
#pragma optiml launch histogram_match grid(cdiv(n, 128)) block(128)
__global__ void histogram_match(const int *keys, int *bins, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned active = __ballot_sync(0xffffffff, i < n);
    if (i < n) {
        int key = keys[i];
        unsigned peers = __match_any_sync(active, key);
        int leader = __ffs(peers) - 1;
        if ((threadIdx.x & 31) == leader) atomicAdd(bins + key, __popc(peers));
    }
}
