# frozen_string_literal: true

require "support/bundle"
require "support/gauge"
require "support/server_process"
require "tmpdir"

module Bench
  # One server with bench/apps/notes.ru that is reforked repeatedly under load: the cost of each request of each of its
  # workers.
  class PrefaultStage
    ROOT = File.expand_path("../..", __dir__)
    APP = File.join(ROOT, "bench/apps/notes.ru")
    GEMFILE = File.join(ROOT, "test/fixtures/apps/rails/Gemfile")
    PATIENCE = 180 # seconds
    POLL = 0.02
    # One in MIX requests writes, those in READS read what was written, and the others show a page.
    MIX = 20
    READS = (1..4)
    TEXT = "text=hello"

    attr_reader :setting

    # @param setting [String] value of refork prefault:
    # @param canary [String] value of rollout canary:
    def initialize(setting, workers:, canary:)
      @setting = setting
      @workers = workers
      @canary = canary
      @costs = []
      @folder = Dir.mktmpdir("pando-prefault")
    end

    def start
      bundle = Bundle.new("rails", GEMFILE).prepare
      @server = Support::ServerProcess.start(
        arguments: [APP, "-w", @workers.to_s, "-e", "production"],
        config: "refork :manual, prefault: #{@setting}\nrollout canary: #{@canary}",
        env: bundle.environment.merge("APP_DATABASE" => File.join(@folder, "notes.sqlite3"),
                                      "RAILS_ENV" => "production", "RUBY_YJIT_ENABLE" => "1")
      )
    end

    # Waits until each worker has served that many requests.
    # @param refork [Boolean] whether it must also belong to a new generation
    def serve(requests, refork: false)
      under_load do
        renew if refork
        wait_until { pids.size == @workers && pids.all? { |pid| @served.fetch(pid, 0) >= requests } }
      end
    end

    # @return [Array<Gauge::Cost>] of workers that were not their generation's first
    def costs_of_siblings = costs { |pid| reforked.include?(pid) && !canaries.include?(pid) }
    # @return [Array<Gauge::Cost>] of their generations' first workers
    def costs_of_canaries = costs { |pid| canaries.include?(pid) }

    # @return [Array<Hash>] the prefaulted memory of workers but canaries, from worker.ready
    def given
      @server.events("worker.ready").select { |event| event.key?("prefaulted") && !canaries.include?(event["pid"]) }
    end

    # @return [Array<Hash>] the findings of molds
    def prepared = @server.events("prefault.prepared")

    def clean_up
      @server&.kill
      FileUtils.rm_rf(@folder)
    end

    private

    def costs = @costs.select { |cost| yield cost.pid }
    def canaries = @canaries ||= @server.events("canary.serving").map { |event| event["pid"] }
    def pids = @server.workers.map(&:pid)

    def reforked
      @reforked ||= @server.events("worker.ready").filter_map { |event| event["pid"] if event["generation"].positive? }
    end

    # Retries until a refork succeeds: a canary may fail by accident, for example because of a major GC in its first
    # requests.
    def renew
      loop do
        began = @server.wait_for("refork.started", "refork.refused", patience: PATIENCE) { @server.signal("USR2") }
        next sleep(1) if began["event"] == "refork.refused"

        ended = @server.wait_past("refork.finished", "refork.failed", patience: PATIENCE,
                                                                      generation: began["generation"])
        return if ended["event"] == "refork.finished"
      end
    end

    def under_load
      @served = {}
      @done = false
      @fresh = Queue.new
      clients = Array.new(@workers * 2) { |number| Thread.new { converse(number) } }
      yield
    ensure
      @done = true
      clients.each(&:join)
      take
    end

    def take
      until @fresh.empty?
        @costs << cost = @fresh.pop
        @served[cost.pid] = cost.number
      end
    end

    def wait_until
      deadline = now + PATIENCE
      until take || yield
        raise Server::Failed, "not all workers have served within #{PATIENCE} s" if now > deadline

        sleep POLL
      end
    end

    def converse(number)
      connection = nil
      until @done
        begin
          connection ||= @server.connect
          connection.write(message(number += 1))
          connection = nil unless answer(connection)
        rescue SystemCallError, EOFError
          connection = nil # its process has exited
        end
      end
    end

    def message(number)
      case number % MIX
      when 0 then "POST /notes HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n" \
                  "Content-Length: #{TEXT.bytesize}\r\n\r\n#{TEXT}"
      when READS then "GET /notes/1 HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n"
      else "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
      end
    end

    # @return [Boolean] whether the connection can still be used
    def answer(connection)
      head, body = read_head(connection)
      left = head[/^content-length: (\d+)/i, 1].to_i - body.bytesize
      left -= connection.readpartial(left).bytesize while left.positive?
      cost = Gauge.read(head[/^x-cost: (\S+)/i, 1])
      @fresh << cost if cost
      !head.match?(/^connection: close/i)
    end

    def read_head(connection)
      text = +""
      text << connection.readpartial(16_384) until text.include?("\r\n\r\n")
      text.split("\r\n\r\n", 2)
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
