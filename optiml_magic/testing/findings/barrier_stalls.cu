// A barrier for each step of a scan; the other scans within warps first.
// task: scan
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(rows) block(1024)
__global__ void k(const float* a, float* out, int rows, int cols) {
    __shared__ float sums[2][1024];  //-
    __shared__ float sums[32];       //+
    int i = threadIdx.x;
    float v = i < cols ? a[blockIdx.x * cols + i] : 0.0f;
    int from = 0;                                         //-
    sums[from][i] = v;                                    //-
    __syncthreads();                                      //-
    for (int step = 1; step < 1024; step *= 2) {          //-
        v += i >= step ? sums[from][i - step] : 0.0f;     //-
        from ^= 1;                                        //-
        sums[from][i] = v;                                //-
        __syncthreads();                                  //-!
    }                                                     //-
    int lane = i % 32, warp = i / 32;                                    //+
    for (int step = 1; step < 32; step *= 2) {                           //+
        float left = __shfl_up_sync(0xffffffff, v, step);                //+
        if (lane >= step) v += left;                                     //+
    }                                                                    //+
    if (lane == 31) sums[warp] = v;                                      //+
    __syncthreads();                                                     //+
    if (warp == 0) {                                                     //+
        float sum = sums[lane];                                          //+
        for (int step = 1; step < 32; step *= 2) {                       //+
            float left = __shfl_up_sync(0xffffffff, sum, step);          //+
            if (lane >= step) sum += left;                               //+
        }                                                                //+
        sums[lane] = sum;                                                //+
    }                                                                    //+
    __syncthreads();                                                     //+
    if (warp > 0) v += sums[warp - 1];                                   //+
    if (i < cols) out[blockIdx.x * cols + i] = v;
}
