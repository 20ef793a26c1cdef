// Best and second best alignment of each read: the mapping quality is what lies between them.
__global__ void best_two_hits(const int *score, int *best, int *second, int *where, int reads, int candidates)
{
    int read = blockIdx.x * blockDim.x + threadIdx.x;
    if (read >= reads) return;
    const int *mine = &score[read * candidates];
    int first = -1000000, next = -1000000, place = -1;
    for (int c = 0; c < candidates; c++)
    {
        int s = mine[c];
        if (s > next)
        {
            if (s > first)
            {
                next = first;
                first = s;
                place = c;
            }
            else
                next = s;
        }
    }
    best[read] = first;
    second[read] = next;
    where[read] = place;
}
#pragma optiml launch best_two_hits grid(cdiv(reads, 128)) block(128)
