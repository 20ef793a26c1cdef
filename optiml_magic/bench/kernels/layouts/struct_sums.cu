#define FIELDS 64

struct Tree {
    int apples[FIELDS];
};

#pragma optiml launch struct_sums grid(cdiv(trees, 256)) block(256)
__global__ void struct_sums(const Tree* forest, int* out, int trees) {
    int tree = blockIdx.x * blockDim.x + threadIdx.x;
    if (tree < trees) {
        int sum = 0;
        for (int i = 0; i < FIELDS; i++) {
            sum += forest[tree].apples[i];
        }
        out[tree] = sum;
    }
}
