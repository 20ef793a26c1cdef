// Naive search for a pattern in constant memory; counts matches and marks the first.
__constant__ char pattern[8] = "abca";

__device__ bool matches(const char *text)
{
    for (int k = 0; pattern[k] != '\0'; ++k)
        if (text[k] != pattern[k]) return false;
    return true;
}

#pragma optiml zero(count)
#pragma optiml init(first) = 2147483647
#pragma optiml launch find_all grid(cdiv(length, 128)) block(128)
__global__ void find_all(const char *text, int length, int pattern_length, int *count, int *first)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + pattern_length <= length && matches(text + i)) {
        atomicAdd(count, 1);
        atomicMin(first, i);
    }
}
