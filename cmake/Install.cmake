# What `cmake --install` puts where, and how other projects find it: tally.pc and find_package(tally).
#
# References to libtally are weak (a tagged program runs without it), so the linker must be told to keep the library
# although nothing seems to need it: --no-as-needed around it, in tally.pc and in the target tally::tally alike.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tally)
configure_package_config_file(cmake/tallyConfig.cmake.in ${PROJECT_BINARY_DIR}/tallyConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tallyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tallyConfig.cmake ${PROJECT_BINARY_DIR}/tallyConfigVersion.cmake
  DESTINATION ${package_dir})

# Relative to where tally.pc lies, so that it holds wherever the tree is installed or moved to.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
configure_file(cmake/tally.pc.in ${PROJECT_BINARY_DIR}/tally.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tally.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY include/tally DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET tally)
  install(TARGETS tally LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET tally_cli)
  install(TARGETS tally_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/completions/tally.bash)
  install(FILES completions/tally.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tally)
endif()
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
