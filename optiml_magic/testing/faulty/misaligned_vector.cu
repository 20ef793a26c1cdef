// A row of 33 floats starts at no multiple of 16 bytes.
// sanitizer: memcheck
// launch: copy grid=1 block=8 args=x,out
// data: x=in:f4[132] out=out:f4[32]
__global__ void copy(const float* x, float* out) {
    int row = threadIdx.x / 2, part = threadIdx.x % 2;
    const float* from = x + row * 33 + 4 * part;   //-
    const float* from = x + row * 32 + 4 * part;   //+
    reinterpret_cast<float4*>(out)[threadIdx.x] =
        *reinterpret_cast<const float4*>(from);  //! misaligned
}
