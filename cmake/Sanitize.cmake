# TALLY_SANITIZE=address,undefined (or thread): instruments everything that runs outside the target. The library inside
# the target stays as it is: sanitizers bring an allocator of their own, and Tally refuses programs built with one.
set(TALLY_SANITIZE "" CACHE STRING "Sanitizers for everything outside the target, as -fsanitize= takes them")
if(TALLY_SANITIZE)
  set(outside $<NOT:$<IN_LIST:$<TARGET_PROPERTY:NAME>,tally_inside$<SEMICOLON>tally>>)
  add_compile_options($<${outside}:-fsanitize=${TALLY_SANITIZE}> $<${outside}:-fno-sanitize-recover=all>
    $<${outside}:-fno-omit-frame-pointer>)
  add_link_options($<${outside}:-fsanitize=${TALLY_SANITIZE}>)
endif()
