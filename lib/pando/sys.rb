# frozen_string_literal: true

require "pando/native"
require "pando/sys/pidfd"
require "pando/sys/sample"

module Pando
  # Thin wrappers for Linux calls, without policy, written in C. On failure they raise the Errno of the call.
  module Sys
    # One process's part of the scoreboard.
    class Row
      # The states of a process, as the monitor sees it (Cluster::Child), by number.
      STATES = %i[ordered adopted ready leaving gone].freeze
    end

    # @return [Float] CLOCK_MONOTONIC in seconds: the only clock that deadlines use
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Detaches a descriptor from its IO object and leaves it open. An IO object left behind would later be taken for the
    # owner of whatever gets the same number.
    #
    # @param io [IO] is closed afterwards
    # @return [Integer] the descriptor
    def self.disown(io)
      number = io.fileno
      io.autoclose = false
      io.close
      number
    end

    # Lends a descriptor that has another owner to the block, as an IO object that is not left behind.
    #
    # @param number [Integer] the descriptor
    # @param kind [Class] IO or a subclass
    # @yieldparam io [IO]
    # @return [Object] the block's return value
    # @raise [SystemCallError] the descriptor is not open
    def self.borrow(number, kind = IO)
      io = kind.for_fd(number)
      io.autoclose = false
      yield io
    ensure
      io&.close
    end
  end
end
