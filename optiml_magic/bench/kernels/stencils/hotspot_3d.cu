// a thread goes up through all layers; beyond an edge a neighbour is the cell itself
#pragma optiml launch hotspot_3d grid(cdiv(nx, 64), cdiv(ny, 4)) block(64, 4)
__global__ void hotspot_3d(const float* power, const float* temp, float* out, int nx, int ny,
                           int nz, float cc, float cn, float cs, float ce, float cw, float ct,
                           float cb, float gain, float ambient) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int layer = nx * ny;
    int i = y * nx + x;
    int west = x == 0 ? 0 : 1;
    int east = x == nx - 1 ? 0 : 1;
    int north = y == 0 ? 0 : nx;
    int south = y == ny - 1 ? 0 : nx;
    float here = temp[i];
    float below = here;
    for (int z = 0; z < nz; z++) {
        float above = z == nz - 1 ? here : temp[i + layer];
        out[i] = cc * here + cn * temp[i - north] + cs * temp[i + south] + ce * temp[i + east] +
                 cw * temp[i - west] + ct * above + cb * below + gain * power[i] + ct * ambient;
        below = here;
        here = above;
        i += layer;
    }
}
