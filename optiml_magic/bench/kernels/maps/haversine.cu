#define RADIUS 6371.0

// places is [n, 4]: latitude and longitude of one end in degrees, then those of the other
#pragma optiml launch haversine grid(cdiv(n, 256)) block(256)
__global__ void haversine(const float* places, float* distance, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float lat1 = places[4 * i] * 3.14159265358979 / 180.0;
        float lon1 = places[4 * i + 1] * 3.14159265358979 / 180.0;
        float lat2 = places[4 * i + 2] * 3.14159265358979 / 180.0;
        float lon2 = places[4 * i + 3] * 3.14159265358979 / 180.0;
        float down = sinf((lat2 - lat1) / 2);
        float across = sinf((lon2 - lon1) / 2);
        float a = down * down + cosf(lat1) * cosf(lat2) * across * across;
        distance[i] = 2 * RADIUS * asinf(fminf(sqrtf(a), 1.0f));
    }
}
