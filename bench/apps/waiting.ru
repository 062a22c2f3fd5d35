# frozen_string_literal: true

# An application whose requests take time but no CPU, so that eight workers fit on two cores:
#
#   GET /fast    BENCH_FAST milliseconds
#   GET /slow    BENCH_SLOW milliseconds
#   GET /events  Server-Sent Events for as long as the client listens, one a second: pid and number
#
# BENCH_WAIT says in which way: "yields" sleeps as a request to a database does, and the interpreter is free for
# other threads or fibers meanwhile; "holds" keeps the interpreter, as a computation does.

module Waiting
  TIMES = { "/fast" => Integer(ENV.fetch("BENCH_FAST", "2")), "/slow" => Integer(ENV.fetch("BENCH_SLOW", "50")) }.freeze

  # usleep(3), called without giving the interpreter's lock away.
  def self.held
    require "fiddle"
    usleep = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    ->(milliseconds) { usleep.call(milliseconds * 1000) }
  end

  def self.yielded = ->(milliseconds) { sleep(milliseconds / 1000.0) }
end

wait = ENV["BENCH_WAIT"] == "holds" ? Waiting.held : Waiting.yielded

EVENTS = Enumerator.new do |events|
  due = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  1.step do |number|
    events << "data: #{Process.pid} #{number}\n\n"
    due += 1
    sleep([due - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)
  end
end

run(lambda do |env|
  next [200, { "content-type" => "text/event-stream" }, EVENTS] if env["PATH_INFO"] == "/events"

  wait.call(Waiting::TIMES.fetch(env["PATH_INFO"], 0))
  [200, { "content-type" => "text/plain", "content-length" => "5" }, ["done\n"]]
end)
