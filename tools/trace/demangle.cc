// The one thing for which the C++ runtime is asked.
#include <cxxabi.h>

#include "tools/trace/names.h"

char *names_demangle(const char *mangled) {
    // Without "_Z" a name is taken for a type: "f" would be "float".
    return mangled[0] == '_' && mangled[1] == 'Z'
               ? abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr)
               : nullptr;
}
