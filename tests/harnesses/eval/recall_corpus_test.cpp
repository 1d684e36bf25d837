#include "harnesses/eval/recall_corpus.h"

#include <doctest/doctest.h>

#include <set>

#include "harnesses/exit_code.h"
#include "model/load/model_file.h"

using namespace skein;
using namespace skein::harnesses;

namespace {

struct StandardSet {
    int tokens;
    std::uint64_t seed;
    int records;
    const char* digest;
};

// Made by an independent generator; see tests/data/fixtures/m3-recall/README.md.
constexpr StandardSet kSets[] = {
    {4096, 1, 241, "044adfe5c0944080eb4ad3226824b83e29b5f963470a678f71b71925f88a8bd2"},
    {4096, 2, 230, "f9375d1bb5bfa721a18035ab1d38a1713378d2331acad7bcc3f25e22b522ebe2"},
    {4096, 3, 246, "ee201a108b5500f6e5e4e6c4f781b74a47794508d4837500411858a0512a21ad"},
    {32768, 1, 2051, "f64ad669b2ab61db74386a2272497018cfbbe908407388e0e941dae8096bb911"},
    {32768, 2, 2048, "425a40c9c5a7ca3ca93b9ad7f013ae6c2e7452cdca5e5a7d200b8f787e589b77"},
    {32768, 3, 2051, "d7aeed5d17744917e110dd015e99edf2fa491886aced0cf9145ef755b3d0cc0c"},
    {131072, 1, 8254, "8549d5b776d579a71f92a9725edfe672a4a3af66867b25e9f446a0fd6142ed04"},
    {131072, 2, 8145, "dbaed22a036cd58489dae7d6e964a39e4d3ce23e00570d6d65f2066f6bf09e9f"},
    {131072, 3, 8240, "a5bbf5b11bd919cf43227e9c65db8bf507457659679b067cdcedbcd9f7990772"},
    {1048576, 1, 65972, "b32b3e907dcfd1cc710c0cdcd7b13cb4abff682f283ae709b89316b179fca222"},
    {1048576, 2, 65237, "9daba2ee3bca4d4984796fb3b2c9036442f6ed444d2f96452dab464983d0b285"},
    {1048576, 3, 65702, "9be1e7d8abbc9381392e883752ccde431abd17dd8c0a56073f83e94eb6ced908"},
};

model::Tokenizer fixture_tokenizer() {
    return model::Tokenizer(
        model::open_model_file(std::string(SKEIN_TEST_DATA) + "/fixtures/m3-recall/model-bf16.gguf")
            ->vocabulary());
}

}  // namespace

TEST_SUITE("harnesses/eval/recall_corpus") {
    TEST_CASE("recall corpus: all standard sets are token for token those of the first generator") {
        for (const StandardSet& set : kSets) {
            CAPTURE(set.tokens);
            CAPTURE(set.seed);
            const RecallCorpus corpus = make_recall_corpus(set.tokens, 64, set.seed);
            CHECK(corpus.n_records == set.records);
            CHECK(corpus.context.size() == static_cast<std::size_t>(set.tokens - 64 * 8));
            CHECK(corpus.digest() == set.digest);
        }
    }

    TEST_CASE("recall corpus: reads as text, and the model's tokenizer gives the same tokens") {
        const model::Tokenizer tokenizer = fixture_tokenizer();
        CHECK_NOTHROW(check_recall_vocabulary(tokenizer));
        const RecallCorpus corpus = make_recall_corpus(2048, 16, 7);
        const std::string text = tokenizer.decode(corpus.context);
        CHECK(tokenizer.encode(text) == corpus.context);
        for (const RecallQuestion& question : corpus.questions) {
            const std::string asked = tokenizer.decode(question.prompt);
            CHECK(asked.starts_with("GET "));
            const std::string record =
                "SET" + asked.substr(3) + tokenizer.decode(question.answer) + "\n";
            CHECK(text.find(record) != std::string::npos);
            CHECK(text.find(record) == text.rfind("SET" + asked.substr(3)));  // keys are unique
        }
    }

    TEST_CASE("recall corpus: asks for the first and the last record, each once") {
        const RecallCorpus corpus = make_recall_corpus(8192, 32, 5);
        std::set<int> records;
        for (const RecallQuestion& question : corpus.questions) {
            records.insert(question.record);
            const auto at = static_cast<std::size_t>(question.record);
            CHECK(corpus.context[at + 1] == question.prompt[1]);
            for (int i = 0; i < 2; ++i)
                CHECK(corpus.context[static_cast<std::size_t>(question.value_position(i))] ==
                      question.answer[static_cast<std::size_t>(i)]);
        }
        CHECK(records.size() == 32);
        CHECK(*records.begin() < 200);
        CHECK(*records.rbegin() > 8192 - 32 * 8 - 200);
    }

    TEST_CASE("recall corpus: refuses lengths and counts that cannot hold a question") {
        for (const auto& [tokens, questions] : {std::pair{4096, 0},
                                                {4096, -1},
                                                {4096, 505},
                                                {64, 1},
                                                {-1, 1},
                                                {kMostRecallTokens + 1, 1}}) {
            CAPTURE(tokens);
            CAPTURE(questions);
            CHECK_THROWS_AS(make_recall_corpus(tokens, questions, 1), UsageError);
        }
        CHECK_NOTHROW(make_recall_corpus(4096, 504, 1));
        CHECK_NOTHROW(make_recall_corpus(72, 1, 3));
    }

    TEST_CASE("recall corpus: refuses a model with other words and says which") {
        const auto file = model::open_model_file(std::string(SKEIN_TEST_DATA) +
                                                 "/fixtures/m3-recall/model-bf16.gguf");
        model::Vocabulary words = file->vocabulary();
        std::swap(words.texts[309], words.texts[310]);
        CHECK_THROWS_WITH_AS(check_recall_vocabulary(model::Tokenizer(words)),
                             "this model was not trained for the recall task: its token 309 is "
                             "'GET', expected 'SET'",
                             UsageError);
        words = file->vocabulary();
        words.texts.push_back(" more");
        words.types.push_back(model::TokenType::normal);
        CHECK_THROWS_AS(check_recall_vocabulary(model::Tokenizer(words)), UsageError);
    }
}
