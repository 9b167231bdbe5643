// Whether quotient_by_shared() of fused.h rounds correctly, for every divisor of float32: powers of
// two only move the exponent, so the significands stand for all numbers. Before the last rounding
// its steps err by less than 2^-23 units in the last place. So only those dividends could go wrong
// whose quotient lies as near to the middle of two numbers: a * 2^k = n modulo b for an n of at
// most
// 4. They are all tried, and a few others. (A divisor with more than two zeros at its end has
// none.)
//
// gcc -O2 -march=native -ffp-contract=off -fopenmp benchmarks/quotients.c -o quotients -lm
// ./quotients
#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum { LEAST = 1 << 23, LIMIT = 1 << 24, NEAREST = 4, OTHERS = 16 };

static int is_wrong(float a, float b) {
    const float reciprocal = 1.0F / b;
    const float near = a * reciprocal;
    return fmaf(fmaf(-near, b, a), reciprocal, near) != a / b;
}

// All a with a * 2^k = n modulo the odd number b, counted where they are wrong.
static long wrong_near_middles(uint64_t b, uint64_t odd, int k, int64_t n, long* tried) {
    uint64_t inverse = 1;
    for (int i = 0; i < k; ++i) inverse = inverse * ((odd + 1) / 2) % odd;
    const int64_t modulus = (int64_t)odd;
    const uint64_t rest = (uint64_t)((n % modulus + modulus) % modulus) * inverse % odd;
    uint64_t a = rest + (LEAST - rest + odd - 1) / odd * odd;
    long wrong = 0;
    for (; a < LIMIT; a += odd) {
        ++*tried;
        wrong += is_wrong((float)a, (float)b);
    }
    return wrong;
}

int main(void) {
    long wrong = 0;
    long tried = 0;
#pragma omp parallel for schedule(dynamic, 4096) reduction(+ : wrong, tried)
    for (uint32_t b = LEAST; b < LIMIT; ++b) {
        const uint32_t odd = b >> __builtin_ctz(b);
        if (odd >= LEAST / NEAREST) {
            for (int k = 24; k <= 25; ++k) {
                for (int n = -NEAREST; n <= NEAREST; ++n) {
                    wrong += wrong_near_middles(b, odd, k, n, &tried);
                }
            }
        }
        uint32_t random = b * 2654435761U;
        for (int i = 0; i < OTHERS; ++i, ++tried) {
            random = random * 1664525U + 1013904223U;
            wrong += is_wrong((float)(LEAST | (random >> 9)), (float)b);
        }
    }
    printf("%ld quotients, %ld wrong\n", tried, wrong);
    return wrong != 0;
}
