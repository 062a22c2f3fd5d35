# frozen_string_literal: true

require "support/admin/section"
require "support/statistics"
require "support/wrk"

module Bench
  module Admin
    # The CPU time of hello world's requests on servers side by side: one that nobody watches, one that is scraped, and
    # those that write an access log as well. Loaded in turn, in another order each round.
    class Cost < Section
      LOG = "access.log"
      CASES = { plain: "not watched", metrics: "metrics", combined: "metrics and access log, combined",
                common: "metrics and access log, common", json: "metrics and access log, JSON" }.freeze
      WARM_UP = 3 # seconds
      MOST = 1.04
      SCRAPED_EACH = 5 # seconds

      def call
        @samples = CASES.transform_values { [] }
        with_all(CASES.keys) do |servers|
          servers.each_value { |server, _| load(server, WARM_UP) }
          @options.rounds.times { |round| ask(servers, round) }
        end
        self
      end

      def targets
        CASES.keys.drop(1).to_h do |name|
          ["#{CASES[name]}: #{ratio(name).round(3)} of the CPU time without, at most #{MOST}", ratio(name) <= MOST]
        end
      end

      def to_h = { microseconds: @samples, targets: targets }

      private

      def with_all(names, started = {}, &block)
        return yield(started) if names.empty?

        @admin_port = nil # each has one of its own
        config = config(names.first)
        port = admin_port
        serve("hello.ru", config, workers: 1, cores: @options.cores.first) do |server|
          with_all(names.drop(1), { **started, names.first => [server, port] }, &block)
        end
      end

      def config(name)
        return "" if name == :plain

        "#{admin}#{"access_log \"#{LOG}\", :#{name}\n" unless name == :metrics}"
      end

      def ask(servers, round)
        progress("round #{round + 1}")
        servers.keys.rotate(round).each { |name| @samples[name] << measure(*servers[name], name) }
      end

      # @return [Float] microseconds of CPU time that a request has cost, of all the server's processes
      def measure(server, port, name)
        @admin_port = port
        scraper = scraper() unless name == :plain
        before = CPUTime.of(server.pids)
        result = load(server, @options.seconds)
        used = CPUTime.of(server.pids) - before
        raise Server::Failed, "#{result.errors} requests failed" if result.errors.positive?

        used / result.requests * 1e6
      ensure
        scraper&.kill
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

      # @return [Float] the median of the rounds' ratios, because what is measured in one round is close in time
      def ratio(name) = Statistics.median(ratios(name))
      def ratios(name) = @samples[name].zip(@samples[:plain]).map { |one, plain| one / plain }

      def title = "CPU time of a request of hello world, #{@options.connections} connections, microseconds"
      def head = ["", "median", "of the first", "in each round"]

      def rows
        CASES.map { |name, label| [label, format("%.1f", Statistics.median(@samples[name])), *compared(name)] }
      end

      def compared(name)
        return ["", ""] if name == :plain

        [format("%.3f", ratio(name)), ratios(name).map { |one| format("%.2f", one) }.join(" ")]
      end
    end
  end
end
