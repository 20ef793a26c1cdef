// A view with bounds and strides, as a class template with several operators.
template <typename T>
class View {
    T *data_;
    int rows_, cols_, stride_;

public:
    __device__ View(T *data, int rows, int cols) : data_(data), rows_(rows), cols_(cols), stride_(cols) {}
    __device__ View(T *data, int rows, int cols, int stride) : data_(data), rows_(rows), cols_(cols), stride_(stride) {}
    __device__ int rows() const { return rows_; }
    __device__ int cols() const { return cols_; }
    __device__ T &operator()(int r, int c) { return data_[r * stride_ + c]; }
    __device__ const T &operator()(int r, int c) const { return data_[r * stride_ + c]; }
    __device__ View block(int r, int c, int rows, int cols) { return View(data_ + r * stride_ + c, rows, cols, stride_); }
    __device__ bool contains(int r, int c) const { return r >= 0 && r < rows_ && c >= 0 && c < cols_; }
};

#pragma optiml launch flip_blocks grid(cdiv(cols, 8), cdiv(rows, 8)) block(8, 8)
__global__ void flip_blocks(const float *in, float *out, int rows, int cols)
{
    View<const float> source(in, rows, cols);
    View<float> target(out, rows, cols);
    int r0 = blockIdx.y * 8, c0 = blockIdx.x * 8;
    int h = min(8, rows - r0), w = min(8, cols - c0);
    View<float> mine = target.block(r0, c0, h, w);
    if (mine.contains(threadIdx.y, threadIdx.x))
        mine(threadIdx.y, threadIdx.x) = source(r0 + h - 1 - threadIdx.y, c0 + w - 1 - threadIdx.x);
}
