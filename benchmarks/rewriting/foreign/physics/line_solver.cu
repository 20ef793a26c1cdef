// Tridiagonal systems of one matrix, one a thread, unknowns of all systems side by side.
#pragma optiml launch solve_lines grid(cdiv(lines, 128)) block(128)
__global__ void solve_lines(float* rhs, const float* lower, const float* ratio, const float* pivot,
                            int lines, int cells) {
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= lines) return;
    float before = 0.0f;
    for (int i = 0; i < cells; i++) {
        before = (rhs[i * lines + line] - lower[i] * before) * pivot[i];
        rhs[i * lines + line] = before;
    }
    float behind = 0.0f;
    for (int i = cells - 1; i >= 0; i--) {
        behind = rhs[i * lines + line] - ratio[i] * behind;
        rhs[i * lines + line] = behind;
    }
}
