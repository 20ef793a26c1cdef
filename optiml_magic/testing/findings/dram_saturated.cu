// Streams through its arrays at the speed of the memory; the other has too few threads for that.
// task: scale_all
// devices: emulated cuda
// chip: t4
#pragma optiml launch k grid(cdiv(n, 1024)) block(256)  //-
#pragma optiml launch k grid(4) block(256)              //+
#pragma optiml require n % 4 == 0
__global__ void k(const float* x, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        float4 v = reinterpret_cast<const float4*>(x)[i];  //!
        v.x = 2.0f * v.x + 1.0f;
        v.y = 2.0f * v.y + 1.0f;
        v.z = 2.0f * v.z + 1.0f;
        v.w = 2.0f * v.w + 1.0f;
        reinterpret_cast<float4*>(out)[i] = v;
    }
}
