# frozen_string_literal: true

require "pando/cluster/upgrade/descriptors"
require "pando/cluster/upgrade/signal_buffer"
require "pando/cluster/upgrade/resumption"
require "pando/cluster/upgrade/state"

module Pando
  module Cluster
    class Upgrade
      # The step from one image of the monitor to another. Children notice nothing: the parent of a child is its
      # parent's thread, and the monitor's only one is the one that goes on (prctl(2), PR_SET_PDEATHSIG). That we
      # are their subreaper, the limits and the folder stay as well.
      #
      # Signals that have come before are obeyed first, and those that come from then on by the other image (SignalBuffer);
      # SIGCHLD has a harmless default, and the dead are looked for.
      #
      # Owned by Upgrade, in the monitor.
      #
      # @api private
      class Exec
        # @param image [ProcessImage] to come back to
        def initialize(cluster, signals, image)
          @cluster = cluster
          @signals = signals
          @image = image
        end

        # @param image [ProcessImage]
        # @yield just before it is too late to say anything
        # @return [nil] a signal has come first; it is to be tried again
        # @raise [SystemCallError, Pando::Error] this image goes on
        def go(image)
          return if @signals.waiting?

          yield
          @cluster.control.say_farewell
          execute(image)
        ensure
          @signals.trap_all
        end

        private

        def execute(image)
          state = State.of(@cluster, @image)
          memory = IO.for_fd(Sys.sealed_memory("pando-state", state.to_s))
          passed = [memory.fileno, *state.kept]
          Descriptors.close_on_exec(passed, false)
          come = SignalBuffer.pass_on(@signals.take)
          image.execute(Resumption::VARIABLE => "take:#{memory.fileno}", Resumption::REASON => nil, **come)
        rescue SystemCallError
          @signals.remember(come.fetch(Interim::VARIABLE).split(",")) if come
          Descriptors.close_on_exec(passed, true) if passed
          raise
        ensure
          memory&.close
        end
      end
    end
  end
end
