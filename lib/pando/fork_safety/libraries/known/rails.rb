# frozen_string_literal: true

# Rails, and libraries that a default Rails app loads.
Pando::ForkSafety::Libraries::Known.define do
  describe "activerecord", constant: "ActiveRecord::Base", tested: true do
    fine since: "7.0.0",
         note: "A child discards its parent's connections without telling the server, and opens its own.",
         source: "https://github.com/rails/rails/blob/v7.0.0/activesupport/lib/active_support/fork_tracker.rb"
    handled before: "7.0.0",
            note: "It does not notice a fork through Process._fork. Pando closes its connections before the fork.",
            source: "https://github.com/rails/rails/commit/fe4ead7fc62"
    before_fork { Pando::ForkSafety::Libraries::ActiveRecordPools.disconnect }
    # The reaper: a pool that a child makes gets a reaper thread in that child.
    revives_threads at: %r{/active_record/connection_adapters/abstract/connection_pool/reaper\.rb:\d+\z}
  end

  describe "bootsnap", constant: "Bootsnap", tested: true do
    fine note: "Once loaded, it has no thread and no open file.",
         source: "https://github.com/Shopify/bootsnap/tree/v1.18.6/lib/bootsnap"
  end

  describe "mini_mime", constant: "MiniMime::Db", tested: true do
    fine since: "1.1.3",
         note: "It reads its file without moving the position that parent and child share.",
         source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
    refused before: "1.1.3",
            note: "Parent and child share the position in its file, so a lookup may find another type.",
            advice: "Update mini_mime to 1.1.3.",
            source: "https://github.com/discourse/mini_mime/blob/v1.1.5/CHANGELOG"
  end

  describe "nokogiri", constant: "Nokogiri::XML::Document", tested: true do
    fine note: "It starts no threads. libxml2 fetches external resources only while it parses, and by default not at " \
               "all.",
         source: "https://github.com/sparklemotion/nokogiri/blob/v1.18.10/lib/nokogiri/xml/parse_options.rb (NONET), " \
                 "nm -D of 1.18.10 and 1.19.7"
  end

  describe "listen", constant: "Listen::Listener", tested: true do
    refused used: -> { false },
            note: "A child lacks its threads, so it notices no change.",
            advice: "Do not listen in production, or start with after_worker_fork { Listen.to(…) { … }.start } and " \
                    "stop with before_fork { Listen.stop }.",
            source: "https://github.com/guard/listen#issues--limitations"
  end
end
