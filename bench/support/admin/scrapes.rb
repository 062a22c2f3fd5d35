# frozen_string_literal: true

require "support/admin/section"
require "support/statistics"

module Bench
  module Admin
    # The CPU time of a scrape of /metrics, beside the same time without, and how long an answer takes: while the
    # workers are idle, and while each of them stands in native code and holds the interpreter.
    class Scrapes < Section
      SHARE = 0.1 # percent of a core
      LONGEST = 0.02 # seconds
      FRESH = 1.05 # seconds after which an answer is made anew
      SETTLED = 12 # seconds until all is quiet after the start

      def call
        serve("waiting.ru", admin, workers: @options.workers, environment: environment) do |server|
          sleep SETTLED
          @watched = { "monitor" => server.pids_of(MONITOR), "admin process" => server.pids_of(ADMIN) }
          @rounds = Array.new(@options.rounds) { |round| measure(round) }
          @stuck = while_stuck(server)
        end
        self
      end

      def targets
        { "a scrape each #{@options.interval} s takes #{share.round(3)}% of a core, at most #{SHARE}" => share <= SHARE,
          "the longest answer took #{milliseconds(idle.max)} ms, below #{milliseconds(LONGEST)}" => idle.max < LONGEST,
          "#{milliseconds(@stuck.max)} ms while all workers were stuck, below #{milliseconds(LONGEST)}" =>
            @stuck.max < LONGEST }
      end

      def to_h = { rounds: @rounds, idle: idle, stuck: @stuck, share: share, targets: targets }

      private

      # The workers stand for as long as they are scraped.
      def environment
        { "BENCH_SLOW" => ((@options.scrapes + 5) * FRESH * 1000).round.to_s, "BENCH_WAIT" => "holds" }
      end

      # The order changes with each round.
      def measure(round)
        both = { without: -> { sleep(@options.scrapes * @options.interval) }, with: -> { scrape(@options.interval) } }
        both.to_a.rotate(round).to_h do |name, work|
          progress("round #{round + 1}, #{name} scrapes")
          before = used
          began = now
          answers = work.call
          seconds = now - began
          [name, { seconds: seconds, answers: answers, cpu: used.to_h { |who, cpu| [who, cpu - before[who]] } }]
        end
      end

      # @return [Array<Float>] seconds that each answer took
      def scrape(interval)
        connected do |connection|
          Array.new(@options.scrapes) do
            began = now
            get("/metrics", connection)
            (now - began).tap { |seconds| sleep(interval - seconds) }
          end
        end
      end

      def while_stuck(server)
        progress("all workers stuck")
        clients = Array.new(@options.workers) { Socket.tcp("127.0.0.1", server.port) }
        clients.each { |client| client.write("GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") }
        sleep FRESH
        busy = get("/metrics")[/^pando_processes{role="worker",pool="web",state="busy"} (\d+)$/, 1].to_i
        raise Server::Failed, "only #{busy} workers are stuck" if busy < @options.workers

        sleep FRESH
        scrape(FRESH)
      ensure
        clients&.each(&:close)
      end

      def used = @watched.transform_values { |pids| CPUTime.of(pids) }
      def idle = @rounds.flat_map { |round| round[:with][:answers] }

      # @return [Float] seconds of CPU time that one scrape has cost, the median of the rounds
      def cost(process)
        Statistics.median(@rounds.map do |round|
          with, without = round.values_at(:with, :without)
          (with[:cpu][process] - (without[:cpu][process] * with[:seconds] / without[:seconds])) / @options.scrapes
        end)
      end

      def share = @watched.keys.sum { |process| cost(process) } / @options.interval * 100

      def title = "a scrape of /metrics, #{@options.workers} idle workers, milliseconds"
      def head = ["", "CPU time of a scrape", "of a second without"]

      def rows
        cpu = @watched.keys.map do |process|
          each = @rounds.map { |round| round[:without][:cpu][process] / round[:without][:seconds] }
          [process, milliseconds(cost(process)), milliseconds(Statistics.median(each))]
        end
        [*cpu, ["the answer, idle", *middle_and_longest(idle)], ["the answer, all stuck", *middle_and_longest(@stuck)]]
      end

      def middle_and_longest(answers)
        ["median #{milliseconds(Statistics.median(answers))}", "longest #{milliseconds(answers.max)}"]
      end
    end
  end
end
