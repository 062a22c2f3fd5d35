# frozen_string_literal: true

# What the scripts beside this one have in common. Plain Ruby: any Ruby on Linux runs them. Where Pando's extension is
# compiled for that Ruby and found (-I lib), memory is told apart by use as well.
begin
  require "pando/sys"
rescue LoadError
  nil
end

# Measures in forked children what their parent, which lives, shares with them no more.
module Cow
  MIB = 1_048_576.0
  USES = %w[heap malloc code data stack].freeze

  module_function

  # In a child: what the block makes private. Prints a line.
  def child(what)
    measure # so that its own first time is none of what is measured
    reader, writer = IO.pipe
    pid = fork do
      measure
      before = measure
      yield
      writer.puts measure.zip(before).map { |after, first| ((after - first) / MIB).round(2) }.join(" ")
      exit!(true)
    end
    writer.close
    all, *uses = reader.read.split
    Process.wait(pid)
    uses = USES.zip(uses).reject { |_, size| size.to_f.zero? }.map { |use, size| "#{use} #{size}" }
    puts "#{what.ljust(58)} #{all.rjust(7)} MiB  #{uses.join(", ")}"
  end

  # Everything alive is old from here on, and nothing is half done.
  def settle
    4.times { GC.start }
    yield if block_given?
    $stdout.flush
  end

  # @return [Array<Integer>] bytes: all, and by use
  def measure
    GC.disable
    all = File.read("/proc/self/smaps_rollup").scan(/^Private_\w+: +(\d+) kB/).flatten.sum(&:to_i) * 1024
    uses = defined?(Pando::Sys) ? Pando::Sys.private_memory : []
    GC.enable
    [all, *uses]
  end

  def yjit? = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
end

jemalloc = File.read("/proc/self/maps").include?("jemalloc")
puts "# #{File.basename($PROGRAM_NAME)}: #{RUBY_DESCRIPTION}#{", jemalloc" if jemalloc}"
