// feature is [features, points]
#pragma optiml launch kmeans_assign grid(cdiv(points, 256)) block(256)
__global__ void kmeans_assign(const float* feature, const float* clusters, int* membership,
                              int points, int features, int centres) {
    int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point < points) {
        int index = -1;
        float least = 3.4e38f;
        for (int i = 0; i < centres; i++) {
            float distance = 0.0f;
            for (int j = 0; j < features; j++) {
                float difference = feature[point + j * points] - clusters[i * features + j];
                distance += difference * difference;
            }
            if (distance < least) {
                least = distance;
                index = i;
            }
        }
        membership[point] = index;
    }
}
