// Function qualifiers shared by host and device code, and short names of the integer types.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define FK_DEVICE_FUSE __device__ __forceinline__ static constexpr
#define FK_DEVICE_STATIC __device__ __forceinline__ static
#define FK_HOST_DEVICE_FUSE __host__ __device__ __forceinline__ static constexpr
#define FK_HOST_DEVICE_CNST __host__ __device__ __forceinline__ constexpr
#define FK_HOST_DEVICE_STATIC __host__ __device__ __forceinline__ static
#define FK_HOST_FUSE __host__ __forceinline__ static constexpr
#define FK_HOST_CNST __host__ __forceinline__ constexpr
#define FK_HOST_STATIC __host__ __forceinline__ static
#else
// The whole chain of operations must end up in one loop body, whatever the inliner's budget is.
#define FK_ALWAYS_INLINE inline __attribute__((always_inline))
#define FK_DEVICE_FUSE static constexpr FK_ALWAYS_INLINE
#define FK_DEVICE_STATIC static FK_ALWAYS_INLINE
#define FK_HOST_DEVICE_FUSE static constexpr FK_ALWAYS_INLINE
#define FK_HOST_DEVICE_CNST constexpr FK_ALWAYS_INLINE
#define FK_HOST_DEVICE_STATIC static FK_ALWAYS_INLINE
#define FK_HOST_FUSE static constexpr FK_ALWAYS_INLINE
#define FK_HOST_CNST constexpr FK_ALWAYS_INLINE
#define FK_HOST_STATIC static FK_ALWAYS_INLINE
#endif

// Operations are types that are never instantiated: all they offer is static.
#define FK_STATIC_STRUCT(name, alias)                                                              \
    name() = delete;                                                                               \
    name(const alias&) = delete;                                                                   \
    name& operator=(const alias&) = delete;

using uint = unsigned int;
using uchar = unsigned char;
using ushort = unsigned short;
