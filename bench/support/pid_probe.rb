# frozen_string_literal: true

# The measuring process: `ruby pid_probe.rb SECONDS ROUNDS NAME...` prints {name: [nanoseconds, ...]} as JSON.

require "json"

module Bench
  # How long a way to get the pid takes, without the loop around it.
  module PidProbe
    UNROLLED = 10
    CHECK = defined?(Pando) && Pando::ForkSafety::ForkCheck.new
    PID = Process.pid

    # Each body is written out, so that only the call itself is in the loop. Expressions that are not calls are
    # assigned, because Ruby would warn otherwise.
    # rubocop:disable-next Style/Semicolon, Style/WhileUntilModifier, Style/SpecialGlobalVars
    WAYS = {
      "empty" => lambda { |turns|
        while turns.positive?
          turns -= 1
        end
      },
      "$$" => lambda { |turns|
        while turns.positive?
          _ = $$; _ = $$; _ = $$; _ = $$; _ = $$; _ = $$; _ = $$; _ = $$; _ = $$; _ = $$
          turns -= 1
        end
      },
      "Process.pid" => lambda { |turns|
        while turns.positive?
          Process.pid; Process.pid; Process.pid; Process.pid; Process.pid
          Process.pid; Process.pid; Process.pid; Process.pid; Process.pid
          turns -= 1
        end
      },
      "Pando.pid" => lambda { |turns|
        while turns.positive?
          Pando.pid; Pando.pid; Pando.pid; Pando.pid; Pando.pid; Pando.pid; Pando.pid; Pando.pid; Pando.pid; Pando.pid
          turns -= 1
        end
      },
      "$$ != pid" => lambda { |turns|
        pid = PID
        while turns.positive?
          _ = $$ != pid; _ = $$ != pid; _ = $$ != pid; _ = $$ != pid; _ = $$ != pid
          _ = $$ != pid; _ = $$ != pid; _ = $$ != pid; _ = $$ != pid; _ = $$ != pid
          turns -= 1
        end
      },
      "ForkCheck" => lambda { |turns|
        check = CHECK
        while turns.positive?
          check.forked?; check.forked?; check.forked?; check.forked?; check.forked?
          check.forked?; check.forked?; check.forked?; check.forked?; check.forked?
          turns -= 1
        end
      }
    }.freeze

    class << self
      # @return [Hash{String => Array<Float>}] nanoseconds per call in each round
      def call(names, seconds, rounds)
        turns = names.to_h { |name| [name, calibrate(name, seconds)] }
        empty = calibrate("empty", seconds)
        results = names.to_h { |name| [name, []] }
        rounds.times do
          loop_alone = time("empty", empty) / empty
          names.each do |name|
            turn = time(name, turns[name]) / turns[name]
            results[name] << ((turn - loop_alone) / UNROLLED * 1e9)
          end
        end
        results
      end

      private

      # Also warms up the way.
      def calibrate(name, seconds)
        turns = 1000
        turns *= 2 while time(name, turns) < seconds / 4
        turns * 4
      end

      def time(name, turns)
        started = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        WAYS.fetch(name).call(turns)
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - started
      end
    end
  end
end

seconds, rounds, *names = ARGV
puts JSON.generate(Bench::PidProbe.call(names, Float(seconds), Integer(rounds)))
