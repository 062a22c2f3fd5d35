# frozen_string_literal: true

require "pando/native"

module Pando
  module ForkSafety
    # Tells a library that it finds itself in another process than before, at the price of two
    # method calls and without a system call: for what is mended on next use, with no callback.
    #
    #     @check = Pando::ForkSafety::ForkCheck.new
    #     reconnect if @check.renew
    #
    # Counts forks instead of comparing pids: a child can have the pid of an ancestor that is dead.
    class ForkCheck
      def initialize
        @forks = Sys.forks
      end

      # @return [Boolean] whether this is not the process in which it was made or last renewed
      def forked?
        @forks != Sys.forks
      end

      # From now on this is its process.
      #
      # @return [Boolean] whether it was another before
      def renew
        return false unless forked?

        @forks = Sys.forks
        true
      end
    end
  end
end
