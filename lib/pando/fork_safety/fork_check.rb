# frozen_string_literal: true

require "pando/native"

module Pando
  module ForkSafety
    # Tells a library that it finds itself in another process than before, at the price of one method
    # call and without a system call: for what is mended on next use, with no callback.
    #
    #     @check = Pando::ForkSafety::ForkCheck.new
    #     reconnect if @check.renew
    #
    # Counts forks instead of comparing pids: a child can have the pid of an ancestor that is dead.
    # Of one object two threads may both be told; a lock, if it matters, is the library's.
    class ForkCheck # rubocop:disable Lint/EmptyClass
      # Written in C (ext/pando/bind_fork_check.c).

      # @!method forked?
      #   @return [Boolean] whether this is not the process in which it was made or last renewed

      # @!method renew
      #   From now on this is its process.
      #   @return [Boolean] whether it was another before
    end
  end
end
