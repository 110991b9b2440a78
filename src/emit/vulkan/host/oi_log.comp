#version 450
/* Copies words of the state into the log for the rollback of a step. */
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer From { uint from[]; };
layout(std430, binding = 1) buffer To { uint to[]; };
layout(std430, binding = 2) readonly buffer Scalars {
    uint first, last; /* words */
    uint at;
};

void main()
{
    const uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x,
               i = group * 64u + gl_LocalInvocationID.x;
    if (first + i < last)
        to[at + i] = from[first + i];
}
