// harness.cpp: runs the Verilog of a circuit in verilator: raw tensors of x on the standard input, those of y on the
// standard output, with random stalls on both sides; with an argument without any, and then the clocks from the first
// beat of x to the last of y on the standard error. CIRCUIT: the model's class; PIPELINE: beats are whole tensors;
// X_BYTES, Y_BYTES: of a beat; X_BEATS, Y_BEATS: of a step. states.h takes the beats of persistent memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <verilated.h>
#define QUOTE(x) #x
#define HEADER(x) QUOTE(x.h)
#include HEADER(CIRCUIT)
#include "states.h"

static bool is_quick;

template <class T> static void put(T &port, const unsigned char *bytes, size_t n)
{
    port = 0;
    for (size_t i = 0; i < n; i++)
        port |= (T)bytes[i] << (8 * i);
}

template <std::size_t W> static void put(VlWide<W> &port, const unsigned char *bytes, size_t n)
{
    memset(&port, 0, sizeof port);
    memcpy(&port, bytes, n); // little-endian
}

template <class T> static void get(const T &port, unsigned char *bytes, size_t n)
{
    memcpy(bytes, &port, n); // little-endian
}

static bool stalls()
{
    return !is_quick && std::rand() % 3 == 0;
}

int main(int argc, char **)
{
    is_quick = argc > 1;
    CIRCUIT top;
    std::vector<unsigned char> in;
    unsigned char block[4096], beat[Y_BYTES];
    for (size_t n; (n = fread(block, 1, sizeof block, stdin)) > 0;)
        in.insert(in.end(), block, block + n);
    const size_t beats = in.size() / X_BYTES, wanted = beats / X_BEATS * Y_BEATS;
    size_t sent = 0, got = 0;
    long first = 0, last = 0;
    top.rst = 1;
    top.clk = 0;
    for (long clock = 0; got < wanted && clock < 1000000; clock++) {
        top.rst = clock == 0;
        // an offer stays until it is taken
        if (clock > 99 && !top.s_axis_x_tvalid && sent < beats && !stalls()) {
            put(top.s_axis_x_tdata, &in[sent * X_BYTES], X_BYTES);
            top.s_axis_x_tvalid = 1;
        }
        top.m_axis_y_tready = clock > 1 && !stalls();
#ifndef PIPELINE
        top.step_tvalid = top.done_tready = clock > 1;
        top.step_save = 0;
#endif
#ifdef PIPELINE
        take_states(top);
#endif
        top.eval();
        const bool goes = top.s_axis_x_tvalid && top.s_axis_x_tready;
        if (top.m_axis_y_tvalid && top.m_axis_y_tready) {
            get(top.m_axis_y_tdata, beat, Y_BYTES);
            fwrite(beat, 1, Y_BYTES, stdout);
            got++;
            last = clock;
        }
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        if (goes && !sent)
            first = clock;
        sent += goes;
        if (goes)
            top.s_axis_x_tvalid = 0;
    }
    if (is_quick)
        fprintf(stderr, "%ld\n", last - first);
    return got == wanted ? 0 : 1;
}
