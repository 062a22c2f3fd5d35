# frozen_string_literal: true

require "json"
require "support/admin/section"

module Bench
  module Admin
    # Whether each request is counted once: requests with paths of their own, over reforks, reloads, an upgrade and
    # kills of workers, beside /metrics, `pando status` and the access log.
    class Counts < Section
      LOG = "access.log"
      WORKERS = 4
      CLIENTS = 8
      KILLS = 20
      PATIENCE = 60 # seconds for an answer
      POLL = 0.02
      SETTLED = 2.0 # seconds until the last request is counted everywhere

      def call
        config = "#{admin}access_log \"#{LOG}\", :json\n"
        serve("hello.ru", config, workers: WORKERS) do |server|
          sleep SETTLED
          before = count(server) # requests that the benchmark has sent to learn that the server is there
          @failures = send_all(server) { disturb(server) }
          sleep SETTLED
          @counted = count(server).to_h { |where, number| [where, number - before[where]] }
        end
        self
      end

      def targets
        { "#{@failures.size} requests failed, 0" => @failures.empty?,
          **@counted.to_h { |where, number| ["#{where} counted #{number} of #{sent} requests", number == sent] } }
      end

      def to_h = { requests: sent, failures: @failures, counted: @counted, targets: targets }

      private

      def sent = @options.requests

      # @return [Array<String>] what went wrong
      def send_all(server)
        failures = Queue.new
        @numbers = Queue.new.tap { |queue| sent.times { |number| queue << number } }.close
        pause = @options.duration * CLIENTS / sent.to_f
        clients = Array.new(CLIENTS) { Thread.new { Client.new(server.port, pause).call(@numbers, failures) } }
        yield
        clients.each(&:join)
        Array.new(failures.size) { failures.pop }
      end

      # Spreads all that may go wrong over the time of the requests.
      def disturb(server)
        orders = (["refork"] * @options.reforks) + (["reload"] * @options.reloads) + ["upgrade"] + (["kill"] * KILLS)
        orders.shuffle.each.with_index(1) do |order, number|
          sleep POLL until @numbers.size <= sent - (sent * number / (orders.size + 1))
          progress("#{order}, #{@numbers.size} requests to go")
          order == "kill" ? kill(server) : server.pando(order)
        end
      end

      # A worker that still serves.
      def kill(server)
        pid = server.worker_pids.sample
        Process.kill(:KILL, pid) if pid
      rescue Errno::ESRCH
        nil # it has just been replaced
      end

      def count(server)
        metrics = get("/metrics")
        { "pando_requests_total" => total(metrics, "requests_total"),
          "pando_request_duration_seconds" => total(metrics, "request_duration_seconds_count"),
          "the access log" => logged(server), "pando status" => status(server).fetch("queue").fetch("requests") }
      end

      def total(metrics, name) = metrics.scan(/^pando_#{name}{.*} (\d+)$/).sum { |(number)| number.to_i }

      # Paths that have one line.
      def logged(server)
        paths = File.foreach(File.join(server.folder, LOG)).map { |line| JSON.parse(line).fetch("path") }
        paths.grep(%r{\A/\d+\z}).tally.count { |_, lines| lines == 1 }
      end

      def status(server) = JSON.parse(server.pando("status", "--format", "json"))

      def title
        "#{sent} requests over #{@options.reforks} reforks, #{@options.reloads} reloads, an upgrade and #{KILLS} kills"
      end

      def head = ["", "counted", "missing"]
      def rows = @counted.map { |where, number| [where, number.to_s, (sent - number).to_s] }

      # Sends requests on one connection, at a steady pace.
      class Client
        # @param pause [Float] seconds from one request to the next
        def initialize(port, pause)
          @port = port
          @pause = pause
        end

        def call(numbers, failures)
          due = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          while (number = numbers.pop)
            failure = ask(number) and failures << failure
            due += @pause
            sleep([due - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)
          end
        end

        private

        # @return [String, nil] what went wrong
        def ask(number)
          @connection ||= Net::HTTP.start("127.0.0.1", @port, read_timeout: PATIENCE).tap { |http| http.max_retries = 0 }
          answer = @connection.get("/#{number}")
          "/#{number}: #{answer.code}" unless answer.code == "200"
        rescue SystemCallError, IOError, Timeout::Error => e
          @connection = nil
          "/#{number}: #{e.class}: #{e.message}"
        end
      end
      private_constant :Client
    end
  end
end
