// A product of half matrices, one multiply-add at a time; the other uses the tensor cores.
// task: half_matmul
// devices: emulated cuda
// without: cuda
#include <cuda_fp16.h>
#include <mma.h>                                                       //+
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)   //-
#pragma optiml require m % 16 == 0 && n % 16 == 0 && depth % 16 == 0   //+
#pragma optiml launch k grid(n / 16, m / 16) block(32)                 //+
__global__ void k(const __half* a, const __half* b, float* c, int m, int n, int depth) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;  //-
    int row = blockIdx.y * blockDim.y + threadIdx.y;  //-
    if (row >= m || col >= n) return;                 //-
    float sum = 0.0f;                                 //-
    for (int i = 0; i < depth; ++i)                   //-
        sum += __half2float(a[row * depth + i]) * __half2float(b[i * n + col]);  //-!
    c[row * n + col] = sum;                           //-
    using namespace nvcuda::wmma;                                          //+
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;                //+
    fragment<matrix_b, 16, 16, 16, __half, row_major> right;               //+
    fragment<accumulator, 16, 16, 16, float> sum;                          //+
    fill_fragment(sum, 0.0f);                                              //+
    for (int i = 0; i < depth; i += 16) {                                  //+
        load_matrix_sync(left, a + blockIdx.y * 16 * depth + i, depth);    //+
        load_matrix_sync(right, b + i * n + blockIdx.x * 16, n);           //+
        mma_sync(sum, left, right, sum);                                   //+
    }                                                                      //+
    store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, mem_row_major);  //+
}
