#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint more = 0u;
layout(std430, binding = 0) buffer B { uint b[]; };
layout(push_constant) uniform P { uint add; };
void main() {
    uint id = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 64u + gl_LocalInvocationID.x;
    if (id >= b.length()) return;
    b[id] += add + more;
}
