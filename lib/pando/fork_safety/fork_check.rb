# frozen_string_literal: true

require "pando/native"

module Pando
  module ForkSafety
    # Tells a library that it is in another process than before, with one method call and no system
    # call. It is for what a library repairs on its next use, without a callback.
    #
    #     @check = Pando::ForkSafety::ForkCheck.new
    #     reconnect if @check.renew
    #
    # It counts forks instead of comparing pids, because a child may get the pid of a dead ancestor.
    # Two threads may both see the change. If that matters, the library needs a lock of its own.
    class ForkCheck # rubocop:disable Lint/EmptyClass
      # Written in C (ext/pando/bind_fork_check.c).

      # @!method forked?
      #   @return [Boolean] whether this is another process than the one in which it was made or last renewed

      # @!method renew
      #   Makes this process its own.
      #   @return [Boolean] whether its process was another one before
    end
  end
end
