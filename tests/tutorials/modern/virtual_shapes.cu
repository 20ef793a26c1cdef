class Shape {
public:
    __device__ virtual float area() const = 0;
};

class Square : public Shape {
    float side;

public:
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};

class Circle : public Shape {
    float radius;

public:
    __device__ Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};

#pragma optiml launch areas grid(cdiv(n, 64)) block(64)
__global__ void areas(const float *size, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Square square(size[i]);
    Circle circle(size[i]);
    const Shape *shape = i % 3 ? (const Shape *)&square : (const Shape *)&circle;
    out[i] = shape->area();
}
