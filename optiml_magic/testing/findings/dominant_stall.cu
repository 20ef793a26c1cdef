// One chain of dependent products in each of few resident warps; the other has four in each of many.
// task: series
// devices: cuda
#pragma optiml launch k grid(cdiv(n, 64)) block(64)    //-
#pragma optiml launch k grid(cdiv(n, 256)) block(256)  //+
__global__ void k(const float* x, float* out, int n) {
    __shared__ float room[11500];  //-
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    room[threadIdx.x] = v;                //-
    __syncthreads();                      //-
    float y = room[threadIdx.x];          //-
    for (int j = 0; j < 2048; ++j)        //-
        y = y * v + 0.5f;                 //-!
    float w = v * v * v * v, a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;  //+
    for (int j = 0; j < 512; ++j) {       //+
        a = a * w + 0.5f;                 //+
        b = b * w + 0.5f;                 //+
        c = c * w + 0.5f;                 //+
        d = d * w + 0.5f;                 //+
    }                                     //+
    float y = a + v * (b + v * (c + v * d));  //+
    if (i < n) out[i] = y;
}
