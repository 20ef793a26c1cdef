// Best and second best common neighbour score of each vertex, over the edges of a CSR graph.
#pragma optiml launch likeliest_link grid(cdiv(vertices, 256)) block(256)
__global__ void likeliest_link(const int* row_ptr, const int* col, const float* score, int* partner, float* margin,
                               int vertices) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < vertices) {
    float a = 0.0f, b = 0.0f;
    int who = -1;
    for (int e = row_ptr[v]; e != row_ptr[v + 1]; e++) {
      float s = score[e];
      if (s > a) {
        b = a;
        a = s;
        who = col[e];
      } else if (s > b) {
        b = s;
      }
    }
    partner[v] = who;
    margin[v] = a - b;
  }
}
