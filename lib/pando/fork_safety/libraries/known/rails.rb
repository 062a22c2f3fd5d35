# frozen_string_literal: true

# Rails, and what a default Rails app loads.
Pando::ForkSafety::Libraries::Known.define do
  describe "activerecord", constant: "ActiveRecord::Base", tested: true do
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

  describe "bootsnap", constant: "Bootsnap", tested: true do
    fine note: "Once loaded it has no thread and no file open.",
         source: "https://github.com/Shopify/bootsnap/tree/v1.18.6/lib/bootsnap"
  end

  describe "mini_mime", constant: "MiniMime::Db", tested: true do
    fine since: "1.1.3",
         note: "It reads without moving the position in its file, which parent and child share.",
         source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
    refused before: "1.1.3",
            note: "Parent and child share the position in its file: a look-up may find another type.",
            advice: "update mini_mime to 1.1.3",
            source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
  end

  describe "nokogiri", constant: "Nokogiri::XML::Document", tested: true do
    fine note: "It starts no threads. What libxml2 fetches for a document, which it does not by default, it fetches " \
               "while it parses.",
         source: "https://github.com/sparklemotion/nokogiri/blob/v1.18.10/lib/nokogiri/xml/parse_options.rb (NONET), " \
                 "nm -D of 1.18.10 and 1.19.7"
  end

  describe "listen", constant: "Listen::Listener", tested: true do
    refused used: -> { false },
            note: "A child lacks its threads, and hears of no change.",
            advice: "listen in no production environment, or with after_worker_fork { Listen.to(…) { … }.start } and " \
                    "before_fork { Listen.stop }",
            source: "https://github.com/guard/listen#issues--limitations"
  end
end
