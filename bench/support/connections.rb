# frozen_string_literal: true

require "io/wait"
require "json"
require "support/native"
require "support/priority"

module Bench
  # Runs bench/native/connections: many connections that stay open, of one kind, in one or several processes.
  class Connections
    class Failed < StandardError; end

    # Of one process: it may have no more descriptors than this machine allows, and needs some for itself.
    MOST = Process.getrlimit(:NOFILE).last - 100
    ANSWERED_WITHIN = 300 # seconds
    COUNTS = %i[open ended cut farewells wrong refused messages].freeze

    # Holds connections for as long as the block runs.
    #
    # @param count [Integer] how many there will be at most
    # @param options [Hash] of the program
    # @yieldparam connections [Connections]
    # @return [Object] what the block returns
    def self.run(port, count:, **options)
      connections = new(port, count, options)
      yield connections
    ensure
      connections&.stop
    end

    def initialize(port, count, options)
      arguments = { port: port, **options }.flat_map { |name, value| ["--#{name}", value.to_s] }
      command = [*Priority.prefix(Priority::HIGH), Native.program("connections"), *arguments]
      @programs = Array.new((count / MOST) + 1) { IO.popen(command, "r+") }
    end

    # @param count [Integer] of further connections, or of open ones with which to do something
    # @return [Integer] for how many it went as it must
    def open(count) = share("open", count)
    def ask(count) = share("ask", count)
    def ping(count) = share("ping", count)
    def close(count) = share("close", count)

    # @param number [Integer] of a broadcast
    # @return [Integer] open connections on which it has come
    def await(number) = order("await", [number] * @programs.size).sum

    # @param milliseconds [Integer]
    def watch(milliseconds) = order("watch", [milliseconds] * @programs.size)

    # Waits until the server has ended all of them.
    # @return [Boolean] whether it has
    def part = order("part", [0] * @programs.size).all?(1)

    # @return [Hash{Symbol => Integer, Hash}] the counts, and the close codes and the workers of open ones with a count
    def report
      reports = @programs.map do |program|
        program.puts("report")
        JSON.parse(answer(program))
      end
      COUNTS.to_h { |name| [name, reports.sum { |each| each.fetch(name.to_s) }] }
            .merge(%i[codes workers].to_h { |name| [name, sum(reports.map { |each| each.fetch(name.to_s) })] })
    end

    def stop
      @programs.each do |program|
        Process.kill(:KILL, program.pid)
        program.close
      end
    end

    private

    def share(word, count)
      parts = @programs.each_index.map { |index| (count + index) / @programs.size }
      order(word, parts).sum
    end

    # All of the processes obey at the same time.
    def order(word, numbers)
      @programs.zip(numbers) { |program, number| program.puts("#{word} #{number}") }
      @programs.map { |program| answer(program)[/\A#{word} (\d+)$/, 1].to_i }
    end

    def answer(program)
      raise Failed, "connections: no answer within #{ANSWERED_WITHIN} s" unless program.wait_readable(ANSWERED_WITHIN)

      program.gets || raise(Failed, "connections: ended early")
    end

    def sum(counts) = counts.reduce({}) { |all, each| all.merge(each) { |_name, one, other| one + other } }
  end
end
