#include "model/load/inventory.h"

#include <doctest/doctest.h>

#include <string>

#include "support/model_path.h"

using namespace skein::model;

namespace {

Inventory inventory_of(const std::string& path) {
    const auto file = open_model_file(path);
    const ModelConfig config = file->config();
    return take_inventory(config, bind_weights(*file, config, {.convert = false}));
}

const PartSize& part(const Inventory& inventory, std::string_view name) {
    for (const PartSize& p : inventory.parts) {
        if (p.name == name) return p;
    }
    FAIL("no part " << std::string(name));
    return inventory.parts.front();
}

const std::string kFixtures = SKEIN_TEST_DATA "/fixtures/";

}  // namespace

TEST_SUITE("model/load/inventory") {
    TEST_CASE("the parts of a sparse model with experts follow from its shapes") {
        const Inventory i = inventory_of(kFixtures + "m3-tiny");
        CHECK(part(i, "embedding").parameters == 512 * 96);
        CHECK(part(i, "output head").bytes == 2 * 512 * 96);
        CHECK(part(i, "attention").parameters == 5 * (2 * 256 * 96 + 2 * 64 * 96));
        CHECK(part(i, "index branch").parameters == 3 * (64 * 96 + 32 * 96));
        CHECK(part(i, "dense MLP").parameters == 2 * 3 * 160 * 96);
        CHECK(part(i, "experts").parameters == 3 * 8 * 3 * 32 * 96);
        CHECK(part(i, "shared expert").parameters == 3 * 3 * 32 * 96);
        CHECK(part(i, "router").parameters == 3 * (8 * 96 + 8));
        CHECK(part(i, "router").bytes_by_type.at("F32") == 4 * 3 * (8 * 96 + 8));
        CHECK(i.active_parameters == i.parameters - 3 * 6 * 3 * 32 * 96);
    }

    TEST_CASE("8-bit weights count their bytes and their scales apart") {
        const Inventory i = inventory_of(kFixtures + "m3-mxfp8");
        CHECK(part(i, "experts").bytes == part(i, "experts").parameters);
        CHECK(i.parameters == inventory_of(kFixtures + "m3-tiny").parameters);
        CHECK(i.scale_bytes == 20256);
    }

    TEST_CASE("a tied head is counted once") {
        const Inventory i = inventory_of(skein::test::model_path());
        CHECK(i.parameters == 134515008);
        CHECK(i.active_parameters == i.parameters);
    }
}
