// Eight filters in turn over 160 values in registers; the other takes each value through all eight.
// task: filters
// devices: emulated cuda
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float first = x[i];
    float v[160];                                                    //-
#pragma unroll                                                       //-
    for (int j = 0; j < 160; ++j) v[j] = first + j;                  //-
#pragma unroll 1                                                     //-
    for (int r = 0; r < 8; ++r) {                                    //-
        float s = 0.0f;                                              //-
#pragma unroll                                                       //-
        for (int j = 0; j < 160; ++j)                                //-
            v[j] = s = 0.5f * (s + v[j]);                            //-!
    }                                                                //-
    out[i] = v[159];                                                 //-
    float s[8] = {};                                                 //+
#pragma unroll 1                                                     //+
    for (int j = 0; j < 160; ++j) {                                  //+
        float value = first + j;                                     //+
#pragma unroll                                                       //+
        for (int r = 0; r < 8; ++r)                                  //+
            value = s[r] = 0.5f * (s[r] + value);                    //+
    }                                                                //+
    out[i] = s[7];                                                   //+
}
