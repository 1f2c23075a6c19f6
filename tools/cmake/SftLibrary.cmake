# sft_library(NAME SOURCES... [DEPS targets...]): one static library a folder. The folder's .cpp files must all be named,
# so that a forgotten file stops the configure instead of going missing from the build.
function(sft_check_sources)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  file(GLOB on_disk RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cpp)
  foreach(source IN LISTS on_disk)
    if(NOT source IN_LIST ARG_SOURCES)
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${source} is on disk but in no CMakeLists.txt")
    endif()
  endforeach()
endfunction()

function(sft_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  sft_check_sources(SOURCES ${ARG_SOURCES})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()
