__global__ void collatz(const unsigned long long *start, int *steps, unsigned long long *peak, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned long long x = start[i], top = x;
        int count = 0;
        do {
            x = (x % 2 == 0) ? x / 2 : 3 * x + 1;
            if (x > top) top = x;
            count++;
        } while (x != 1);
        steps[i] = count;
        peak[i] = top;
    }
}
