#version 450
/* Fills words with a pattern of two, or sets the bytes of one narrower element. It does nothing
 * after an earlier dispatch failed. */
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer To { uint to[]; };
layout(std430, binding = 1) buffer Failure { uint failure; };
layout(std430, binding = 2) readonly buffer Scalars {
    uint order;
    uint at; /* byte of the binding; a multiple of 4 if there are words */
    uint bytes;
    uint low, high;
};

void main()
{
    const uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x,
               i = group * 64u + gl_LocalInvocationID.x;
    if (failure >> 8 > 0xffffffu - order || i >= (bytes + 3u) / 4u)
        return;
    if (bytes < 4u) {
        const uint shift = at % 4u * 8u, mask = (1u << bytes * 8u) - 1u;
        atomicAnd(to[at / 4u], ~(mask << shift));
        atomicOr(to[at / 4u], (low & mask) << shift);
        return;
    }
    to[at / 4u + i] = i % 2u == 0u ? low : high;
}
