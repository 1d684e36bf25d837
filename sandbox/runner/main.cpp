#include <string.h>
#include <unistd.h>

#include "sandbox/runner/parts.h"

int main(int argc, char** argv) {
    using namespace skein::sandbox::runner;
    const char* mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "run") == 0) return run_outside();
    if (strcmp(mode, "init") == 0) return run_init(argc, argv);
    if (strcmp(mode, "probe") == 0) return run_probe(argc, argv);
    static const char text[] =
        "skein-sandbox-runner is started by skein itself: it supervises one sandboxed command.\n";
    [[maybe_unused]] const ssize_t written = write(2, text, sizeof text - 1);
    return 2;
}
