struct Frame { float left, right; };

// Widens a stereo recording: more of the side, less of the middle.
__global__ void widen(const Frame *input, Frame *output, float width, size_t frames)
{
    size_t f = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= frames) return;
    Frame one = input[f];
    float mid = 0.5f * (one.left + one.right);
    float side = 0.5f * (one.left - one.right) * width;
    one.left = mid + side;
    one.right = mid - side;
    output[f] = one;
}
#pragma optiml launch widen grid(cdiv(frames, 256)) block(256)
