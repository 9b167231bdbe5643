/* What somebody would write by hand for some of the cases, with OpenMP and libmvec. */
#include <math.h>

void six_ops(const float* x, float* y, long n) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; ++i) y[i] = ((x[i] * 1.5f + 2.5f - 1.5f) * 2.5f + 1.5f) / 2.5f;
}

void exp_sin(const float* x, float* y, long n) {
#pragma omp parallel for simd schedule(static)
    for (long i = 0; i < n; ++i) y[i] = expf(sinf(x[i]));
}

float sum(const float* x, long n) {
    float total = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : total)
    for (long i = 0; i < n; ++i) total += x[i];
    return total;
}

/* Blocks of columns whose sums stay in the first level of the cache. */
void columns(const float* x, float* y, long rows, long width) {
    const long block = 2048;
#pragma omp parallel for schedule(static)
    for (long begin = 0; begin < width; begin += block) {
        const long end = begin + block < width ? begin + block : width;
        for (long j = begin; j < end; ++j) y[j] = 0;
        for (long i = 0; i < rows; ++i) {
            const float* row = x + i * width;
#pragma omp simd
            for (long j = begin; j < end; ++j) y[j] += row[j];
        }
    }
}

void sum_exp(const float* x, float* y, long rows, long width) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < rows; ++i) {
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (long j = 0; j < width; ++j) total += expf(x[i * width + j]);
        y[i] = total;
    }
}
