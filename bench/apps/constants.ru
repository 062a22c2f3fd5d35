# frozen_string_literal: true

# The constant-caches app: METHODS methods (100,000 by default), each of which reads a constant of its own.
# The cache beside each read is empty until the method is called for the first time, and filling it dirties
# the page it lies in: memory that was shared since the fork becomes private. A server whose workers were
# forked from one that had been called already has nothing left to fill.
#
# Each request calls one slice of the methods, so a process is warm after SLICES requests, 20 by default. It also
# builds and serializes some data, as a request does, so that the heap is in motion.
#
#   GET /     the next slice; X-Worker is the pid that answered
#   GET /up   answers without calling anything

require "json"

module Constants
  METHODS = Integer(ENV.fetch("BENCH_METHODS", "100000"))
  PER_MODULE = 100
  SLICES = Integer(ENV.fetch("BENCH_SLICES", "20"))

  GROUPS = Array.new(METHODS / PER_MODULE) do |group|
    const_set("Group#{group}", Module.new).tap do |holder|
      lines = Array.new(PER_MODULE) { |index| "Value#{index} = Module.new; def self.read#{index} = Value#{index}" }
      lines << "def self.read_all; #{Array.new(PER_MODULE) { |index| "read#{index}" }.join("; ")}; end"
      holder.module_eval(lines.join("\n"), __FILE__, __LINE__)
    end
  end

  PARTS = GROUPS.each_slice((GROUPS.size / SLICES.to_f).ceil).to_a

  # The Rack app.
  class App
    # Held for a moment, as by a database, so that requests arriving together reach different workers.
    HOLD = 0.002

    def initialize
      @turn = 0
    end

    def call(env)
      body = env["PATH_INFO"] == "/up" ? "up\n" : work
      [200, { "content-type" => "application/json", "x-worker" => Process.pid.to_s }, [body]]
    end

    private

    def work
      part = PARTS[@turn % PARTS.size]
      @turn += 1
      part.each(&:read_all)
      sleep HOLD
      JSON.generate(rows: Array.new(20) { |index| { id: index, name: "row #{index}", tags: %w[one two] } })
    end
  end
end

run Constants::App.new
