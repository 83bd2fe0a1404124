// Traces that no program made: steps of two streams with every outcome of an op.
#ifndef CUSPLICE_TESTS_HTML_SYNTHETIC_H
#define CUSPLICE_TESTS_HTML_SYNTHETIC_H

#include <string>
#include <vector>

// Names that would do harm if they got into a page as they are.
inline const std::vector<std::string> &HostileNames() {
    static const std::vector<std::string> names = {
        "</script><script>document.body.dataset.harm='script'</script>",
        "<img src=x onerror=\"document.body.dataset.harm='image'\">",
        "<!--<script>",
        "]]>&lt;&amp;\"'`${1}",
        "@data@ @js@ </style>",
        "__proto__",
        "line\xe2\x80\xa8"
        "separator",
        "byte\xff",
    };
    return names;
}

struct SyntheticCounts {
    unsigned long ops, in_graphs, eager, flushed, graph_launches, steps;
};

// Writes a trace at `path` in which each stream has `steps` steps of 16 ops: 4 in each of three
// graphs (as it was, patched, built), 2 eager by a rule, 2 flushed. One op at the end stays
// deferred. Of ops of stream 1 it is known when they ran on the GPU. Kernels are those of `names`;
// without any, and with 0 steps, there are no ops.
SyntheticCounts WriteSynthetic(const std::string &path, unsigned steps,
                               const std::vector<std::string> &names);

#endif
