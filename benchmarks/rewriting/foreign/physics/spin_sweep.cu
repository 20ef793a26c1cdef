// The spins of one colour of a board that has no border, turned where a hash of the site says so.
#pragma optiml launch spin_sweep grid(cdiv(side, 32), cdiv(side, 8)) block(32, 8)
__global__ void spin_sweep(signed char* spin, int colour, unsigned seed, int often, int side)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < side && x < side && ((y + x) & 1) == colour) {
        int up = y == 0 ? side - 1 : y - 1, down = y == side - 1 ? 0 : y + 1;
        int left = x == 0 ? side - 1 : x - 1, right = x == side - 1 ? 0 : x + 1;
        int own = spin[y * side + x];
        int around = spin[up * side + x] + spin[down * side + x] + spin[y * side + left] + spin[y * side + right];
        unsigned h = (seed ^ (unsigned)(y * side + x)) * 0x9e3779b9u;
        h ^= h >> 15;
        if (own * around <= 0 || (int)(h >> 1) < often) spin[y * side + x] = -own;
    }
}
