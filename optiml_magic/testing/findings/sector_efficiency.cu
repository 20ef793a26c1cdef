// Every request begins four bytes behind a sector.
// task: shifted
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;        //-
    out[i] = 2.0f * x[i + 1];  //-!
    float here = i <= n ? x[i] : 0.0f;                  //+
    float next = __shfl_down_sync(0xffffffff, here, 1);  //+
    if (threadIdx.x % 32 == 31 && i < n) next = x[i + 1];  //+
    if (i < n) out[i] = 2.0f * next;                    //+
}
