# frozen_string_literal: true

require "pando/cli/top"
require "pando/cli/top/board"
require "pando/cli/top/measurements"

module Support
  # The status of a server with three workers, as `pando top` receives it.
  module TopSnapshot
    MIB = 1_048_576
    Usage = Pando::Sys::Memory::Usage

    RECORDS = [
      ["server", { "pid" => 10, "version" => "1.0", "state" => "serving", "workers" => 3, "ready" => 3,
                   "uptime" => 75.0, "reforks" => 2 }],
      ["listener", { "listen" => "tcp:127.0.0.1:8080", "waiting" => 0 }],
      ["queue", { "connections" => 7, "idle" => 4, "waiting" => 2, "requests" => 900 }],
      ["generation", { "number" => 2, "state" => "current", "purpose" => "refork", "age" => 31.0 }],
      ["refork", { "phase" => "paying", "waits" => "a refork would pay at 900 requests" }],
      ["responses", { "method" => "GET", "counts" => "0,0,10,0,2,0" }],
      ["reactor", { "pid" => 11, "state" => "ready" }],
      ["mold", { "generation" => 2, "pid" => 12, "state" => "ready" }],
      ["worker", { "slot" => 0, "generation" => 2, "pid" => 13, "state" => "busy", "requests" => 400, "at_once" => 3,
                   "seconds" => 2.5, "job" => "GET /reports", "connections" => 2 }],
      ["worker", { "slot" => 1, "generation" => 2, "pid" => 14, "state" => "idle", "requests" => 500 }],
      ["worker", { "slot" => 2, "generation" => 2, "pid" => 15, "state" => "busy", "requests" => 2, "seconds" => 9.0,
                   "job" => "POST /imports" }]
    ].freeze
    MEMORY = (10..15).to_h { |pid| [pid, Usage.new(pid * MIB, (pid - 8) * MIB, 50 * MIB)] }.freeze
    RESULTS = Pando::CLI::Top::Measurements::Results.new(
      rates: { 13 => 4.0, 14 => 20.5, 15 => 0.0 }, classes: { "2xx" => 20.0, "4xx" => 4.5, "5xx" => 0.0 },
      latency: { "duration" => [0.0123, 1.5], "queue" => [0.0005, 20.0] }, memory: MEMORY
    )
    EVENTS = (1..30).map { |number| "12:00:00 worker.ready slot=#{number}" }.freeze
  end
end
