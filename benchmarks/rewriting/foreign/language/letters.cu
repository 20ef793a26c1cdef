// How often each byte stands in a text: a thread for each.
#pragma optiml launch letters grid(1) block(256)
__global__ void letters(const unsigned char* text, int* often, int n) {
  int found = 0;
  for (int i = 0; i < n; i++)
    if (text[i] == threadIdx.x) found++;
  often[threadIdx.x] = found;
}
