# SPDX-License-Identifier: MIT
# include(SHARE/tickmap/tickmap-emit.cmake), then
# target_link_libraries(my_jit PRIVATE tickmap::emit)
# The library is compiled into the project; nothing has to be installed where
# my_jit runs.
if(NOT TARGET tickmap::emit)
  find_package(Threads REQUIRED)
  add_library(tickmap_emit STATIC "${CMAKE_CURRENT_LIST_DIR}/tickmap_emit.c")
  target_include_directories(tickmap_emit PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
  # Two shared libraries of a program may each have one, of unlike versions.
  target_compile_definitions(tickmap_emit PUBLIC "TICKMAP_EMIT_API=")
  target_link_libraries(tickmap_emit PUBLIC Threads::Threads)
  set_target_properties(tickmap_emit PROPERTIES
    C_STANDARD 11
    C_VISIBILITY_PRESET hidden # with the empty TICKMAP_EMIT_API
    POSITION_INDEPENDENT_CODE ON)
  add_library(tickmap::emit ALIAS tickmap_emit)
endif()
