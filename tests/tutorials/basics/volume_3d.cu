__global__ void distance_field(float *field, float3 centre, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz) return;
    float dx = x - centre.x, dy = y - centre.y, dz = z - centre.z;
    field[(z * ny + y) * nx + x] = sqrtf(dx * dx + dy * dy + dz * dz);
}
