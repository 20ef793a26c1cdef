// A tridiagonal system for each thread, interleaved so that accesses coalesce.
#pragma optiml scratch c_star double[systems * n]
#pragma optiml launch thomas grid(cdiv(systems, 32)) block(32)
__global__ void thomas(const double *a, const double *b, const double *c, const double *d, double *x,
                       double *c_star, int systems, int n)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    c_star[s] = c[s] / b[s];
    x[s] = d[s] / b[s];
    for (int i = 1; i < n; ++i) {
        int at = i * systems + s, before = at - systems;
        double m = 1.0 / (b[at] - a[at] * c_star[before]);
        c_star[at] = c[at] * m;
        x[at] = (d[at] - a[at] * x[before]) * m;
    }
    for (int i = n - 2; i >= 0; --i) x[i * systems + s] -= c_star[i * systems + s] * x[(i + 1) * systems + s];
}
