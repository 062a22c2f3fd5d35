# frozen_string_literal: true

require "support/admin/section"
require "support/perf"
require "support/statistics"
require "support/wrk"

module Bench
  module Admin
    # What scrapes and an access log add to the CPU time of hello world's requests: the share of perf's samples that
    # fall into the code of the log, its thread, the admin process and the monitor. Servers side by side differ by more
    # than that on a shared machine; the parts of one run do not.
    class Cost < Section
      LOG = "access.log"
      CASES = { metrics: "metrics", combined: "metrics and access log, combined",
                common: "metrics and access log, common", json: "metrics and access log, JSON" }.freeze
      WARM_UP = 3 # seconds
      MOST = 0.04
      SCRAPED_EACH = 5 # seconds
      WRITER = "pando log"
      FUNCTIONS = /\Apando_(?:access_log|log_writer|line)_/
      REACTOR = "pando reactor"
      COPIES = /\A__mem(?:move|cpy)/

      def call
        @samples = CASES.transform_values { [] }
        @options.rounds.times do |round|
          CASES.each_key do |name|
            progress("round #{round + 1}, #{CASES[name]}")
            @samples[name] << measure(name)
          end
        end
        self
      end

      def targets
        CASES.to_h do |name, label|
          ["#{label} add #{percent(added(name))} to the CPU time of hello world, at most #{percent(MOST)}",
           added(name) <= MOST]
        end
      end

      def to_h = { added: @samples, targets: targets }

      private

      # @return [Float] by what part of the rest it makes the requests dearer
      def measure(name)
        serve("hello.ru", config(name), workers: 1, cores: @options.cores.first) do |server|
          load(server, WARM_UP)
          load = Thread.new { load(server, @options.seconds + 1) }
          scraper = scraper()
          watchers = [MONITOR, ADMIN].flat_map { |title| server.pids_of(title) }
          share = share(Perf.new.run(server.pids, seconds: @options.seconds), watchers)
          load.join
          share / (1 - share)
        ensure
          scraper&.kill
        end
      end

      def config(name) = "#{admin}#{"access_log \"#{LOG}\", :#{name}\n" unless name == :metrics}"

      # The reactor copies little beside the log, so its copies count as the log's.
      def share(rows, watchers)
        rows.sum do |row|
          logs = row.function.match?(FUNCTIONS) || (row.thread == REACTOR && row.function.match?(COPIES))
          logs || row.thread == WRITER || watchers.include?(row.pid) ? row.share : 0.0
        end
      end

      def scraper
        Thread.new do
          connected do |connection|
            loop do
              get("/metrics", connection)
              sleep SCRAPED_EACH
            end
          end
        end
      end

      def load(server, seconds)
        Wrk.new(connections: @options.connections, cores: @options.cores.last).run(server.port, seconds: seconds)
      end

      def added(name) = Statistics.median(@samples[name])
      def percent(share) = format("%.1f%%", share * 100)
      def title = "what watching adds to the CPU time of hello world, #{@options.connections} connections"
      def head = ["", "median", "in each round"]

      def rows
        CASES.map { |name, label| [label, percent(added(name)), @samples[name].map { |one| percent(one) }.join(" ")] }
      end
    end
  end
end
