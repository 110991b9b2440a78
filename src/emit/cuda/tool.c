/* tool.c: how CUDA programs are built: Makefile and CMakeLists.txt, and what verify runs here. */
#include "emit/cuda/cuda.h"

#include "device/device.h"

/* A compiler that the user names may make programs for something else than a GPU. */
oi_tool oi_cuda_tool(const oi_device_info *device, const char *compiler)
{
    oi_tool t = {.build = {{"make", "make", false},
                           {"nvcc", "nvidia-cuda-toolkit", false},
                           {"cc", "gcc", false}}, /* nvcc needs it, too */
                 .trial = {"cc", "-fsyntax-only", "-include", "stdio.h", "-x", "c", "/dev/null"},
                 .run = {{"libcuda.so.1", "libcuda1", true}},
                 .needs = "what the program asks of a GPU",
                 .compiler_variable = "NVCC",
                 .flags_variable = "NVCCFLAGS"};
    (void)device;
    if (compiler) {
        t.build[1] = (oi_tool_need){compiler, NULL, false};
        t.run[0].name = NULL;
    }
    t.compiler = t.build[1].name;
    return t;
}

/* -- the files that build it -- */

/* Without contraction, products and sums are rounded as in the simulator. */
static const char *flags_text(oi_cprog *c)
{
    return oi_arena_printf(c->arena, "-O3 -arch=sm_%s -fmad=false",
                           oi_cuda_arch(c->arena, c->p->target));
}

static void put_makefile(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    const char *main_name = oi_c_main_name(c);
    const bool is_cpp = strcmp(main_name, "main.cpp") == 0;
    oi_out_line(
        &o, "# NVCCFLAGS come after these flags; -fmad=false and no -use_fast_math are needed.");
    oi_out_line(&o, "NVCC ?= nvcc");
    oi_out_line(&o, "CFLAGS ?= -O2");
    oi_out_line(&o, "FLAGS = -std=c++17 %s -Werror all-warnings", flags_text(c));
    oi_out_line(&o, "OBJECTS = %s.o main.o hal.o%s", c->name, c->p->embeds ? " weights.o" : "");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "%s: $(OBJECTS)", c->name);
    oi_out_line(&o, "\t$(NVCC) $(NVCCFLAGS) -o $@ $(OBJECTS)");
    oi_out_line(&o, "%s.o: %s.cu %s.h", c->name, c->name, c->name);
    oi_out_line(&o, "\t$(NVCC) $(FLAGS) $(NVCCFLAGS) -c -o $@ $<");
    oi_out_line(&o, "main.o: %s %s.h hal.h", main_name, c->name);
    oi_out_line(&o, "\t$(%s) -std=%s -Wall -Wextra $(CFLAGS) -c -o $@ $<", is_cpp ? "CXX" : "CC",
                is_cpp ? "c++17" : "c11");
    oi_out_line(&o, "%%.o: %%.c %s.h hal.h", c->name);
    oi_out_line(&o, "\t$(CC) -std=c11 -Wall -Wextra $(CFLAGS) -c -o $@ $<");
    oi_out_line(&o, "clean:");
    oi_out_line(&o, "\trm -f %s $(OBJECTS)", c->name);
    oi_out_line(&o, ".PHONY: clean");
    oi_c_add_file(c, files, "Makefile", &o);
}

static void put_cmake(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    const char *n = c->name;
    oi_out_line(&o, "# The library %s: add_subdirectory() this folder and link %s.", n, n);
    oi_out_line(&o, "cmake_minimum_required(VERSION 3.18)");
    oi_out_line(&o, "project(%s LANGUAGES C CXX CUDA)", n);
    oi_out_line(&o, "add_library(%s STATIC %s.cu%s)", n, n, c->p->embeds ? " weights.c" : "");
    oi_out_line(&o, "target_include_directories(%s PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})", n);
    oi_out_line(&o, "set_target_properties(%s PROPERTIES CUDA_STANDARD 17 CUDA_ARCHITECTURES %s)",
                n, oi_cuda_arch(c->arena, c->p->target));
    oi_out_line(&o,
                "target_compile_options(%s PRIVATE "
                "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>) # rounding as in the simulator",
                n);
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR OR %s_DEMO)", n);
    oi_out_line(&o, "  add_executable(%s_demo %s hal.c)", n, oi_c_main_name(c));
    oi_out_line(&o, "  target_link_libraries(%s_demo PRIVATE %s)", n, n);
    oi_out_line(&o, "  set_target_properties(%s_demo PROPERTIES OUTPUT_NAME %s)", n, n);
    oi_out_line(&o, "endif()");
    oi_c_add_file(c, files, "CMakeLists.txt", &o);
}

void oi_cuda_build_files(oi_cprog *c, oi_emitted *files)
{
    oi_c_add_host_file(c, files, oi_host_files, "hal_h", "hal.h");
    oi_c_add_host_file(c, files, oi_host_files, "hal", "hal.c");
    put_makefile(c, files);
    put_cmake(c, files);
}
