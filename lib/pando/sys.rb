# frozen_string_literal: true

require "pando/native"
require "pando/sys/pidfd"
require "pando/sys/sample"

module Pando
  # Thin Linux calls without policy, written in C. Each failure is the Errno of its call.
  module Sys
    # @return [Float] CLOCK_MONOTONIC in seconds: the only clock that deadlines know
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Leaves an IO's descriptor open, and nobody's. An IO object that stayed behind would be taken for the owner of
    # whatever is given the number once it is closed.
    #
    # @param io [IO] is closed then
    # @return [Integer] the number
    def self.disown(io)
      number = io.fileno
      io.autoclose = false
      io.close
      number
    end

    # A look at a descriptor that another owns, through an IO object which does not stay behind either.
    #
    # @param number [Integer]
    # @param kind [Class] IO or one of its own
    # @yieldparam io [IO]
    # @return [Object] what the block returns
    # @raise [SystemCallError] it is not open
    def self.borrow(number, kind = IO)
      io = kind.for_fd(number)
      io.autoclose = false
      yield io
    ensure
      io&.close
    end
  end
end
