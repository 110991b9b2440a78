# find_package(openinfer) gives openinfer::openinfer (shared) and openinfer::static. Only programs
# that link the static library need json-c and threads themselves.
include(CMakeFindDependencyMacro)
find_package(Threads QUIET)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND AND NOT TARGET PkgConfig::JSONC)
  pkg_check_modules(JSONC QUIET IMPORTED_TARGET json-c)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/openinferTargets.cmake)
