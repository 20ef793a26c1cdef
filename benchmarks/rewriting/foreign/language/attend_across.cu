// The decoder looks at what the encoder left; tokens of padding do not count.
#pragma optiml launch attend_across grid(cdiv(targets, 128), batch) block(128)
__global__ void attend_across(const float* query, const float* key, const float* value, const unsigned char* padding,
                              float* context, int batch, int targets, int sources)
{
    int target = blockIdx.x * 128 + threadIdx.x;
    int b = blockIdx.y;
    if (target < targets) {
        float best = -1e20f;
        float total = 0.0f;
        float sum[48];
        for (int i = 0; i < 48; i++) sum[i] = 0.0f;
        for (int source = 0; source < sources; source++) {
            if (padding[b * sources + source]) continue;
            float dot = 0.0f;
            for (int i = 0; i < 48; i++)
                dot += query[(b * targets + target) * 48 + i] * key[(b * sources + source) * 48 + i];
            dot *= 0.1443f;
            float before = best;
            best = fmaxf(best, dot);
            float keep = expf(before - best);
            float weight = expf(dot - best);
            total = total * keep + weight;
            for (int i = 0; i < 48; i++)
                sum[i] = sum[i] * keep + weight * value[(b * sources + source) * 48 + i];
        }
        for (int i = 0; i < 48; i++) context[(b * targets + target) * 48 + i] = sum[i] / fmaxf(total, 1e-20f);
    }
}
