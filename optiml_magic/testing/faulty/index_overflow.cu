// The product of two ints wraps before it becomes an address.
// sanitizer: memcheck
// launch: gather grid=1 block=32 args=x,out,stride,n
// data: x=in:f4[1024] out=out:f4[32] stride=i4:100000000 n=i4:1024
__global__ void gather(const float* x, float* out, int stride, int n) {
    int i = (int)threadIdx.x * stride % n;              //-
    long long i = (long long)threadIdx.x * stride % n;  //+
    out[threadIdx.x] = x[i];  //! out_of_bounds
}
