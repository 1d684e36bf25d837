#include "harnesses/kernel_opt/evaluation.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include "agent/store/codec.h"

namespace skein::harnesses {
namespace {

constexpr std::string_view kVerifier = "kernel-grader/1";

std::string_view stage_name(Stage stage) {
    switch (stage) {
        case Stage::compile:
            return "compile";
        case Stage::small:
            return "small";
        case Stage::full:
            return "full";
        case Stage::time:
            return "time";
        case Stage::final:
            return "final";
    }
    return "time";
}

template <class Enum, class Name>
Enum parse_enum(std::string_view text, Enum last, Name name) {
    for (int i = 0; i <= static_cast<int>(last); ++i) {
        if (name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
    }
    throw agent::store::Error("store: unknown value '" + std::string(text) + "' in an evaluation");
}

std::string key_of(const Evaluation& e) {
    std::string key = e.task + '|' + std::string(to_string(e.arm)) + '|' +
                      std::string(stage_name(e.stage)) + '|' + e.source_hash;
    for (const std::string& flag : e.flags) key += '|' + flag;
    return key;
}

}  // namespace

std::string_view to_string(Arm arm) {
    switch (arm) {
        case Arm::main:
            return "main";
        case Arm::random:
            return "random";
        case Arm::flags:
            return "flags";
        case Arm::final:
            return "final";
    }
    return "main";
}

boost::json::object to_json(const Evaluation& e) {
    return {{"task", e.task},
            {"arm", to_string(e.arm)},
            {"index", e.index},
            {"proposer", e.proposer},
            {"configuration", boost::json::value_from(e.configuration)},
            {"flags", boost::json::value_from(e.flags)},
            {"source", e.source_hash},
            {"stage", stage_name(e.stage)},
            {"verdict", to_json(e.verdict, true)}};
}

Evaluation evaluation_from_json(const boost::json::object& json) {
    Evaluation e;
    e.task = json.at("task").as_string();
    e.arm = parse_enum(json.at("arm").as_string(), Arm::final, [](Arm a) { return to_string(a); });
    e.index = json.at("index").to_number<int>();
    e.proposer = json.at("proposer").as_string();
    e.configuration = boost::json::value_to<Configuration>(json.at("configuration"));
    e.flags = boost::json::value_to<std::vector<std::string>>(json.at("flags"));
    e.source_hash = json.at("source").as_string();
    e.stage = parse_enum(json.at("stage").as_string(), Stage::final, stage_name);
    e.verdict = verdict_from_json(json.at("verdict").as_object());
    return e;
}

Journal::Journal(agent::store::Writer& writer,
                 const std::vector<agent::store::StoredEvent>& recorded)
    : writer_(&writer) {
    for (const auto& event : recorded) {
        if (event.kind != "evaluation") continue;
        const boost::json::value json = boost::json::parse(event.json);
        const Evaluation e = evaluation_from_json(json.as_object());
        recorded_[key_of(e)].push_back(e.verdict);
    }
}

const Verdict* Journal::recall(const Evaluation& key) {
    const auto found = recorded_.find(key_of(key));
    if (found == recorded_.end() || found->second.empty()) return nullptr;
    recalled_ = std::move(found->second.front());
    found->second.erase(found->second.begin());
    return &recalled_;
}

bool Journal::has_recorded(std::string_view task) const {
    const std::string prefix = std::string(task) + '|';
    for (auto it = recorded_.lower_bound(prefix);
         it != recorded_.end() && it->first.starts_with(prefix); ++it) {
        if (!it->second.empty()) return true;
    }
    return false;
}

Evaluation Journal::record(Evaluation evaluation, std::string_view source,
                           const agent::Uid& episode) {
    writer_->put_blob(source);
    const std::string text = boost::json::serialize(to_json(evaluation));
    writer_->record_event(std::nullopt, "evaluation", text);
    const Verdict& verdict = evaluation.verdict;
    writer_->record_reward({"evaluation", episode, std::string(to_string(evaluation.arm)),
                            verdict.timed() ? verdict.speedup : 0.0, std::string(kVerifier),
                            boost::json::serialize(to_json(verdict, false))});
    writer_->flush();
    const boost::json::value parsed = boost::json::parse(text);
    return evaluation_from_json(parsed.as_object());
}

}  // namespace skein::harnesses
