// Levenshtein distance of many short pairs, one thread a pair, one row of the table in local memory.
#define MAX_LEN 24

__global__ void levenshtein(const unsigned char *words, const unsigned char *others, int *distance, int pairs, int length)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pairs) return;
    const unsigned char *a = words + p * length, *b = others + p * length;
    unsigned char row[MAX_LEN + 1];
    for (int j = 0; j <= length; ++j) row[j] = j;
    for (int i = 1; i <= length; ++i) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= length; ++j) {
            int up = row[j];
            int cost = a[i - 1] != b[j - 1];
            row[j] = min(min(up + 1, row[j - 1] + 1), diagonal + cost);
            diagonal = up;
        }
    }
    distance[p] = row[length];
}
