// Two threads of one instruction write different values to one element.
// launch: scatter grid=1 block=32 args=key,out
// data: key=in:i4[32]%8 out=zero:i4[8]
__global__ void scatter(const int* key, int* out) {
    out[key[threadIdx.x]] = threadIdx.x;              //- //! race
    out[key[threadIdx.x]] = 1;                        //+
}
