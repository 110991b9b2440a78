/* build.c: the files around a program: the runtime, Makefile, CMakeLists.txt. A shader NAME.comp
 * becomes NAME.inc, the words of its SPIR-V, which NAME.c includes: the built program needs no
 * compiler of shaders. */
#include "emit/vulkan/program.h"

#define RUNTIME "vulkan_step.c vulkan_work.c vulkan_open.c"

extern const oi_embedded oi_vulkan_files[]; /* generated from host/ */

static const char *shader_list(oi_cprog *c)
{
    const oi_vprogram *v = c->own;
    oi_buf b = {0};
    for (size_t i = 0; i < v->shaders.n; i++)
        oi_buf_printf(&b, "%s ", v->shaders.at[i]);
    oi_buf_puts(&b, "oi_fill oi_log");
    return oi_buf_to_arena(&b, c->arena);
}

static void put_makefile(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    oi_out_line(&o, "# CFLAGS may be anything: the program is right under all of them.");
    oi_out_line(&o, "CFLAGS ?= -O2");
    oi_out_line(&o, "FLAGS = -std=c11 -Wall -Wextra -pedantic");
    oi_out_line(&o, "# glslc of shaderc, or glslangValidator");
    oi_out_line(&o,
                "GLSLC ?= $(shell command -v glslc || command -v glslangValidator || echo glslc)");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "SHADERS = %s", shader_list(c));
    oi_out_line(&o, "SOURCES = %s hal.c %s.c%s " RUNTIME, oi_c_main_name(c), c->name,
                c->p->embeds ? " weights.c" : "");
    oi_out_line(&o, "OBJECTS = $(patsubst %%.c,%%.o,$(SOURCES:.cpp=.o))");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "%s: $(OBJECTS)", c->name);
    oi_out_line(&o, "\t$(%s) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) -ldl -lm",
                oi_c_is_cpp(c) ? "CXX" : "CC");
    oi_out_line(&o, "%%.o: %%.c %s.h hal.h vulkan_run.h vulkan_device.h vulkan_parts.h", c->name);
    oi_out_line(&o, "\t$(CC) $(FLAGS) $(CFLAGS) -c -o $@ $<");
    if (oi_c_is_cpp(c)) {
        oi_out_line(&o, "%%.o: %%.cpp %s.h hal.h vulkan_run.h", c->name);
        oi_out_line(&o, "\t$(CXX) -std=c++17 -Wall -Wextra $(CFLAGS) -c -o $@ $<");
    }
    oi_out_line(&o, "%s.o: $(SHADERS:=.inc)", c->name);
    oi_out_line(&o, "%%.inc: %%.comp");
    oi_out_line(&o, "ifneq ($(findstring glslang,$(notdir $(GLSLC))),)");
    oi_out_line(&o, "\t$(GLSLC) --quiet -V -x --target-env vulkan1.1 -o $@ $<");
    oi_out_line(&o, "else");
    oi_out_line(&o, "\t$(GLSLC) --target-env=vulkan1.1 -mfmt=num -o $@ $<");
    oi_out_line(&o, "endif");
    oi_out_line(&o, "clean:");
    oi_out_line(&o, "\trm -f %s $(OBJECTS) $(SHADERS:=.inc)", c->name);
    oi_out_line(&o, ".PHONY: clean");
    oi_c_add_file(c, files, "Makefile", &o);
}

static void put_cmake(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    const char *n = c->name;
    oi_out_line(&o, "# The library %s: add_subdirectory() this folder and link %s.", n, n);
    oi_out_line(&o, "cmake_minimum_required(VERSION 3.13)");
    oi_out_line(&o, "project(%s LANGUAGES C%s)", n, oi_c_is_cpp(c) ? " CXX" : "");
    oi_c_put_cmake_top(n, &o);
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "find_program(GLSLC NAMES glslc glslangValidator)");
    oi_out_line(&o, "if(NOT GLSLC)");
    oi_out_line(&o, "  message(FATAL_ERROR \"no compiler of shaders: install glslc or "
                    "glslangValidator\")");
    oi_out_line(&o, "endif()");
    oi_out_line(&o, "get_filename_component(%s_COMPILER ${GLSLC} NAME)", n);
    oi_out_line(&o, "if(%s_COMPILER MATCHES glslang)", n);
    oi_out_line(&o, "  set(%s_FLAGS --quiet -V -x --target-env vulkan1.1)", n);
    oi_out_line(&o, "else()");
    oi_out_line(&o, "  set(%s_FLAGS --target-env=vulkan1.1 -mfmt=num)", n);
    oi_out_line(&o, "endif()");
    oi_out_line(&o, "foreach(shader %s)", shader_list(c));
    oi_out_line(&o, "  set(made ${CMAKE_CURRENT_BINARY_DIR}/${shader}.inc)");
    oi_out_line(&o, "  set(from ${CMAKE_CURRENT_SOURCE_DIR}/${shader}.comp)");
    oi_out_line(&o,
                "  add_custom_command(OUTPUT ${made} COMMAND ${GLSLC} ${%s_FLAGS} -o ${made} "
                "${from} DEPENDS ${from} VERBATIM)",
                n);
    oi_out_line(&o, "  list(APPEND %s_SHADERS ${made})", n);
    oi_out_line(&o, "endforeach()");
    oi_out_line(&o, "add_library(%s STATIC %s.c%s " RUNTIME " ${%s_SHADERS})", n, n,
                c->p->embeds ? " weights.c" : "", n);
    oi_out_line(&o,
                "target_include_directories(%s PUBLIC ${CMAKE_CURRENT_SOURCE_DIR} PRIVATE "
                "${CMAKE_CURRENT_BINARY_DIR})",
                n);
    oi_out_line(&o, "set_target_properties(%s PROPERTIES POSITION_INDEPENDENT_CODE ON)", n);
    oi_out_line(&o, "target_link_libraries(%s PUBLIC m ${CMAKE_DL_LIBS})", n);
    oi_c_put_cmake_demo(c, oi_arena_printf(c->arena, "%s hal.c", oi_c_main_name(c)), &o);
    oi_c_add_file(c, files, "CMakeLists.txt", &o);
}

void oi_v_build_files(oi_cprog *c, oi_emitted *files)
{
    static const struct {
        const char *embedded, *name;
    } runtime[] = {{"vulkan_device", "vulkan_device.h"}, {"vulkan_parts", "vulkan_parts.h"},
                   {"vulkan_run", "vulkan_run.h"},       {"vulkan_open", "vulkan_open.c"},
                   {"vulkan_work", "vulkan_work.c"},     {"vulkan_step", "vulkan_step.c"},
                   {"oi_fill", "oi_fill.comp"},          {"oi_log", "oi_log.comp"}};
    oi_c_add_host_file(c, files, oi_host_files, "hal_h", "hal.h");
    oi_c_add_host_file(c, files, oi_host_files, "hal", "hal.c");
    for (size_t i = 0; i < OI_COUNT(runtime); i++)
        oi_c_add_host_file(c, files, oi_vulkan_files, runtime[i].embedded, runtime[i].name);
    put_makefile(c, files);
    put_cmake(c, files);
}
