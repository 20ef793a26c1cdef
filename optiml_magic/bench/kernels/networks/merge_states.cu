// attention over two parts of the keys, put together by their log-sum-exps; a thread an element
#pragma optiml launch merge_states grid(cdiv(rows * width, 256)) block(256)
__global__ void merge_states(const float* first, const float* first_lse, const float* second,
                             const float* second_lse, float* out, float* lse, int rows, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * width) return;
    int row = i / width;
    float a = first_lse[row];
    float b = second_lse[row];
    float top = fmaxf(a, b);
    float wa = expf(a - top);
    float wb = expf(b - top);
    float sum = wa + wb;
    out[i] = (first[i] * wa + second[i] * wb) / sum;
    if (i % width == 0) lse[row] = logf(sum) + top;
}
