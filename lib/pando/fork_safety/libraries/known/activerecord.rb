# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "activerecord" do
  fine since: "7.0.0",
       note: "A child discards its parent's connections without a word to the server, and makes its own.",
       source: "https://github.com/rails/rails/blob/v7.0.0/activesupport/lib/active_support/fork_tracker.rb"
  handled before: "7.0.0",
          note: "It does not notice a fork through Process._fork. Its connections are closed before the fork.",
          source: "https://github.com/rails/rails/commit/fe4ead7fc62"
  before_fork { Pando::ForkSafety::Libraries::ActiveRecordPools.disconnect }
  # The reaper: a pool that a child makes has it watched by a thread of that child.
  revives_threads at: %r{/active_record/connection_adapters/abstract/connection_pool/reaper\.rb:\d+\z}
end
