// What a book loses on average in those scenarios that are worse than a limit; shocks have a scenario a column.
#pragma optiml launch expected_shortfall grid(cdiv(books, 64)) block(64)
__global__ void expected_shortfall(const double* exposure, const double* shock, const double* limit, double* shortfall,
                                   int books, int factors, int scenarios)
{
    const int book = blockIdx.x * blockDim.x + threadIdx.x;
    if (book >= books) return;
    double lost = 0.0;
    int worse = 0;
    for (int s = 0; s < scenarios; ++s) {
        double pnl = 0.0;
        for (int f = 0; f < factors; ++f)
            pnl += exposure[book * factors + f] * shock[f * scenarios + s];
        if (-pnl > limit[book]) {
            lost -= pnl;
            ++worse;
        }
    }
    shortfall[book] = worse > 0 ? lost / worse : 0.0;
}
