#include "harnesses/peer_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "harnesses/exit_code.h"

namespace skein::harnesses {
namespace {

std::string text_of(const boost::json::object& object, const char* key) {
    const auto* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

std::optional<double> number_of(const boost::json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value != nullptr && value->is_object()) value = value->get_object().if_contains("median");
    if (value == nullptr || !value->is_number()) return {};
    return value->to_number<double>();
}

std::set<std::string> models_of(const boost::json::array& runs) {
    std::set<std::string> models;
    for (const auto& run : runs) models.insert(text_of(run.get_object(), "model"));
    return models;
}

/// "tg64" of "tg"; not "tg_slowest_token_ms".
bool is_count_of(std::string_view key, std::string_view kind) {
    return key.size() > kind.size() && key.substr(0, kind.size()) == kind &&
           key.find_first_not_of("0123456789", kind.size()) == std::string_view::npos;
}

}  // namespace

PeerReport::PeerReport(const std::string& text) {
    boost::json::error_code bad;
    const boost::json::value report = boost::json::parse(text, bad);
    if (bad) throw UsageError("the peer's report is not JSON: " + bad.message());
    const boost::json::value* runs = &report;
    if (report.is_object()) {
        engine_ = text_of(report.get_object(), "engine");
        runs = report.get_object().if_contains("runs");
    }
    if (runs != nullptr && runs->is_array())
        for (const auto& run : runs->get_array())
            if (run.is_object()) runs_.push_back(run);
    if (runs_.empty()) throw UsageError("the peer's report has no \"runs\"");
}

PeerReport PeerReport::read(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) throw UsageError("cannot read " + file.string());
    return PeerReport(std::string{std::istreambuf_iterator<char>(stream), {}});
}

void PeerReport::choose_model(const std::string& name) {
    const std::set<std::string> models = models_of(runs_);
    if (!models.contains(name))
        throw UsageError(fmt::format("the peer's report has no model '{}'; it has: {}", name,
                                     fmt::join(models, ", ")));
    model_ = name;
}

void PeerReport::choose_model_of(const std::filesystem::path& file) {
    const std::set<std::string> models = models_of(runs_);
    if (models.size() > 1 || models.contains(file.filename().string()))
        choose_model(file.filename().string());
}

bool PeerReport::chosen(const boost::json::object& run) const {
    return model_.empty() || text_of(run, "model") == model_;
}

std::optional<double> PeerReport::figure(const std::string& kind, int n, int depth,
                                         int threads) const {
    std::optional<double> found;
    for (const auto& value : runs_) {
        const boost::json::object& run = value.get_object();
        if (!chosen(run) || number_of(run, "depth") != depth) continue;
        if (number_of(run, "threads").value_or(threads) != threads) continue;
        if (const auto exact = number_of(run, kind + std::to_string(n))) return exact;
        if (kind != "tg") continue;
        for (const auto& member : run)
            if (is_count_of(member.key(), kind)) found = number_of(run, member.key());
    }
    return found;
}

}  // namespace skein::harnesses
