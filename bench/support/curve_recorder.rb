# frozen_string_literal: true

require "net/http"
require "support/memory"
require "support/servers"

module Bench
  # Records the curve of one generation: the summed PSS of workers and mold, and the CPU time of a worker, over the
  # requests that each worker has served since its fork. One run of a server: some requests to each worker, a refork
  # (unless it is the cold generation itself), then the ages one after another.
  class CurveRecorder
    AGES = [0, 10, 25, 50, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200].freeze
    CLIENTS = 8
    # The CPU clock of another process: Linux' MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
    CLOCK = ->(pid) { (~pid << 3) | 2 }

    Row = Struct.new(:warmth, :age, :pss, :cpu)

    # @param server [Server] not yet started
    # @param paths [Array<String>] requested in turn
    # @param prepare [#call] gets the port, before anything is counted
    def initialize(server, workers:, paths:, prepare: ->(_port) {})
      @server = server
      @workers = workers
      @paths = paths
      @prepare = prepare
      @sent = 0
    end

    # @param warmth [Integer] requests of each worker before the refork; 0: no refork
    # @return [Array<Row>]
    def call(warmth)
      @server.run do
        @prepare.call(@server.port)
        ask(warmth)
        @server.refork if warmth.positive?
        AGES.each_cons(2).with_object([row(warmth, AGES.first)]) do |(from, to), rows|
          ask(to - from)
          rows << row(warmth, to)
        end
      end
    end

    private

    def row(warmth, age)
      molds = @server.pids_of(/\Apando mold/)
      workers = @server.worker_pids
      memory = Memory.of(molds + workers, workers)
      shared = warmth.zero? ? 0.0 : molds.sum { |pid| cpu(pid) } # a cold mold has used CPU time to load the app
      Row.new(warmth, age, memory.pss, ((workers.sum { |pid| cpu(pid) } + shared) / @workers).round(4))
    end

    def cpu(pid) = Process.clock_gettime(CLOCK.call(pid))

    # Sends that many requests to each worker, from several clients at once.
    def ask(each)
      left = Array.new(each * @workers) { @paths[(@sent += 1) % @paths.size] }
      queue = Thread::Queue.new(left).close
      Array.new(CLIENTS) { Thread.new { client(queue) } }.each(&:join)
    end

    def client(queue)
      Net::HTTP.start("127.0.0.1", @server.port) do |http|
        while (path = queue.pop)
          answer = http.get(path)
          raise Server::Failed, "#{path}: #{answer.code} #{answer.body[0, 200]}" unless answer.code == "200"
        end
      end
    end
  end
end
