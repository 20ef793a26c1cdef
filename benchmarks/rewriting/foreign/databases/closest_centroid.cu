// Vectors of an index by their list: the closest centroid, of which the length is known.
#pragma optiml launch closest_centroid grid(cdiv(rows, 256)) block(256)
__global__ void closest_centroid(const float4* vec, const float4* centroid, const float* half_norm, int* list,
                                 int rows, int lists, int quads)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    int best = 0;
    float most = -3.4e38f;
    for (int c = 0; c < lists; ++c) {
        float dot = 0.0f;
        for (int i = 0; i < quads; ++i) {
            float4 a = vec[r * quads + i], b = centroid[c * quads + i];
            dot += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
        float s = dot - half_norm[c];
        if (s > most) {
            most = s;
            best = c;
        }
    }
    list[r] = best;
}
