// By how many G are ahead of C up to each base of a chromosome: it turns where replication begins.
#pragma optiml launch gc_skew grid(chromosomes) block(1)
__global__ void gc_skew(const char* bases, int* skew, int chromosomes, int length) {
    const char* own = bases + (size_t)blockIdx.x * length;
    int ahead = 0;
    for (int i = 0; i < length; i++) {
        if (own[i] == 'G') ahead++;
        if (own[i] == 'C') ahead--;
        skew[(size_t)blockIdx.x * length + i] = ahead;
    }
}
