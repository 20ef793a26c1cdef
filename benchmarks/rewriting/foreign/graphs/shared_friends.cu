// For each edge of a CSR graph whose rows are sorted: how many neighbours both of its ends have.
#pragma optiml launch shared_friends grid(cdiv(edges, 128)) block(128)
__global__ void shared_friends(const int* row_ptr, const int* col, const int* from, int* shared, int edges) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  int u = from[e], v = col[e];
  int count = 0;
  for (int i = row_ptr[u]; i < row_ptr[u + 1]; i++) {
    int who = col[i];
    int first = row_ptr[v], last = row_ptr[v + 1];
    while (first < last) {
      int mid = first + (last - first) / 2;
      if (col[mid] < who) first = mid + 1;
      else last = mid;
    }
    if (first < row_ptr[v + 1] && col[first] == who) count++;
  }
  shared[e] = count;
}
