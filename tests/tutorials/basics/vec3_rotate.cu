// A small vector class with operators, as in a ray tracer's first chapter.
struct Vec3 {
    float x, y, z;
    __host__ __device__ Vec3(float x = 0, float y = 0, float z = 0) : x(x), y(y), z(z) {}
    __host__ __device__ Vec3 operator+(const Vec3 &o) const { return Vec3(x + o.x, y + o.y, z + o.z); }
    __host__ __device__ Vec3 operator*(float s) const { return Vec3(s * x, s * y, s * z); }
    __host__ __device__ float dot(const Vec3 &o) const { return x * o.x + y * o.y + z * o.z; }
    __host__ __device__ Vec3 cross(const Vec3 &o) const
    {
        return Vec3(y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x);
    }
    __host__ __device__ Vec3 &operator*=(float s)
    {
        x *= s;
        y *= s;
        z *= s;
        return *this;
    }
};

__host__ __device__ Vec3 operator*(float s, const Vec3 &v) { return v * s; }

// Rodrigues' formula: rotate p around the unit axis k.
__device__ Vec3 rotate(const Vec3 &p, const Vec3 &k, float angle)
{
    float s, c;
    sincosf(angle, &s, &c);
    return p * c + s * k.cross(p) + ((1.0f - c) * k.dot(p)) * k;
}

#pragma optiml launch rotate_points grid(cdiv(n, 96)) block(96)
__global__ void rotate_points(const float *points, float *out, float angle, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Vec3 axis(1.0f, 2.0f, 2.0f);
        axis *= 1.0f / 3.0f;
        Vec3 p(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
        Vec3 q = rotate(p, axis, angle);
        out[3 * i] = q.x;
        out[3 * i + 1] = q.y;
        out[3 * i + 2] = q.z;
    }
}
