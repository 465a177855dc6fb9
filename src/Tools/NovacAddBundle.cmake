# novac_add_bundle(NAME GRAPH FILE [TARGETS T...] [OPTIONS FLAG...] [OUTPUT FOLDER])
#
# A target NAME, part of `all`, that compiles the graph into the bundle
# NAME.nova in the current binary folder, or FOLDER. It depends on the graph, on
# novac itself, and on every file that novac says it has read; a bundle that comes
# out the same keeps its time stamp, and what depends on it is not built again.
# The target's property NOVAC_BUNDLE is the bundle's folder,
# NOVAC_MANIFEST the file to depend on.
function(novac_add_bundle name)
  cmake_parse_arguments(PARSE_ARGV 1 bundle "" "GRAPH;OUTPUT" "TARGETS;OPTIONS")
  if(NOT bundle_GRAPH)
    message(FATAL_ERROR "novac_add_bundle(${name}): GRAPH is missing")
  endif()
  if(bundle_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "novac_add_bundle(${name}): got '${bundle_UNPARSED_ARGUMENTS}', "
                        "expected GRAPH, TARGETS, OPTIONS or OUTPUT")
  endif()
  get_filename_component(graph "${bundle_GRAPH}" ABSOLUTE)
  if(NOT bundle_OUTPUT)
    set(bundle_OUTPUT "${name}.nova")
  endif()
  get_filename_component(folder "${bundle_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  set(flags ${bundle_OPTIONS})
  if(bundle_TARGETS)
    list(JOIN bundle_TARGETS "," targets)
    list(APPEND flags --target ${targets})
  endif()
  # Ninja and make read what was read; other generators know the graph only.
  set(depfile "${CMAKE_CURRENT_BINARY_DIR}/${name}.novac.d")
  set(dependencies)
  if(CMAKE_GENERATOR MATCHES "Ninja|Makefiles")
    cmake_policy(SET CMP0116 NEW)
    set(dependencies DEPFILE "${depfile}")
  endif()
  add_custom_command(
    OUTPUT "${folder}/manifest.json"
    COMMAND novac::novac compile "${graph}" -o "${folder}" --depfile "${depfile}" ${flags}
    DEPENDS "${graph}" novac::novac
    ${dependencies}
    COMMENT "Compiling ${name} with novac"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${folder}/manifest.json")
  set_target_properties(${name} PROPERTIES
    NOVAC_BUNDLE "${folder}" NOVAC_MANIFEST "${folder}/manifest.json")
endfunction()
