# frozen_string_literal: true

require "pando/errors"
require "pando/sys"

module Pando
  module Swarm
    # Wraps a runner and checks its answers, so that an error names the runner, the method, the value and the `node`
    # line, instead of some part of Pando. It has defaults for the methods that the runner lacks.
    #
    # Owned by the JobHandler, on the node's main thread.
    #
    # @api private
    class CheckedRunner
      NEEDED = %i[start quiet stop busy? progress].freeze
      COUNT = 0..((2**62) - 1)
      # The largest number that the scoreboard can hold.
      MAX = 4_000_000_000
      # Seconds after which an answer is late.
      LATE_AFTER = 0.3

      # @param runner [Object] the value that the kind's block returned
      # @raise [Error] it is not a runner
      def initialize(runner, kind)
        @runner = runner
        @kind = kind
        missing = NEEDED.reject { |name| runner.respond_to?(name) }
        return if missing.empty?

        fail_with("the block returned #{shown(runner)}, which is not a runner: it lacks #{missing.join(", ")}")
      end

      def start = ask(:start)
      def quiet = ask(:quiet)
      def stop = ask(:stop)

      def busy? = !!ask(:busy?)
      def progress = count(:progress, ask(:progress))
      # @return [Integer] jobs; if the runner does not count them, each step of progress counts as one
      def done = counted(:done) || progress
      def failed = counted(:failed) || 0
      def in_progress = [counted(:in_progress) || (busy? ? 1 : 0), MAX].min

      def lag
        said = optional(:lag)
        return if said.nil?

        said.is_a?(Integer) ? said.clamp(0, MAX) : refuse(:lag, "an Integer or nil", said)
      end

      # @return [Integer, nil] milliseconds
      def latency
        said = optional(:latency)
        return if said.nil?

        known = said.is_a?(Numeric) && said.real? && said.to_f.finite?
        known ? (said * 1000).round.clamp(0, MAX) : refuse(:latency, "a number of seconds or nil", said)
      end

      # @return [String, nil] why the runner cannot go on
      def trouble
        said = optional(:healthy?)
        return said if said.is_a?(String)

        said.nil? || said == true ? nil : refuse(:healthy?, "nil, or a String that says what is wrong", said)
      end

      # Asks for every answer right after the start, so that a wrong one fails the node's start.
      def verify = [progress, done, failed, in_progress, lag, latency, trouble]

      # Names the method that has not returned for a while. May be called in a signal handler.
      def late_call(now = Sys.now)
        seconds = now - (@asked_at || now)
        "#{place}: #{@runner.class}##{@asked} has not returned for #{seconds.round(1)} s" if seconds >= LATE_AFTER
      end

      private

      def optional(name) = (ask(name) if @runner.respond_to?(name))

      def ask(name)
        @asked = name
        @asked_at = Sys.now
        @runner.public_send(name)
      ensure
        @asked_at = nil
      end

      def counted(name)
        said = optional(name)
        said.nil? ? nil : count(name, said)
      end

      def count(name, said)
        return said if said.is_a?(Integer) && COUNT.cover?(said)

        refuse(name, said.is_a?(Integer) ? "from 0 to 2**62 - 1" : "an Integer", said)
      end

      def refuse(name, wanted, said)
        fail_with("#{@runner.class}##{name} must be #{wanted}, but is #{shown(said)}")
      end

      def fail_with(message) = raise(Error, "#{place}: #{message}")

      def place = "#{@kind.source}: node #{@kind.name}"

      # Some objects print everything that they hold, so this cuts the text.
      def shown(object) = object.inspect.then { |text| text.size > 100 ? "#{text[0, 100]}..." : text }
    end
  end
end
