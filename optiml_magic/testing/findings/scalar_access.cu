// One float a lane and instruction, where four lie side by side.
// task: scale_many
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 256)) block(256)      //-
#pragma optiml require n % 4 == 0                          //+
#pragma optiml launch k grid(cdiv(n / 4, 256)) block(256)  //+
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 1.0f;  //-!
    if (4 * i >= n) return;                                    //+
    float4 v = reinterpret_cast<const float4*>(x)[i];          //+
    v.x = 2.0f * v.x + 1.0f;                                   //+
    v.y = 2.0f * v.y + 1.0f;                                   //+
    v.z = 2.0f * v.z + 1.0f;                                   //+
    v.w = 2.0f * v.w + 1.0f;                                   //+
    reinterpret_cast<float4*>(out)[i] = v;                     //+
}
