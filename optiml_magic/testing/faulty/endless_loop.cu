// A list that is walked until its end, which a cycle never reaches.
// launch: walk grid=1 block=32 args=next,out,n
// data: next=in:i4[32]%31 out=out:i4[32] n=i4:31
__global__ void walk(const int* next, int* out, int n) {
    int at = threadIdx.x % 31, steps = 0;
    while (at != n) {                   //- //! instruction_limit
    while (at != n && steps < n) {      //+
        at = next[at];
        ++steps;
    }
    out[threadIdx.x] = steps;
}
