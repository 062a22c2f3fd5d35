# frozen_string_literal: true

# An application whose requests compute BENCH_CPU milliseconds and wait BENCH_WAIT milliseconds, in BENCH_PARTS equal
# parts of each, in turn, as between queries to a database. BENCH_WORK says what computing is:
#
#   real    Ruby code, until the thread has used that much CPU time
#   held    a sleep that keeps the interpreter, as a computation does, but leaves the CPU to others

module Mixed
  CPU, WAIT, PARTS = %w[CPU WAIT PARTS].map { |name| Integer(ENV.fetch("BENCH_#{name}")) }

  # usleep(3), called without giving the interpreter's lock away.
  def self.held
    require "fiddle"
    usleep = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    ->(microseconds) { usleep.call(microseconds) }
  end

  def self.real
    lambda do |microseconds|
      ends_at = spent + microseconds
      100.times { |number| number.to_s.hash } while spent < ends_at
    end
  end

  def self.spent = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :microsecond)
end

compute = ENV["BENCH_WORK"] == "held" ? Mixed.held : Mixed.real
share = Mixed::CPU * 1000 / Mixed::PARTS
pause = Mixed::WAIT / 1000.0 / Mixed::PARTS

run(lambda do |_env|
  Mixed::PARTS.times do
    compute.call(share)
    sleep(pause) if pause.positive?
  end
  [200, { "content-type" => "text/plain", "content-length" => "5" }, ["done\n"]]
end)
