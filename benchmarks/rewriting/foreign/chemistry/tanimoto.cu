// Tanimoto similarity of molecules to a query: bits of the fingerprints that both have, of those that either has.
#pragma optiml launch tanimoto grid(cdiv(molecules, 256)) block(256)
__global__ void tanimoto(const unsigned int* prints, const unsigned int* query, float* similarity, int molecules, int nbits)
{
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= molecules) return;
    int both = 0, either = 0;
    for (int i = 0; i < nbits; i++) {
        int a = (prints[m * (nbits / 32) + i / 32] >> (i % 32)) & 1;
        int b = (query[i / 32] >> (i % 32)) & 1;
        if (a && b) both++;
        if (a || b) either++;
    }
    similarity[m] = either ? (float)both / (float)either : 0.0f;
}
