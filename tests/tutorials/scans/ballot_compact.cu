// Compaction of a warp by a vote: the rank of a lane is the popcount of the votes below it.
#pragma optiml launch ballot_compact grid(cdiv(n, 64)) block(64)
__global__ void ballot_compact(const float *in, float *out, int *kept, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31;
    int warp_start = i - lane;
    bool keep = i < n && in[i] >= 0.0f;
    unsigned votes = __ballot_sync(0xffffffff, keep);
    int rank = __popc(votes & ((1u << lane) - 1));
    if (keep) out[warp_start + rank] = in[i];
    if (lane == 0 && i < n) kept[i / 32] = __popc(votes);
}
