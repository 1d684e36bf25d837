#include "harnesses/cli.h"

int main(int argc, char** argv) {
    return skein::harnesses::run_cli(argc, argv);
}
