#include "agent/llm/local_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "agent/chat/chat_format.h"
#include "model/sampling/token_mask.h"

namespace skein::agent {

namespace asio = boost::asio;

namespace {

/// One request on its way through the inference thread.
struct Job {
    CompletionRequest request;
    Completion result;
    std::atomic<bool> cancelled = false;
    std::function<void()> deliver;  ///< hands the result over to the caller's executor
};

struct StopWhenCancelled final : model::PrefillProgress {
    explicit StopWhenCancelled(const std::atomic<bool>& flag) : cancelled(flag) {}
    bool on_progress(int, int) override { return !cancelled; }
    const std::atomic<bool>& cancelled;
};

/// Counts the tokens of a reply's thinking part.
class ThinkingMeter {
  public:
    explicit ThinkingMeter(const std::optional<ThinkingLimit>& limit)
        : limit_(limit), inside_(limit && limit->opened) {}

    void observe(Token token) {
        if (!limit_) return;
        if (inside_) ++used_;
        if (token == limit_->tags.open) inside_ = true;
        if (token == limit_->tags.close) inside_ = false;
    }
    /// The token that has to end the thinking part now.
    std::optional<Token> due() const {
        if (!inside_ || used_ < limit_->max_tokens) return std::nullopt;
        return limit_->tags.close;
    }

  private:
    const std::optional<ThinkingLimit>& limit_;
    bool inside_;
    int used_ = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

struct LocalModel::Impl {
    std::shared_ptr<const model::Engine> engine;
    LocalModelOptions options;
    model::Session session;
    std::shared_ptr<const model::TokenIndex> index;  // made by the first request with a grammar

    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::shared_ptr<Job>> waiting;
    std::shared_ptr<Job> running;
    bool stopping = false;
    std::thread thread;

    Impl(std::shared_ptr<const model::Engine> engine_in, LocalModelOptions options_in)
        : engine(std::move(engine_in)), options(std::move(options_in)),
          session(engine->new_session({.max_context = options.max_context})),
          thread([this] { work(); }) {}

    ~Impl() {
        {
            const std::scoped_lock lock(mutex);
            stopping = true;
            if (running) running->cancelled = true;
            for (const auto& job : waiting) job->cancelled = true;
        }
        wake.notify_one();
        thread.join();
    }

    void enqueue(std::shared_ptr<Job> job) {
        {
            const std::scoped_lock lock(mutex);
            waiting.push_back(std::move(job));
        }
        wake.notify_one();
    }

    void work() {
        std::unique_lock lock(mutex);
        while (true) {
            wake.wait(lock, [this] { return stopping || !waiting.empty(); });
            if (waiting.empty()) return;
            running = std::move(waiting.front());
            waiting.pop_front();
            const std::shared_ptr<Job> job = running;
            lock.unlock();
            run(*job);
            job->deliver();
            lock.lock();
            running.reset();
        }
    }

    void run(Job& job) {
        job.result.rng_position = job.request.prompt.size();
        try {
            generate(job);
        } catch (const std::exception& error) {
            job.result.finish = FinishReason::error;
            job.result.error = error.what();
        }
    }

    void generate(Job& job) {
        const CompletionRequest& request = job.request;
        Completion& out = job.result;
        if (request.prompt.empty()) throw model::Error("completion: the prompt is empty");
        const auto began = std::chrono::steady_clock::now();
        StopWhenCancelled progress(job.cancelled);
        const model::SyncReport report = session.sync(request.prompt, &progress);
        out.reused_tokens = report.reused;
        out.evaluated_tokens = report.evaluated;
        out.prefill_seconds = seconds_since(began);

        const auto decoding = std::chrono::steady_clock::now();
        std::optional<model::ConstrainedDecoder> grammar;
        if (request.grammar) {
            if (!index) index = std::make_shared<const model::TokenIndex>(engine->tokenizer());
            grammar.emplace(index, request.grammar);
        }
        const int room = std::min(request.max_tokens, session.max_context() - session.size());
        ThinkingMeter thinking(request.thinking);
        const auto full = [&] { return static_cast<int>(out.tokens.size()) >= room; };
        out.finish = FinishReason::length;
        bool ended = false;
        while (!ended && !full()) {
            if (job.cancelled) {
                out.finish = FinishReason::cancelled;
                break;
            }
            for (const Choice& next : choose(request, grammar, thinking, out)) {
                if (full() || ended) break;
                if (grammar) grammar->advance(next.token);
                thinking.observe(next.token);
                out.tokens.push_back(next.token);
                out.logprobs.push_back(next.logprob);
                out.origins.push_back(next.origin);
                if (request.on_token) request.on_token(next.token);
                ended = std::ranges::find(request.stop_tokens, next.token) !=
                        request.stop_tokens.end();
                if (ended) out.finish = FinishReason::stop;
                if (!ended && grammar && grammar->done()) {
                    out.finish = FinishReason::grammar_complete;
                    ended = true;
                }
            }
        }
        out.decode_seconds = seconds_since(decoding);
    }

    struct Choice {
        Token token = 0;
        float logprob = std::numeric_limits<float>::quiet_NaN();
        Origin origin = Origin::forced;
    };

    /// What comes next: all tokens that leave no choice, or else one that is drawn. Only a draw
    /// needs logits, so the tokens before it are evaluated here, a whole forced stretch in one
    /// pass, and the last ones of a reply never are.
    std::vector<Choice> choose(const CompletionRequest& request,
                               std::optional<model::ConstrainedDecoder>& grammar,
                               const ThinkingMeter& thinking, Completion& out) {
        std::vector<Choice> forced;
        if (const auto close = thinking.due(); close && (!grammar || grammar->allows(*close))) {
            return {Choice{*close}};
        }
        if (grammar) {
            for (const Token token : grammar->forced()) forced.push_back({token});
            if (!forced.empty()) return forced;
        }
        const model::Logits logits = logits_after(request.prompt, out);
        const std::uint64_t position = out.rng_position + out.tokens.size();
        const model::Sampled next =
            grammar ? model::sample_among(logits, request.sampling, position, grammar->allowed())
                    : model::sample(logits, request.sampling, position);
        return {Choice{next.token, next.logprob, Origin::sampled}};
    }

    model::Logits logits_after(std::span<const Token> prompt, Completion& out) {
        const std::size_t known = static_cast<std::size_t>(session.size()) - prompt.size();
        if (out.tokens.size() == known + 1) {
            session.decode(out.tokens.back());
            ++out.evaluated_tokens;
        } else if (out.tokens.size() > known) {
            Tokens all(prompt.begin(), prompt.end());
            all.insert(all.end(), out.tokens.begin(), out.tokens.end());
            out.evaluated_tokens += session.sync(all).evaluated;
        }
        return session.logits();
    }
};

LocalModel::LocalModel(std::shared_ptr<const model::Engine> engine, LocalModelOptions options)
    : impl_(std::make_unique<Impl>(std::move(engine), std::move(options))) {}

LocalModel::~LocalModel() = default;

const model::Tokenizer& LocalModel::tokenizer() const { return impl_->engine->tokenizer(); }
int LocalModel::max_context() const { return impl_->session.max_context(); }

std::string LocalModel::description() const {
    const model::Engine& engine = *impl_->engine;
    return fmt::format("{}; {}; numerics {}; tokenizer {:016x}",
                       engine.config().name.empty() ? engine.config().architecture
                                                    : engine.config().name,
                       engine.path().string(), engine.numerics_version(),
                       engine.tokenizer().fingerprint());
}

std::string LocalModel::chat_format() const {
    if (!impl_->options.chat_format.empty()) return impl_->options.chat_format;
    const std::string& text = impl_->engine->chat_template();
    if (auto name = recognise_chat_template(text)) return *name;
    if (impl_->engine->config().architecture == "minimax-m3") return "minimax-m3";
    throw model::Error(fmt::format(
        "{}: {}; name the chat format it was trained with, e.g. chatml",
        impl_->engine->path().string(),
        text.empty() ? "the file holds no chat template"
                     : fmt::format("its chat template ({} bytes) is unknown", text.size())));
}

asio::awaitable<Completion> LocalModel::complete(CompletionRequest request) {
    auto job = std::make_shared<Job>();
    job->request = std::move(request);
    auto start = [this, job](auto handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            slot.assign([job](asio::cancellation_type) { job->cancelled = true; });
        }
        // The guard keeps the caller's context running while the work is elsewhere.
        auto executor = asio::get_associated_executor(handler);
        auto guard = std::make_shared<asio::executor_work_guard<decltype(executor)>>(executor);
        auto resume = std::make_shared<decltype(handler)>(std::move(handler));
        job->deliver = [executor, guard, resume, slot]() mutable {
            auto finish = [resume = std::move(resume), guard = std::move(guard), slot]() mutable {
                if (slot.is_connected()) slot.clear();
                std::move (*resume)();
            };
            asio::post(executor, std::move(finish));
        };
        impl_->enqueue(job);
    };
    auto waiting = asio::async_initiate<const asio::use_awaitable_t<>, void()>(
        std::move(start), asio::use_awaitable);
    co_await std::move(waiting);
    co_return std::move(job->result);
}

}  // namespace skein::agent
