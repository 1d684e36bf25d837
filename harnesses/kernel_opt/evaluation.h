#pragma once
// One graded candidate, and the journal that makes a killed run continue where it stopped.
//
// Every verdict is stored as an `evaluation` event before anything depends on it. A resumed run
// does the same proposals again (they depend only on the seed and on earlier verdicts) and finds
// its verdicts in the journal, until it reaches the first candidate that was never graded.

#include <boost/json/object.hpp>
#include <map>
#include <string>
#include <vector>

#include "agent/store/reader.h"
#include "agent/store/writer.h"
#include "harnesses/kernel_opt/grader.h"
#include "harnesses/kernel_opt/move_space.h"

namespace skein::harnesses {

/// `main` is what the proposer under test and the search found, `random` the control at equal
/// budget, `flags` the anchor's source with other compiler flags, `final` the re-timed finalists.
enum class Arm { main, random, flags, final };
std::string_view to_string(Arm arm);

struct Evaluation {
    std::string task;
    Arm arm = Arm::main;
    int index = 0;                ///< within task and arm, from 0
    std::string proposer;         ///< "model", "search", "random", "flags", "edit", "scripted"
    Configuration configuration;  ///< empty when the source was written by hand or by a model
    std::vector<std::string> flags;
    std::string source_hash;  ///< blob of the store
    Stage stage = Stage::time;
    Verdict verdict;
};

boost::json::object to_json(const Evaluation& evaluation);
Evaluation evaluation_from_json(const boost::json::object& json);

class Journal {
  public:
    /// `recorded` are the `evaluation` events of the run so far. Lifetime: writer must outlive
    /// this.
    Journal(agent::store::Writer& writer, const std::vector<agent::store::StoredEvent>& recorded);

    /// The stored verdict of this candidate in this arm and stage, taken out of the journal; or
    /// null.
    const Verdict* recall(const Evaluation& key);
    /// Stores the evaluation with its source and its rewards, and waits until it is committed.
    /// Returns it as a later process will read it, so that both decide alike to the last bit.
    Evaluation record(Evaluation evaluation, std::string_view source, const agent::Uid& episode);
    /// Whether verdicts of this task are still waiting to be recalled.
    bool has_recorded(std::string_view task) const;

  private:
    agent::store::Writer* writer_;
    std::map<std::string, std::vector<Verdict>> recorded_;
    Verdict recalled_;
};

}  // namespace skein::harnesses
