# frozen_string_literal: true

require "pando/testing/coverage"
require "pando/testing/hooks"
require "pando/testing/line"
require "pando/testing/progress"
require "pando/testing/knowledge"
require "pando/testing/strict"

module Pando
  module Testing
    # One refork of a run, from the forker's preparations to the end of the generation that comes of it. Lives in both;
    # the heir has it as it was when the fork took place.
    #
    # @api private
    class Refork
      def initialize(session, plug)
        @session = session
        @settings = session.settings
        @plug = plug
        @generation = session.generation + 1
      end

      # Forks; returns in the heir, and in the forker if the heir has crashed.
      #
      # @param rehearsal [Proc, nil]
      # @return [nil, Integer] nil in the heir, in the forker the signal
      # @raise [Error, SystemCallError] there is no heir, and the forker goes on
      def go_on(rehearsal)
        hooks.before_fork
        @strict = Strict.new(@session, @plug, rehearsal) if @settings.strict && rehearsal
        Coverage.before_fork
        flush
        @strict&.before_fork { settle_in(2) }
        live_on
      end

      # In the heir, at once.
      #
      # @return [Array<ForkSafety::Finding>]
      # @raise [Error] a callback or a hook failed
      def take_over
        settle_in(1)
        Coverage.take_over
        @plug.after_refork
        [*Knowledge.findings(@generation, own, hooks.config), *@strict&.rehearse]
      end

      # In the heir, when its first test is done.
      # @return [Array<ForkSafety::Finding>]
      def after_first_test = [*@strict&.after_first_test]

      # In the heir, when its last test is done.
      # @return [Array<ForkSafety::Finding>]
      def at_the_end = [*@strict&.used]

      private

      def hooks = Testing.hooks

      def live_on
        heir = false
        signal = @session.line.go_on
        heir = signal.nil?
        signal
      ensure
        @strict&.leave_alone unless heir
      end

      # As in a new worker, but for the seed: it shall be another than the forker's, and the same the next time.
      def settle_in(slot)
        ForkSafety.after_fork
        Knowledge.settle
        Random.srand((@plug.seed * 65_536) + (@generation * 16) + slot)
        hooks.after_fork(slot, @generation)
      end

      def own = [*@session.line.ios, *@strict&.ios, *@plug.outputs.grep(IO).reject(&:closed?)]

      # So that nothing is written twice, or lost with a process that is killed.
      def flush
        ObjectSpace.each_object(IO) do |io|
          io.flush if !io.closed? && writable?(io)
        rescue IOError, SystemCallError
          next # read only, or gone
        end
      end

      def writable?(io) = io.respond_to?(:flush) && [File, IO].include?(io.class)
    end
  end
end
