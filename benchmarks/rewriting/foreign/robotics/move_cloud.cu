// A point cloud in the frame of the map.
struct Pose { float r[9]; float t[3]; };

__global__ void move_cloud(const float4* from, float4* to, const Pose* pose, int points) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points) return;
    const float4 p = from[i];
    float4 q;
    q.x = pose->r[0] * p.x + pose->r[1] * p.y + pose->r[2] * p.z + pose->t[0];
    q.y = pose->r[3] * p.x + pose->r[4] * p.y + pose->r[5] * p.z + pose->t[1];
    q.z = pose->r[6] * p.x + pose->r[7] * p.y + pose->r[8] * p.z + pose->t[2];
    q.w = p.w;
    to[i] = q;
}
#pragma optiml launch move_cloud grid(cdiv(points, 256)) block(256)
