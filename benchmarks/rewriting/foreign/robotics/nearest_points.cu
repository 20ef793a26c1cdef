// The four nearest points of a map for each point of a scan, their squared distances in order.
#define NEAR 4
struct __align__(16) Point { float x, y, z, pad; };

__global__ void nearest_points(const Point* scan, const Point* map, int* index, float* squared, int scanned, int mapped) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= scanned) return;
    Point me = scan[s];
    float d[NEAR];
    int n[NEAR];
    for (int k = 0; k < NEAR; ++k) { d[k] = 1e30f; n[k] = -1; }
    for (int m = 0; m < mapped; ++m) {
        float dx = map[m].x - me.x, dy = map[m].y - me.y, dz = map[m].z - me.z;
        float dist = dx * dx + dy * dy + dz * dz;
        if (dist < d[NEAR - 1]) {
            d[NEAR - 1] = dist;
            n[NEAR - 1] = m;
            for (int k = NEAR - 1; k > 0; --k) {
                if (d[k] < d[k - 1]) {
                    float t = d[k]; d[k] = d[k - 1]; d[k - 1] = t;
                    int u = n[k]; n[k] = n[k - 1]; n[k - 1] = u;
                }
            }
        }
    }
    for (int k = 0; k < NEAR; ++k) { index[s * NEAR + k] = n[k]; squared[s * NEAR + k] = d[k]; }
}
#pragma optiml launch nearest_points grid(cdiv(scanned, 128)) block(128)
