// A guard that compares the row with the columns: harmless until the matrix is not square.
// sanitizer: memcheck
// launch: scale grid=3,5 block=16,16 args=a,out,rows,cols
// data: a=in:f4[2400] out=out:f4[2400] rows=i4:80 cols=i4:30
__global__ void scale(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < rows && col < rows)  //-
    if (row < rows && col < cols)  //+
        out[row * cols + col] =
            2.0f * a[row * cols + col];  //! out_of_bounds
}
