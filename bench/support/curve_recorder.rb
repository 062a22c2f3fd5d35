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
    # The CPU clock of another process: Linux' MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
    CLOCK = ->(pid) { (~pid << 3) | 2 }

    Row = Struct.new(:warmth, :age, :pss, :cpu)

    # @param server [Server] not yet started
    # @yieldparam port [Integer] of the server, before anything is counted
    # @yieldreturn [#run] sends so many requests and returns when all are answered
    def initialize(server, workers:, &clients)
      @server = server
      @workers = workers
      @clients = clients
      @shared = 0.0
    end

    # @param warmth [Integer] requests of each worker before the refork; 0: no refork
    # @return [Array<Row>]
    def call(warmth)
      @server.run do
        @load = @clients.call(@server.port)
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
      Row.new(warmth, age, memory.pss, ((workers.sum { |pid| cpu(pid) } + shared(warmth, molds)) / @workers).round(4))
    end

    # The CPU time of the mold, which may be gone by now. A cold one has used it to load the app.
    def shared(warmth, molds) = @shared = [@shared, warmth.zero? ? 0.0 : molds.sum { |pid| cpu(pid) }].max

    def cpu(pid) = Process.clock_gettime(CLOCK.call(pid))

    # Sends that many requests to each worker, or so.
    def ask(each) = each.positive? && @load.run(each * @workers)
  end

  # Several clients that keep their connections and request the same paths in turn.
  class PathsInTurn
    CLIENTS = 8

    # @param paths [Array<String>]
    def initialize(port, paths)
      @port = port
      @paths = paths
      @sent = 0
    end

    def run(count)
      queue = Thread::Queue.new(Array.new(count) { @paths[(@sent += 1) % @paths.size] }).close
      Array.new(CLIENTS) { Thread.new { client(queue) } }.each(&:join)
    end

    private

    def client(queue)
      Net::HTTP.start("127.0.0.1", @port) do |http|
        while (path = queue.pop)
          answer = http.get(path)
          raise Server::Failed, "#{path}: #{answer.code} #{answer.body[0, 200]}" unless answer.code == "200"
        end
      end
    end
  end
end
